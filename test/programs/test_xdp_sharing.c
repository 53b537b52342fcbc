/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-xdp from end to end: many workers, each of which sends, and which TX queues lock for it. */
#include "xdp_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 32 };

/* A turn is 4 batches at most: so many frames are enough for each worker to have had two. */
static const char *port_for(char *text, size_t size, unsigned threads) {
	snprintf(text, size, "soft:a,peer=gen,count=%u", 2 * threads * 4 * BATCH);
	return text;
}

static void tx_with(const char *threads, const char *queues) {
	const unsigned n = strtoul(threads, NULL, 10), nq = strtoul(queues, NULL, 10);
	struct program program;
	char port[64];

	program_start(&program,
		      PROGRAM_ARGS("ixdp-xdp", "--prog", "tx", "--threads", threads, "--queues",
				   queues, "--json", port_for(port, sizeof(port), n)));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	xdp_assert_identity(final);
	assert_int_equal(xdp_verdict(final, "tx") + xdp_verdict(final, "tx_full"),
			 json_int(final, "rx_packets"));
	assert_int_equal(json_int(final, "tx_dropped"), xdp_verdict(final, "tx_full"));
	xdp_assert_workers_sent(final, final, n, nq);
	xdp_assert_shared(final, n, nq, BATCH);
	if (nq == 1) {
		/* One queue keeps the order of them all. */
		assert_int_equal(json_int(final, "misordered"), 0);
		assert_int_equal(json_int(final, "lost"), xdp_verdict(final, "tx_full"));
	}
	program_free(&program);
}

static void with_130_workers_all_64_queues_lock(void **state) {
	(void)state;
	tx_with("130", "64");
}

static void with_65_workers_queue_0_alone_locks(void **state) {
	(void)state;
	tx_with("65", "64");
}

static void with_64_workers_none_locks(void **state) {
	(void)state;
	tx_with("64", "64");
}

static void many_workers_on_one_queue_keep_the_order(void **state) {
	(void)state;
	tx_with("7", "1");
}

static void one_worker_does_it_all(void **state) {
	(void)state;
	tx_with("1", "1");
}

static void redirect_with(const char *threads) {
	const unsigned n = strtoul(threads, NULL, 10);
	struct program program;
	char port[64];

	program_start(&program,
		      PROGRAM_ARGS("ixdp-xdp", "--prog=redirect", "--threads", threads, "--queues",
				   "64", "--json", port_for(port, sizeof(port), n), "soft:b"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");
	struct json_object *b = program_final(&program, "soft:b");

	xdp_assert_identity(a);
	xdp_assert_identity(b);
	assert_int_equal(xdp_verdict(a, "redirect") + xdp_verdict(a, "redirect_err"),
			 json_int(a, "rx_packets"));
	assert_int_equal(json_int(b, "wire_rx_packets"), xdp_verdict(a, "redirect"));
	assert_int_equal(json_int(b, "tx_dropped"), xdp_verdict(a, "redirect_err"));
	assert_int_equal(json_int(a, "tx_dropped"), 0);
	assert_int_equal(json_int(a, "wire_rx_packets"), 0);
	xdp_assert_workers_sent(a, b, n, 64);
	xdp_assert_shared(b, n, 64, BATCH);
	program_free(&program);
}

static void redirects_with_130_workers(void **state) {
	(void)state;
	redirect_with("130");
}

static void redirects_with_65_workers(void **state) {
	(void)state;
	redirect_with("65");
}

static void redirects_with_64_workers(void **state) {
	(void)state;
	redirect_with("64");
}

/* Both ways at once, on several RX queues: workers come to the one TX queue at the same time. */
static void redirects_both_ways_from_all_rx_queues(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-xdp", "--prog=redirect", "--threads=6",
					     "--queues=1", "--rx-queues=3", "--json",
					     "soft:a,peer=gen,flows=100,count=30000",
					     "soft:b,peer=gen,flows=100,count=20000"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");
	struct json_object *b = program_final(&program, "soft:b");

	xdp_assert_identity(a);
	xdp_assert_identity(b);
	assert_int_equal(json_int(a, "rx_packets"), 30000);
	assert_int_equal(json_int(b, "wire_rx_packets"), xdp_verdict(a, "redirect"));
	assert_int_equal(json_int(a, "wire_rx_packets"), xdp_verdict(b, "redirect"));
	assert_int_equal(json_int(a, "misordered") + json_int(b, "misordered"), 0);
	assert_int_equal(json_object_array_length(xdp_array(a, "verdicts")), 3);
	xdp_assert_workers_sent(a, b, 6, 1);
	xdp_assert_workers_sent(b, a, 6, 1);
	program_free(&program);
}

/* Fewer workers than RX queues: none of these is forgotten. */
static void two_workers_serve_three_rx_queues(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-xdp", "--prog=drop", "--threads=2", "--rx-queues=3",
				   "--json", "soft:a,peer=gen,flows=100,count=3000"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");
	struct json_object *verdicts = xdp_array(final, "verdicts");

	xdp_assert_identity(final);
	assert_int_equal(json_object_array_length(verdicts), 3);
	for (unsigned q = 0; q < 3; q++)
		assert_true(json_int(json_object_array_get_idx(verdicts, q), "drop") > 0);
	program_free(&program);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(with_130_workers_all_64_queues_lock),
	    cmocka_unit_test(with_65_workers_queue_0_alone_locks),
	    cmocka_unit_test(with_64_workers_none_locks),
	    cmocka_unit_test(many_workers_on_one_queue_keep_the_order),
	    cmocka_unit_test(one_worker_does_it_all),
	    cmocka_unit_test(redirects_with_130_workers),
	    cmocka_unit_test(redirects_with_65_workers),
	    cmocka_unit_test(redirects_with_64_workers),
	    cmocka_unit_test(redirects_both_ways_from_all_rx_queues),
	    cmocka_unit_test(two_workers_serve_three_rx_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
