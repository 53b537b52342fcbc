/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-pktgen from end to end: exact counts, rates, what comes back, and the frames themselves. */
#include "program.h"

#include <ixdp/frame.h>
#include <pcap/pcap.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The sink at the other end of the cable saw all that was sent, in order and whole. */
static void assert_sent(struct program *program, int64_t frames, int64_t size) {
	struct json_object *final = program_final(program, "soft:a");

	assert_int_equal(json_int(final, "tx_packets"), frames);
	assert_int_equal(json_int(final, "tx_bytes"), frames * size);
	assert_int_equal(json_int(final, "tx_dropped"), 0);
	assert_int_equal(json_int(final, "wire_rx_packets"), frames);
	assert_int_equal(json_int(final, "lost"), 0);
	assert_int_equal(json_int(final, "misordered"), 0);
	assert_int_equal(json_int(final, "corrupt"), 0);
	assert_int_equal(json_int(final, "foreign"), 0);
}

static void sends_an_exact_count(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "100003", "--size",
					     "60", "soft:a,peer=b"));
	assert_int_equal(program_wait(&program), 0);
	assert_sent(&program, 100003, 60);
	program_free(&program);
}

static void sends_every_kind_of_size(void **state) {
	static const char *const sizes[] = {"61", "65", "1513", "1514"};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct program program;

		program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "1023",
						     "--size", sizes[i], "soft:a"));
		assert_int_equal(program_wait(&program), 0);
		assert_sent(&program, 1023, strtol(sizes[i], NULL, 10));
		program_free(&program);
	}
}

static void sends_in_order_on_several_queues(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "10007", "--flows",
					     "7", "--tx-queues", "4", "--rx-queues", "2", "--batch",
					     "11", "--ring", "64", "soft:a"));
	assert_int_equal(program_wait(&program), 0);
	assert_sent(&program, 10007, 60);
	program_free(&program);
}

static void gets_back_what_it_sent(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "5000", "--flows", "3",
				   "--tx-queues", "3", "--rate", "50kpps", "soft:a,peer=loop"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	assert_int_equal(json_int(final, "tx_packets"), 5000);
	assert_int_equal(json_int(final, "rx_packets"), 5000);
	assert_int_equal(json_int(final, "rx_lost"), 0);
	assert_int_equal(json_int(final, "rx_misordered"), 0);
	assert_int_equal(json_int(final, "rx_corrupt"), 0);
	program_free(&program);
}

/* Each tenth frame comes back damaged and is dropped, the very last one among them. */
static void counts_what_does_not_come_back(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "1000", "--rate",
					     "50kpps", "soft:a,peer=loop,fault=bad-crc:10"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	assert_int_equal(json_int(final, "tx_packets"), 1000);
	assert_int_equal(json_int(final, "rx_packets"), 900);
	assert_int_equal(json_int(final, "rx_dropped"), 100);
	assert_int_equal(json_int(final, "rx_lost"), 100);
	assert_int_equal(json_int(final, "rx_misordered"), 0);
	program_free(&program);
}

/* The last one is missed as well when it is the first: not one comes back. */
static void counts_when_nothing_comes_back(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "1000", "--rate",
					     "50kpps", "soft:a,peer=loop,fault=bad-crc:1"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	assert_int_equal(json_int(final, "tx_packets"), 1000);
	assert_int_equal(json_int(final, "rx_packets"), 0);
	assert_int_equal(json_int(final, "rx_dropped"), 1000);
	assert_int_equal(json_int(final, "rx_lost"), 1000);
	program_free(&program);
}

/* A peer that goes on sending holds up the end no longer than a wire of which no end can be seen.
 */
static void ends_although_the_peer_goes_on(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--rate", "50kpps",
					     "soft:a,peer=gen,rate=50kpps,stop=off"));
	assert_non_null(program_line(&program));
	kill(program.pid, SIGINT);
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	assert_int_equal(program_error_lines(&program), 0);
	assert_int_equal(json_int(final, "tx_packets"), json_int(final, "wire_rx_packets"));
	assert_int_equal(json_int(final, "tx_dropped"), 0);
	assert_true(json_number(final, "t") < 5);
	program_free(&program);
}

