/* SPDX-License-Identifier: BSD-3-Clause */
/* Wires by themselves, with the test in place of the NIC: generator, sink, loop, cable. */
#include "wire_rig.h"

static void a_generator_sends_count_frames_to_the_port(void **state) {
	struct wire *gen = plug("a,peer=gen,count=3,size=77");
	struct ixdp_frame_id id;
	struct ixdp_wire_stats stats;
	size_t len;

	(void)state;
	assert_true(gen->waits);
	stats = stats_of(gen);
	assert_true(stats.source && stats.finite && stats.checks && !stats.exhausted);
	for (uint64_t seq = 0; seq < 3; seq++) {
		const uint8_t *frame = peek(gen, 0, &len);

		assert_int_equal(len, 77);
		assert_memory_equal(frame, mac, 6);
		assert_int_equal(frame[6], 0x02);
		assert_ptr_equal(frame, peek(gen, 0, &len)); /* it stays until pop */
		assert_false(stats_of(gen).exhausted);
		assert_true(take(gen, 0, &id));
		assert_int_equal(id.flow, 0);
		assert_int_equal(id.seq, seq);
	}
	assert_null(peek(gen, 0, &len));
	gen->ops->pop(gen);
	stats = stats_of(gen);
	assert_true(stats.exhausted);
	assert_int_equal(stats.to_port_packets, 3);
	assert_int_equal(stats.to_port_bytes, 3 * 77);
	assert_int_equal(stats.from_port_packets, 0);
	unplug(gen);
}

static void a_generator_without_count_is_endless_until_stopped(void **state) {
	struct wire *gen = plug("a,peer=gen,drop=on");
	struct ixdp_frame_id id;
	size_t len;

	(void)state;
	assert_false(gen->waits);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(take(gen, 0, &id));
	assert_non_null(peek(gen, 0, &len));
	assert_int_equal(len, 60);
	assert_false(stats_of(gen).finite);
	gen->ops->stop(gen);
	assert_null(peek(gen, 0, &len));
	gen->ops->pop(gen);
	assert_true(stats_of(gen).exhausted);
	assert_int_equal(stats_of(gen).to_port_packets, 1000);
	unplug(gen);
}

static void flows_take_turns(void **state) {
	struct wire *gen = plug("a,peer=gen,flows=65536");
	struct ixdp_frame_id id;

	(void)state;
	for (unsigned i = 0; i < 65536 + 10; i++) {
		assert_true(take(gen, 0, &id));
		assert_int_equal(id.flow, i % 65536);
		assert_int_equal(id.seq, i / 65536);
	}
	unplug(gen);
}

static void a_generator_keeps_its_rate(void **state) {
	struct wire *gen = plug("a,peer=gen,rate=200kpps");
	struct ixdp_frame_id id;
	uint64_t now = 5 * SECOND;
	unsigned sent = 0;

	(void)state;
	for (unsigned us = 0; us < 1000000; us++, now += 1000) {
		while (take(gen, now, &id))
			sent++;
	}
	assert_int_equal(sent, 200000);
	unplug(gen);
}

/* Ten milliseconds' worth at most; one where the flood would be lost; and 32 frames at least. */
static void a_generator_catches_up_on_little(void **state) {
	static const struct {
		const char *name;
		unsigned burst;
	} generators[] = {
	    {"a,peer=gen,rate=200kpps", 2000},
	    {"a,peer=gen,rate=200kpps,drop=on", 200},
	    {"a,peer=gen,rate=20kpps,drop=on", 32},
	};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct wire *gen = plug(generators[i].name);
		struct ixdp_frame_id id;
		unsigned burst = 0;

		assert_true(take(gen, 0, &id));
		while (take(gen, 10 * SECOND, &id))
			burst++;
		assert_int_equal(burst, generators[i].burst);
		unplug(gen);
	}
}

static void a_rate_in_bits_counts_the_wire(void **state) {
	struct wire *gen = plug("a,peer=gen,rate=1Gbit,size=101");
	struct ixdp_frame_id id;
	unsigned sent = 0;

	(void)state;
	for (uint64_t now = 0; now < SECOND / 10; now += 1000) {
		while (take(gen, now, &id))
			sent++;
	}
	assert_int_equal(sent, 100000); /* (101 + 24) * 8 bits: a million a second */
	unplug(gen);
}

