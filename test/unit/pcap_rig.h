/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of capture files share: a folder for them, frames that tell themselves apart. */
#pragma once

#include "wire_rig.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* The next frame, whatever it is, is taken. False: there is none. */
static inline bool take_any(struct wire *wire, uint64_t now) {
	size_t len;

	if (!peek(wire, now, &len)) return false;
	wire->ops->pop(wire);
	return true;
}

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
