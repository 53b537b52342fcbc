/* SPDX-License-Identifier: BSD-3-Clause */
/* Wires by themselves: frames up to an MTU of 9,000. */
#include "pcap_rig.h"

static void jumbo_frames_pass_generator_and_cable(void **state) {
	struct wire *gen = plug("g,peer=gen,count=100,size=9014");
	struct wire *a = plug("a,peer=b"), *b = plug("b");
	struct ixdp_wire_stats stats;
	size_t len;

	(void)state;
	for (const uint8_t *frame; (frame = peek(gen, 0, &len)); gen->ops->pop(gen)) {
		assert_int_equal(len, 9014);
		assert_true(a->ops->send(a, frame, len, 0));
		frame = peek(b, 0, &len);
		assert_non_null(frame);
		assert_int_equal(len, 9014);
		assert_true(gen->ops->send(gen, frame, len, 0));
		b->ops->pop(b);
	}
	stats = stats_of(gen);
	assert_int_equal(stats.to_port_bytes, 100 * 9014);
	assert_int_equal(stats.from_port_packets, 100);
	assert_int_equal(stats.lost + stats.corrupt + stats.foreign, 0);
	unplug(a);
	unplug(b);
	unplug(gen);
}

/* Sizes mixed so that the ring wraps at many places. */
static void a_loop_keeps_jumbo_frames_whole(void **state) {
	struct wire *loop = plug("a,peer=loop");
	uint8_t frame[IXDP_FRAME_MAX];
	unsigned sent = 0, seen = 0;

	(void)state;
	while (sent < 5000) {
		size_t len = 60 + sent * 7919 % (IXDP_FRAME_MAX - 59);

		fill(frame, len, sent);
		if (loop->ops->send(loop, frame, len, 0)) {
			sent++;
			continue;
		}
		for (unsigned i = 0; i < 10; i++, seen++) {
			expect_next(loop, 0, seen, 60 + seen * 7919 % (IXDP_FRAME_MAX - 59));
			loop->ops->pop(loop);
		}
	}
	assert_true(seen > 1000);
	unplug(loop);
}

/* With a VLAN tag they have 4 bytes more. */
static void jumbo_frames_are_played_and_captured(void **state) {
	static const size_t lens[] = {9014, 60, 9015, 9018, 1514, 9018};
	struct wire *wire;
	uint8_t frame[9018];
	size_t len;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_NANO, DLT_EN10MB, lens, no_times, 6);
	wire = plug("a,peer=pcap:in:out");
	for (unsigned i = 0; i < 6; i++) {
		const uint8_t *played = peek(wire, 0, &len);

		assert_int_equal(len, lens[i]);
		fill(frame, len, i);
		assert_memory_equal(played, frame, len);
		assert_true(wire->ops->send(wire, played, len, 0));
		wire->ops->pop(wire);
	}
	unplug(wire);
	assert_int_equal(rename("out", "in"), 0);
	wire = plug("a,peer=pcap:in");
	for (unsigned i = 0; i < 6; i++) {
		const uint8_t *played = peek(wire, 0, &len);

		assert_int_equal(len, lens[i]);
		fill(frame, len, i);
		assert_memory_equal(played, frame, len);
		wire->ops->pop(wire);
	}
	unplug(wire);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, clear_folder)
	const struct CMUnitTest tests[] = {
	    TEST(jumbo_frames_pass_generator_and_cable),
	    TEST(a_loop_keeps_jumbo_frames_whole),
	    TEST(jumbo_frames_are_played_and_captured),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