static void generators_have_numbers_of_their_own(void **state) {
	struct wire *a = plug("a,peer=gen");
	struct wire *b = plug("b,peer=gen");
	struct ixdp_frame_id first;
	struct ixdp_frame_id second;

	(void)state;
	assert_true(take(a, 0, &first));
	assert_true(take(b, 0, &second));
	assert_int_not_equal(first.generator, second.generator);
	unplug(a);
	unplug(b);
}

static void keys_that_do_not_fit_are_refused_by_name(void **state) {
	(void)state;
	expect_refused("a,rate=5pps", EINVAL, "soft:a: rate= does not go with a sink");
	expect_refused("a,peer=b,count=5", EINVAL, "soft:a: count= does not go with peer=b");
	expect_refused("a,peer=pcap:x,size=60", EINVAL, "soft:a: size= does not go with peer=pcap");
	expect_refused("a,peer=loop,drop=on", EINVAL, "soft:a: drop= does not go with peer=loop");
	expect_refused("a,peer=gen,size=59", EINVAL,
		       "soft:a: size=59: must be a number from 60 to 9014");
	expect_refused("a,peer=gen,size=9015", EINVAL,
		       "soft:a: size=9015: must be a number from 60 to 9014");
	expect_refused("a,peer=gen,size=100x", EINVAL,
		       "soft:a: size=100x: must be a number from 60 to 9014");
	expect_refused("a,peer=gen,size= 60", EINVAL,
		       "soft:a: size= 60: must be a number from 60 to 9014");
	expect_refused("a,peer=gen,flows=0", EINVAL,
		       "soft:a: flows=0: must be a number from 1 to 65536");
	expect_refused("a,peer=gen,flows=65537", EINVAL,
		       "soft:a: flows=65537: must be a number from 1 to 65536");
	expect_refused("a,peer=gen,count=-1", EINVAL,
		       "soft:a: count=-1: must be a number from 1 to 18446744073709551614");
	expect_refused("a,peer=gen,count=99999999999999999999", EINVAL,
		       "soft:a: count=99999999999999999999: must be a number from 1 to "
		       "18446744073709551614");
	expect_refused("a,peer=gen,drop=yes", EINVAL, "soft:a: drop=yes: must be on or off");
	expect_refused("a,peer=gen,rate=10", EINVAL,
		       "soft:a: rate=: rate \"10\": write it as 200kpps, 2.5Gbit or 33% (a number "
		       "above 0; k, M and G are decimal)");
	expect_refused("a,peer=gen,size=1514,rate=1Mpps", ERANGE,
		       "soft:a: rate=: 1000000.00 packets per second are more than the line's "
		       "812743.82 with frames of 1514 B: ask for less");
	assert_true(wire_knows("peer") && wire_knows("rate") && wire_knows("size") &&
		    wire_knows("flows") && wire_knows("count") && wire_knows("drop") &&
		    wire_knows("stop"));
	assert_false(wire_knows("strict"));
}

static void peers_that_are_none_are_refused(void **state) {
	static const char *const peers[] = {"tap", "tap:eth0", "unix:/x",    "gen:5", "loop:x",
					    "b:c", "b c",      "pcap:a:b:c", ":",     "\\:"};
	char text[64];
	char error[200];

	(void)state;
	for (unsigned i = 0; i < sizeof(peers) / sizeof(*peers); i++) {
		snprintf(text, sizeof(text), "a,peer=%s", peers[i]);
		snprintf(error, sizeof(error),
			 "soft:a: peer=%s: must be another port's NAME, gen, loop or pcap:IN[:OUT]",
			 peers[i]);
		expect_refused(text, EINVAL, error);
	}
	expect_refused("a,peer=a", EINVAL,
		       "soft:a: peer=a: a cable has two ends; peer=loop sends back");
}

/* --- sink, and what is lost at the end
 * ------------------------------------------------------------ */