/* Somebody else's frames come, ours go elsewhere: none of ours is lost on the way back. */
static void takes_nobody_elses_frames_for_its_own(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "5000", "--rate",
					     "50kpps", "soft:a,peer=gen,rate=20kpps"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	assert_int_equal(json_int(final, "tx_packets"), 5000);
	assert_int_equal(json_int(final, "wire_rx_packets"), 5000);
	assert_true(json_int(final, "rx_packets") > 0);
	assert_int_equal(json_int(final, "rx_packets"), json_int(final, "wire_tx_packets"));
	assert_int_equal(json_int(final, "rx_lost"), 0);
	program_free(&program);
}

static void says_nothing_about_returns_when_there_are_none(void **state) {
	struct json_object *member;
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "10", "soft:a"));
	assert_int_equal(program_wait(&program), 0);
	assert_false(
	    json_object_object_get_ex(program_final(&program, "soft:a"), "rx_lost", &member));
	program_free(&program);
}

static void keeps_the_rate(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--rate", "20kpps",
					     "--duration", "1", "soft:a"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");
	const int64_t sent = json_int(final, "tx_packets");

	assert_float_equal(json_number(final, "requested_mpps"), 0.02, 1e-9);
	assert_sent(&program, sent, 60);
	/* A busy machine may hold it back, nothing may hurry it: 32 are one batch. */
	assert_true(sent > 20000 / 10);
	assert_true((double)sent <= 20000 * json_number(final, "t") + 32);
	program_free(&program);
}

static void warns_of_more_than_the_line_carries(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--rate", "20Mpps", "--count",
					     "1000", "soft:a"));
	assert_int_equal(program_wait(&program), 0);
	assert_sent(&program, 1000, 60);
	assert_non_null(strstr(program.err.data, "--rate"));
	assert_non_null(strstr(program.err.data, "20"));
	assert_non_null(strstr(program.err.data, "14"));
	/* 10 Gbit/s carry 84 B a frame 14,880,952 times a second. */
	assert_float_equal(json_number(program_final(&program, "soft:a"), "requested_mpps"),
			   14.880952, 1e-6);
	program_free(&program);
}

static void sends_nothing_before_link(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "500",
					     "soft:a,fault=link-late:300"));
	assert_int_equal(program_wait(&program), 0);
	assert_sent(&program, 500, 60);
	assert_int_equal(json_int(program_final(&program, "soft:a"), "link"), 10000);
	program_free(&program);

	/* Without link not even the ring gets a frame: none is sent, none is left. */
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "500",
					     "soft:a,fault=link-late:100000"));
	program_wait_stderr(&program, "soft:a: waiting for link");
	kill(program.pid, SIGTERM);
	assert_int_equal(program_wait(&program), 0);
	assert_sent(&program, 0, 60);
	assert_int_equal(json_int(program_final(&program, "soft:a"), "link"), 0);
	program_free(&program);
}

static void sigterm_ends_it_with_totals(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--size", "1514", "--rate",
					     "20kpps", "soft:a,peer=loop"));
	assert_non_null(program_line(&program));
	kill(program.pid, SIGTERM);
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	assert_true(json_int(final, "tx_packets") > 0);
	assert_int_equal(json_int(final, "rx_packets"), json_int(final, "tx_packets"));
	assert_int_equal(json_int(final, "rx_lost"), 0);
	assert_int_equal(json_int(final, "tx_dropped"), 0);
	program_free(&program);
}

