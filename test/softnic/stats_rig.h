/* SPDX-License-Identifier: BSD-3-Clause */
/* A port whose log lines are kept, and its statistics by name. */
#pragma once

#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/port.h"

enum {
	STATS = sizeof(struct ixdp_stats) / sizeof(uint64_t),
	NEAR = 0xFFFFFFF0, /* the end of a counter, without being full */
};

static struct rig rig;
static char lines[8][256]; /* what was logged, but for debug lines */
static unsigned n_lines;

static inline void keep_line(enum ixdp_log_level level, const char *line, void *arg) {
	(void)level, (void)arg;
	if (n_lines < 8) snprintf(lines[n_lines], sizeof(lines[0]), "%s", line);
	n_lines++;
}

static inline int setup(void **state) {
	(void)state;
	softnic_set_stepped(true);
	return 0;
}

static inline void start(const char *options, const struct ixdp_config *cfg) {
	n_lines = 0;
	ixdp_log_set(keep_line, NULL, IXDP_LOG_WARNING);
	rig_open(&rig, options, cfg);
}

/* A statistic by its name, as a program would find it. */
static inline uint64_t value(const struct ixdp_stats *stats, const char *name) {
	unsigned n;
	const char *const *names = ixdp_stats_names(&n);

	for (unsigned i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0) return ((const uint64_t *)stats)[i];
	fail_msg("no statistic %s", name);
	return 0;
}

static inline void receive(unsigned n, unsigned *delivered) {
	struct ixdp_pkt pkts[64];
	int got = ixdp_rx(rig.port, 0, pkts, n);

	assert_true(got >= 0);
	ixdp_free(rig.pool, pkts, got);
	*delivered += got;
}
