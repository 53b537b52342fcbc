/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of capture files share: a folder for them, wires, frames that tell themselves
 * apart. */
#pragma once

#include "softnic/wire.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static char folder[] = "/tmp/ixdp-test-pcap-XXXXXX";

/* The files of the test, each in the folder. */
static const char *const names[] = {"in", "out", "c:d,e", "link"};

static char log_lines[2000];

static inline void keep_log(enum ixdp_log_level level, const char *line, void *arg) {
	(void)level, (void)arg;
	strncat(log_lines, line, sizeof(log_lines) - strlen(log_lines) - 2);
	strcat(log_lines, "\n");
}

static inline int make_folder(void **state) {
	(void)state;
	ixdp_log_set(keep_log, NULL, IXDP_LOG_DEBUG);
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static inline int clear_folder(void **state) {
	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(names[i]);
	log_lines[0] = '\0';
	return 0;
}

static inline int remove_folder(void **state) {
	clear_folder(state);
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

/* --- wires
 * ----------------------------------------------------------------------------------------- */

static inline int try_open(struct wire **wire, const char *text) {
	static const uint8_t mac[6] = {2};
	struct softnic_name name;
	int err = softnic_name_parse(&name, text);

	if (err) return err;
	err = wire_open(wire, NULL, &name, mac);
	softnic_name_free(&name);
	return err;
}

static inline struct wire *plug(const char *text) {
	struct wire *wire = NULL;

	if (try_open(&wire, text)) fail_msg("%s: %s", text, ixdp_error());
	return wire;
}

static inline void unplug(struct wire *wire) { wire->ops->close(wire); }

static inline void expect_refused(const char *text, int err, const char *error) {
	struct wire *wire;

	assert_int_equal(try_open(&wire, text), -err);
	assert_string_equal(ixdp_error(), error);
}

static inline const uint8_t *peek(struct wire *wire, uint64_t now, size_t *len) {
	bool bad_crc = true;
	const uint8_t *frame = wire->ops->peek(wire, now, len, &bad_crc);

	if (frame) assert_false(bad_crc);
	return frame;
}

static inline bool take(struct wire *wire, uint64_t now) {
	size_t len;

	if (!peek(wire, now, &len)) return false;
	wire->ops->pop(wire);
	return true;
}

static inline struct ixdp_wire_stats stats_of(struct wire *wire) {
	struct ixdp_wire_stats stats;

	memset(&stats, 0xFF, sizeof(stats));
	wire->ops->stats(wire, &stats);
	assert_false(stats.drained);
	return stats;
}

/* --- files
 * ----------------------------------------------------------------------------------------- */

/* Byte i of frame n: no two frames alike. */
static inline void fill(uint8_t *frame, size_t len, unsigned n) {
	for (size_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(n * 31 + i * 7 + i / 256);
}

static inline void expect_frame(const uint8_t *frame, size_t len, unsigned n, size_t expected_len) {
	uint8_t expected[IXDP_FRAME_MAX];

	assert_int_equal(len, expected_len);
	fill(expected, len, n);
	assert_memory_equal(frame, expected, len);
}

static inline void expect_next(struct wire *wire, uint64_t now, unsigned n, size_t expected_len) {
	size_t len;
	const uint8_t *frame = peek(wire, now, &len);

	assert_non_null(frame);
	expect_frame(frame, len, n, expected_len);
}

/* A file by libpcap: frames of these lengths at these times (ns). */
static inline void write_file(unsigned precision, int link, const size_t *lens,
			      const uint64_t *times, unsigned n) {
	pcap_t *pcap = pcap_open_dead_with_tstamp_precision(link, 65535, precision);
	pcap_dumper_t *file = pcap_dump_open(pcap, "in");
	unsigned unit = precision == PCAP_TSTAMP_PRECISION_NANO ? 1 : 1000;
	uint8_t frame[9018];

	assert_non_null(file);
	for (unsigned i = 0; i < n; i++) {
		struct pcap_pkthdr header = {.caplen = (uint32_t)lens[i], .len = (uint32_t)lens[i]};

		header.ts.tv_sec = (time_t)(times[i] / SECOND);
		header.ts.tv_usec = (suseconds_t)(times[i] % SECOND / unit);
		fill(frame, lens[i], i);
		pcap_dump((u_char *)file, &header, frame);
	}
	pcap_dump_close(file);
	pcap_close(pcap);
}

static const size_t mixed[] = {60, 61, 1514, 1513, 64, 999};
static const uint64_t no_times[6];