static void a_sink_counts_and_checks(void **state) {
	static const uint8_t other[60];
	struct wire *sink = plug("a");
	struct ixdp_wire_stats stats;
	uint8_t broken[60];
	size_t len;

	(void)state;
	assert_null(sink->ops->stop);
	for (uint64_t seq = 0; seq < 10; seq++)
		send_test_frame(sink, 60000, seq);
	send_test_frame(sink, 60000, 12);
	send_test_frame(sink, 60000, 11);
	send_test_frame(sink, 60000, 11);
	assert_true(sink->ops->send(sink, other, 60, 0));
	ixdp_frame_write(&(struct ixdp_frame_config){.size = 60}, 0, 0, broken);
	broken[59] ^= 0x10;
	assert_true(sink->ops->send(sink, broken, 60, 0));

	stats = stats_of(sink);
	assert_true(!stats.source && !stats.finite && !stats.exhausted && stats.checks);
	assert_int_equal(stats.from_port_packets, 15);
	assert_int_equal(stats.from_port_bytes, 15 * 60);
	assert_int_equal(stats.lost, 1);
	assert_int_equal(stats.misordered, 1);
	assert_int_equal(stats.foreign, 1);
	assert_int_equal(stats.corrupt, 1);
	assert_int_equal(stats.to_port_packets, 0);
	assert_null(peek(sink, 0, &len));
	unplug(sink);
}

static void the_last_frames_of_a_run_are_lost_visibly(void **state) {
	struct wire *gen = plug("a,peer=gen,count=100,flows=7");
	struct wire *sink = plug("b");

	(void)state;
	assert_int_equal(carry(gen, sink, 90), 90);
	assert_int_equal(stats_of(sink).lost, 0); /* more may come */
	assert_int_equal(carry(gen, NULL, 100), 10);
	assert_int_equal(stats_of(sink).lost, 10);
	assert_int_equal(stats_of(gen).lost, 0);
	unplug(gen);
	unplug(sink);
}

static void gaps_and_the_end_do_not_count_twice(void **state) {
	struct wire *gen = plug("a,peer=gen,count=100");
	struct wire *sink = plug("b");

	(void)state;
	carry(gen, sink, 50);
	carry(gen, NULL, 20);
	carry(gen, sink, 20);
	carry(gen, NULL, 10);
	assert_int_equal(stats_of(sink).lost, 30);
	assert_int_equal(stats_of(gen).lost, 0);
	unplug(sink);
	unplug(gen);
}

static void a_stopped_generator_tells_what_it_handed_out(void **state) {
	struct wire *gen = plug("a,peer=gen");
	struct wire *sink = plug("b");
	size_t len;

	(void)state;
	carry(gen, sink, 40);
	carry(gen, NULL, 2);
	peek(gen, 0, &len); /* shown, but never handed out */
	assert_int_equal(stats_of(sink).lost, 0);
	gen->ops->stop(gen);
	assert_int_equal(stats_of(sink).lost, 2);
	unplug(gen);
	unplug(sink);
}

static void what_no_sink_ever_saw_counts_at_the_generator(void **state) {
	struct wire *gen = plug("a,peer=gen,count=5");
	struct wire *other = plug("b,peer=gen,count=5");
	struct wire *sink = plug("c");

	(void)state;
	carry(gen, NULL, 5);
	carry(other, gen, 3);
	assert_int_equal(stats_of(gen).lost, 5);
	carry(other, NULL, 2);
	assert_int_equal(stats_of(gen).lost, 7); /* its own five, and two of the other's */
	assert_int_equal(stats_of(other).lost, 0);
	assert_int_equal(stats_of(sink).lost, 0);
	unplug(gen);
	unplug(other);
	unplug(sink);
}

