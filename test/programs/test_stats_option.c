/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs say of statistics, of links that change, and of registers. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <ixdp/ixdp.h>

#include "program.h"

static struct program program;

static int tear_down(void **state) {
	(void)state;
	program_free(&program);
	return 0;
}

static void run(const char *const *argv) {
	program_start(&program, argv);
	if (program_wait(&program) != 0) fail_msg("%s", program.err.data);
}

/* Lines of stdout that have the text. */
static unsigned lines_with(const char *text) {
	unsigned lines = 0;

	for (const char *at = program.out.data; (at = strstr(at, text)); at++)
		lines++;
	return lines;
}

static void stats_are_printed_after_the_totals(void **state) {
	(void)state;
	run(PROGRAM_ARGS("ixdp-fwd", "--stats", "--tx-queues=2", "soft:a,peer=gen,count=100",
			 "soft:b"));
	const char *total = strstr(program.out.data, "total  soft:b");
	const char *stats = strstr(program.out.data, "   stats  ");

	assert_non_null(total);
	assert_true(stats > total);
	assert_int_equal(lines_with("\n   stats  soft:a: rx_packets 100\n"), 1);
	assert_int_equal(lines_with("\n   stats  soft:a: rx_64 100\n"), 1);
	assert_int_equal(lines_with("\n   stats  soft:a rx 0: bytes 6000\n"), 1);
	assert_int_equal(lines_with("\n   stats  soft:b: tx_bytes 6000\n"), 1);
	assert_int_equal(lines_with("\n   stats  soft:b tx 0: taken 100\n"), 1);
	/* Those that are 0 are left out. */
	assert_int_equal(lines_with("soft:b: rx_packets"), 0);
	assert_int_equal(lines_with("soft:b tx 1"), 0);
	program_free(&program);

	run(PROGRAM_ARGS("ixdp-fwd", "soft:a,peer=gen,count=100", "soft:b"));
	assert_int_equal(lines_with("stats"), 0);
}

static struct json_object *member(struct json_object *object, const char *name) {
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value)) fail_msg("no %s", name);
	return value;
}

static void assert_names(struct json_object *object, const char *const *names, unsigned n) {
	assert_int_equal(json_object_object_length(object), n);
	for (unsigned i = 0; i < n; i++)
		member(object, names[i]);
}

/* The last line of a program with one port. */
static struct json_object *last_object(void) {
	struct json_object *objects = program_objects(&program);

	return json_object_array_get_idx(objects, json_object_array_length(objects) - 1);
}

static void json_has_every_name(void **state) {
	unsigned n;

	(void)state;
	run(PROGRAM_ARGS("ixdp-pktgen", "--stats", "--json", "--count=64", "--rx-queues=3",
			 "--tx-queues=2", "soft:a,peer=loop"));
	struct json_object *last = last_object();
	struct json_object *rx = member(last, "rx_queues"), *tx = member(last, "tx_queues");
	const char *const *names = ixdp_stats_names(&n);

	assert_string_equal(json_object_get_string(member(last, "port")), "soft:a");
	assert_names(member(last, "stats"), names, n);
	assert_int_equal(json_int(member(last, "stats"), "rx_packets"), 64);
	assert_int_equal(json_int(member(last, "stats"), "tx_bytes"), 64 * 60);
	assert_int_equal(json_int(member(last, "stats"), "tx_paused"), 0);
	assert_int_equal(json_object_array_length(rx), 3);
	assert_int_equal(json_object_array_length(tx), 2);
	names = ixdp_rx_queue_stats_names(&n);
	assert_names(json_object_array_get_idx(rx, 2), names, n);
	int64_t packets = 0;

	for (size_t q = 0; q < 3; q++)
		packets += json_int(json_object_array_get_idx(rx, q), "packets");
	assert_int_equal(packets, 64);
	names = ixdp_tx_queue_stats_names(&n);
	assert_names(json_object_array_get_idx(tx, 1), names, n);
	assert_int_equal(json_int(json_object_array_get_idx(tx, 1), "taken"), 32);
}

static void capture_has_stats_too(void **state) {
	(void)state;
	run(PROGRAM_ARGS("ixdp-capture", "--stats", "--json", "-w", "/dev/null",
			 "soft:a,peer=gen,count=50,size=300"));
	struct json_object *stats = member(last_object(), "stats");

	assert_int_equal(json_int(stats, "rx_511"), 50);
	assert_int_equal(json_int(stats, "rx_dropped"), 0);
	assert_int_equal(json_object_array_length(member(last_object(), "tx_queues")), 0);
}

/* Up and down in turn, and never the same twice: looked at once a second, it flaps faster. */
static void links_that_change_are_said_once(void **state) {
	static const char up[] = "ixdp-fwd: warning: soft:b: link is up, 10000 Mbit/s\n";
	static const char down[] = "ixdp-fwd: warning: soft:b: link is down\n";
	bool was_up = true;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "soft:a,peer=gen,rate=1kpps",
					     "soft:b,fault=link-flap:100:600"));
	program_wait_stderr(&program, down);
	program_wait_stderr(&program, up);
	kill(program.pid, SIGINT);
	assert_int_equal(program_wait(&program), 0);
	for (const char *at = program.err.data; (at = strstr(at, "soft:b: link is ")); at++) {
		const bool is_up =
		    strncmp(at, strstr(up, "soft"), strlen("soft:b: link is u")) == 0;

		assert_true(is_up != was_up);
		was_up = is_up;
	}
}

static void registers_are_traced_on_demand(void **state) {
	(void)state;
	setenv("IXDP_TRACE", "regs", 1);
	run(PROGRAM_ARGS("ixdp-pktgen", "--count=1", "soft:a"));
	assert_non_null(strstr(program.err.data,
			       "ixdp-pktgen: debug: soft:a: write RXDCTL[0] 0x02000000 ENABLE=1 "
			       "(8.2.3.8.6)\n"));
	assert_null(strstr(program.out.data, "RXDCTL"));
	program_free(&program);

	setenv("IXDP_TRACE", "", 1);
	run(PROGRAM_ARGS("ixdp-pktgen", "--count=1", "--verbose", "soft:a"));
	assert_null(strstr(program.err.data, "RXDCTL"));
	program_free(&program);

	setenv("IXDP_TRACE", "packets", 1);
	program_start(&program, PROGRAM_ARGS("ixdp-doctor"));
	assert_int_equal(program_wait(&program), 2);
	assert_string_equal(program.err.data,
			    "ixdp-doctor: IXDP_TRACE=packets: only \"regs\" can be traced\n");
	unsetenv("IXDP_TRACE");
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(stats_are_printed_after_the_totals, tear_down),
	    cmocka_unit_test_teardown(json_has_every_name, tear_down),
	    cmocka_unit_test_teardown(capture_has_stats_too, tear_down),
	    cmocka_unit_test_teardown(links_that_change_are_said_once, tear_down),
	    cmocka_unit_test_teardown(registers_are_traced_on_demand, tear_down),
	};

	return cmocka_run_group_tests_name("stats_option", tests, NULL, NULL);
}