static void addresses_are_as_asked_for(void **state) {
	static const uint8_t dst[] = {0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee};
	static const uint8_t src[] = {0x06, 0x01, 0x23, 0x45, 0x67, 0x89};
	char folder[] = "/tmp/ixdp-pktgen-XXXXXX", path[64], port[96], error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	struct ixdp_frame_id id;
	struct program program;
	const u_char *data;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/out.pcap", folder);
	snprintf(port, sizeof(port), "soft:a,peer=pcap::%s", path);
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--count", "9", "--dst-mac",
					     "02:aa:BB:cc:dd:ee", "--src-mac", "06:01:23:45:67:89",
					     "--flows", "4", "--size", "99", port));
	assert_int_equal(program_wait(&program), 0);
	program_free(&program);

	pcap_t *pcap = pcap_open_offline(path, error);

	assert_non_null(pcap);
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(pcap_next_ex(pcap, &header, &data), 1);
		assert_int_equal(header->len, 99);
		assert_memory_equal(data, dst, 6);
		assert_memory_equal(data + 6, src, 6);
		assert_int_equal(ixdp_frame_read(data, header->len, &id), IXDP_FRAME_GOOD);
		assert_int_equal(id.flow, i % 4);
		assert_int_equal(id.seq, i / 4);
	}
	assert_int_equal(pcap_next_ex(pcap, &header, &data), PCAP_ERROR_BREAK);
	pcap_close(pcap);
	unlink(path);
	rmdir(folder);
}

/* The bytes of the next dump; 0 at the end. what: receives the line before them. */
static unsigned read_dump(struct program *program, char what[256], uint8_t *data) {
	const char *line = program_line(program);
	unsigned len = 0, size = 0;

	if (!line) return 0;
	assert_int_equal(sscanf(line, "# %u B", &size), 1);
	snprintf(what, 256, "%s", line);
	while (len < size) {
		char *at;

		line = program_line(program);
		assert_non_null(line);
		assert_int_equal(strtoul(line, &at, 16), len);
		while (*at)
			data[len++] = (uint8_t)strtoul(at, &at, 16);
	}
	assert_int_equal(len, size);
	return len;
}

static void dry_run_prints_the_frames(void **state) {
	struct program program;
	struct ixdp_frame_id id;
	uint8_t data[2048];
	char what[256], expected[64];
	unsigned frames = 0, len;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--dry-run", "--size", "77", "--flows",
					     "2", "--src-mac", "02:00:00:00:00:09"));
	assert_int_equal(program_wait(&program), 0);
	assert_int_equal(program.err.len, 0);
	while ((len = read_dump(&program, what, data))) {
		assert_int_equal(len, 77);
		assert_int_equal(ixdp_frame_read(data, len, &id), IXDP_FRAME_GOOD);
		assert_int_equal(id.flow, frames % 2);
		assert_int_equal(id.seq, frames / 2);
		snprintf(expected, sizeof(expected), "flow %u, sequence %u", frames % 2,
			 frames / 2);
		assert_non_null(strstr(what, expected));
		assert_non_null(strstr(what, "02:00:00:00:00:09 -> 02:00:00:00:00:01"));
		frames++;
	}
	assert_int_equal(frames, 4);
	program_free(&program);

	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--dry-run", "--count", "1"));
	assert_int_equal(program_wait(&program), 0);
	assert_int_equal(read_dump(&program, what, data), 60);
	assert_int_equal(read_dump(&program, what, data), 0);
	program_free(&program);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sends_an_exact_count),
	    cmocka_unit_test(sends_every_kind_of_size),
	    cmocka_unit_test(sends_in_order_on_several_queues),
	    cmocka_unit_test(gets_back_what_it_sent),
	    cmocka_unit_test(counts_what_does_not_come_back),
	    cmocka_unit_test(counts_when_nothing_comes_back),
	    cmocka_unit_test(ends_although_the_peer_goes_on),
	    cmocka_unit_test(takes_nobody_elses_frames_for_its_own),
	    cmocka_unit_test(says_nothing_about_returns_when_there_are_none),
	    cmocka_unit_test(keeps_the_rate),
	    cmocka_unit_test(warns_of_more_than_the_line_carries),
	    cmocka_unit_test(sends_nothing_before_link),
	    cmocka_unit_test(sigterm_ends_it_with_totals),
	    cmocka_unit_test(addresses_are_as_asked_for),
	    cmocka_unit_test(dry_run_prints_the_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