/* Flows spread over two sinks: each sees a part, the missing ones count once. */
static void two_sinks_of_one_generator_count_its_end_once(void **state) {
	struct wire *gen = plug("a,peer=gen,count=40,flows=2");
	struct wire *b = plug("b");
	struct wire *c = plug("c");

	(void)state;
	for (unsigned i = 0; i < 15; i++) {
		assert_int_equal(carry(gen, b, 1), 1);
		assert_int_equal(carry(gen, c, 1), 1);
	}
	carry(gen, NULL, 10);
	assert_int_equal(stats_of(b).lost + stats_of(c).lost, 10);
	assert_int_equal(stats_of(gen).lost, 0);
	unplug(c); /* what it saw stays seen */
	assert_int_equal(stats_of(b).lost, 10);
	unplug(b);
	assert_int_equal(stats_of(gen).lost, 10);
	unplug(gen);
}

/* --- loop ----------------------------------------------------------------------------------------
 */

static void a_loop_brings_back_what_is_sent(void **state) {
	struct wire *gen = plug("g,peer=gen,size=61");
	struct wire *loop = plug("a,peer=loop");
	struct ixdp_wire_stats stats;
	struct ixdp_frame_id id;
	unsigned held;
	uint64_t seq = 0;

	(void)state;
	assert_true(loop->waits);
	held = carry(gen, loop, 100000);
	assert_in_range(held, 1000, 99999); /* bounded: then the port has to hold what it sends */
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < held / 3; i++) {
			assert_true(take(loop, 0, &id));
			assert_int_equal(id.seq, seq++);
		}
		assert_in_range(carry(gen, loop, 100000), held / 3 - 2, held / 3 + 2);
	}
	while (take(loop, 0, &id))
		assert_int_equal(id.seq, seq++);
	stats = stats_of(loop);
	assert_false(stats.checks || stats.source || stats.exhausted);
	assert_int_equal(stats.from_port_packets, seq);
	assert_int_equal(stats.to_port_packets, seq);
	assert_int_equal(stats.to_port_bytes, seq * 61);
	unplug(loop);
	unplug(gen);
}

/* Sizes mixed so that the ring wraps at every possible place. */
static void a_loop_keeps_frames_of_all_sizes_whole(void **state) {
	struct wire *loop = plug("a,peer=loop");
	struct ixdp_frame_config cfg = {.generator = 7};
	struct ixdp_frame_id id;
	uint8_t frame[IXDP_FRAME_MAX];
	uint64_t sent = 0;
	uint64_t seen = 0;

	(void)state;
	while (sent < 20000) {
		cfg.size = (uint16_t)(60 + sent * 7919 % 1455);
		ixdp_frame_write(&cfg, 0, sent, frame);
		if (loop->ops->send(loop, frame, cfg.size, 0)) {
			sent++;
			continue;
		}
		for (unsigned i = 0; i < 50; i++) {
			size_t len;

			assert_non_null(peek(loop, 0, &len));
			assert_int_equal(len, 60 + seen * 7919 % 1455);
			assert_true(take(loop, 0, &id));
			assert_int_equal(id.seq, seen++);
		}
	}
	assert_true(seen > 0);
	unplug(loop);
}

/* --- cable
 * ----------------------------------------------------------------------------------------- */

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_generator_sends_count_frames_to_the_port),
	    cmocka_unit_test(a_generator_without_count_is_endless_until_stopped),
	    cmocka_unit_test(flows_take_turns),
	    cmocka_unit_test(a_generator_keeps_its_rate),
	    cmocka_unit_test(a_generator_catches_up_on_little),
	    cmocka_unit_test(a_rate_in_bits_counts_the_wire),
	    cmocka_unit_test(generators_have_numbers_of_their_own),
	    cmocka_unit_test(keys_that_do_not_fit_are_refused_by_name),
	    cmocka_unit_test(peers_that_are_none_are_refused),
	    cmocka_unit_test(a_sink_counts_and_checks),
	    cmocka_unit_test(the_last_frames_of_a_run_are_lost_visibly),
	    cmocka_unit_test(gaps_and_the_end_do_not_count_twice),
	    cmocka_unit_test(a_stopped_generator_tells_what_it_handed_out),
	    cmocka_unit_test(what_no_sink_ever_saw_counts_at_the_generator),
	    cmocka_unit_test(two_sinks_of_one_generator_count_its_end_once),
	    cmocka_unit_test(a_loop_brings_back_what_is_sent),
	    cmocka_unit_test(a_loop_keeps_frames_of_all_sizes_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
