/* SPDX-License-Identifier: BSD-3-Clause */
/* Scripted sequences of frames, and what the checker must count. */
#include <ixdp/ixdp.h>

#include "softnic/checker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct ixdp_frame_checker *checker;

static int setup(void **state) {
	(void)state;
	checker = ixdp_frame_checker_new();
	return checker ? 0 : -1;
}

static int teardown(void **state) {
	(void)state;
	ixdp_frame_checker_free(checker);
	return 0;
}

static void see(unsigned generator, unsigned flow, uint64_t seq) {
	struct ixdp_frame_config cfg = {.size = 60, .generator = (uint16_t)generator};
	uint8_t frame[60];

	ixdp_frame_check(checker, frame, ixdp_frame_write(&cfg, (uint16_t)flow, seq, frame));
}

static void see_run(uint64_t from, uint64_t to) {
	for (uint64_t seq = from; seq <= to; seq++)
		see(1, 0, seq);
}

static void expect(uint64_t lost, uint64_t misordered, uint64_t duplicated) {
	struct ixdp_frame_counts counts;

	ixdp_frame_checker_counts(checker, &counts);
	assert_int_equal(counts.lost, lost);
	assert_int_equal(counts.misordered, misordered);
	assert_int_equal(counts.duplicated, duplicated);
	assert_int_equal(counts.good, counts.frames - counts.foreign - counts.corrupt);
}

static void frames_in_order_are_fine(void **state) {
	(void)state;
	see_run(0, 999);
	expect(0, 0, 0);
	assert_int_equal(ixdp_frame_checker_seen(checker, 1), 1000);
	assert_int_equal(ixdp_frame_checker_seen(checker, 2), 0);
}

static void gaps_are_lost_from_the_first_number_on(void **state) {
	(void)state;
	see(1, 0, 3);
	expect(3, 0, 0);
	see(1, 0, 5);
	expect(4, 0, 0);
	see(1, 0, 1005);
	expect(1003, 0, 0);
	assert_int_equal(ixdp_frame_checker_seen(checker, 1), 3);
	assert_int_equal(checker_accounted(checker, 1), 1006);
}

static void a_late_frame_fills_its_gap(void **state) {
	(void)state;
	see_run(0, 9);
	see_run(12, 20);
	expect(2, 0, 0);
	see(1, 0, 11);
	expect(1, 1, 0);
	see(1, 0, 10);
	expect(0, 2, 0);
	assert_int_equal(ixdp_frame_checker_seen(checker, 1), 21);
	assert_int_equal(checker_accounted(checker, 1), 21);
}

static void a_frame_that_comes_again_is_a_duplicate(void **state) {
	(void)state;
	see_run(0, 9);
	see(1, 0, 9);
	see(1, 0, 0);
	expect(0, 0, 2);
	see(1, 0, 12);
	see(1, 0, 11);
	see(1, 0, 11);
	expect(1, 1, 3);
	assert_int_equal(ixdp_frame_checker_seen(checker, 1), 12);
}

/* The latest number is 164: 101 is the last that the window still has, 100 is outside. */
static void the_window_has_64_numbers(void **state) {
	(void)state;
	see_run(0, 99);
	see_run(102, 164);
	expect(2, 0, 0);
	see(1, 0, 101);
	expect(1, 1, 0);
	see(1, 0, 101);
	expect(1, 1, 1);
	see(1, 0, 100);
	expect(1, 2, 1);
	see(1, 0, 100);
	expect(1, 3, 1);
}

static void a_gap_as_wide_as_the_window_is_followed(void **state) {
	(void)state;
	for (unsigned gap = 60; gap < 70; gap++) {
		teardown(NULL);
		setup(NULL);
		see(1, 0, 0);
		see(1, 0, gap + 1);
		expect(gap, 0, 0);
		see_run(gap > 63 ? gap - 62 : 1, gap);
		expect(gap > 63 ? gap - 63 : 0, gap > 63 ? 63 : gap, 0);
		see(1, 0, 0);
		expect(gap > 63 ? gap - 63 : 0, gap > 62 ? 64 : gap, gap > 62 ? 0 : 1);
	}
}

static void flows_and_generators_are_apart(void **state) {
	(void)state;
	for (uint64_t seq = 0; seq < 5; seq++) {
		for (unsigned flow = 0; flow < 65536; flow += 101) {
			see(1, flow, seq);
			see(65535, flow, seq);
		}
	}
	expect(0, 0, 0);
	see(65535, 303, 6);
	see(1, 404, 4);
	expect(1, 0, 1);
	assert_int_equal(checker_accounted(checker, 65535), 649 * 5 + 2);
}

/* Numbers that jump by more than any line could lose: no count becomes nonsense. */
static void wild_jumps_start_a_flow_anew(void **state) {
	static const uint64_t jumps[] = {UINT64_C(1) << 32, UINT64_MAX, UINT64_C(1) << 63,
					 UINT64_C(3) << 62};

	(void)state;
	see_run(0, 4);
	for (unsigned i = 0; i < sizeof(jumps) / sizeof(*jumps); i++) {
		see(1, 0, jumps[i] + 5);
		see(1, 0, jumps[i] + 6);
		expect(0, 0, 0);
	}
	see(1, 0, jumps[3] + 6 + (UINT64_C(1) << 32));
	expect((UINT64_C(1) << 32) - 1, 0, 0);
}

/* A number before 0 was never in the window, so it cannot take a loss back. */
static void numbers_before_the_start_do_not_count_losses_down(void **state) {
	(void)state;
	see(1, 0, 0);
	for (uint64_t i = 1; i < 64; i++)
		see(1, 0, -i);
	expect(0, 0, 63);
	see(1, 0, UINT64_C(1) << 40);
	see(1, 0, (UINT64_C(1) << 40) - 1);
	expect(0, 0, 64);
}

static void after_joining_again_nothing_is_missed(void **state) {
	(void)state;
	see_run(0, 9);
	see(1, 300, 0);
	see(1, 0, 11);
	checker_rejoin(checker);
	see(1, 0, 1000);
	see(1, 0, 1001);
	see(1, 300, 400);
	see(1, 600, 77);
	see(2, 0, 77);
	expect(1, 0, 0);
	see(1, 0, 1003);
	see(1, 600, 79);
	expect(3, 0, 0);
}

static void foreign_and_corrupt_frames_are_counted(void **state) {
	struct ixdp_frame_config cfg = {.size = 99, .generator = 1};
	struct ixdp_frame_counts counts;
	uint8_t frame[99];

	(void)state;
	ixdp_frame_write(&cfg, 0, 0, frame);
	ixdp_frame_check(checker, frame, 99);
	frame[98] ^= 1;
	ixdp_frame_check(checker, frame, 99);
	memset(frame, 0, sizeof(frame));
	ixdp_frame_check(checker, frame, 98);
	ixdp_frame_check(checker, frame, 0);
	ixdp_frame_checker_counts(checker, &counts);
	assert_int_equal(counts.frames, 4);
	assert_int_equal(counts.bytes, 99 + 99 + 98);
	assert_int_equal(counts.good, 1);
	assert_int_equal(counts.corrupt, 1);
	assert_int_equal(counts.foreign, 2);
}

static void any_bytes_of_any_length_are_harmless(void **state) {
	struct ixdp_frame_config cfg = {.size = 256, .generator = 1};
	struct ixdp_frame_counts counts;
	uint64_t random = 1;
	uint8_t frame[256];

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		if (i % 16 == 0) ixdp_frame_write(&cfg, 0, i / 16, frame);
		frame[random >> 33 & 0xFF] = (uint8_t)(random >> 56);
		ixdp_frame_check(checker, frame, random >> 41 & 0xFF);
	}
	ixdp_frame_checker_counts(checker, &counts);
	assert_int_equal(counts.frames, 100000);
	assert_int_equal(counts.frames, counts.good + counts.corrupt + counts.foreign);
}

/* Whole test frames of ever new generators and flows: memory is bounded, counting goes on. */
static void ever_new_flows_do_not_eat_the_memory(void **state) {
	struct ixdp_frame_counts counts;

	(void)state;
	for (unsigned i = 0; i < 10000; i++)
		see(i % 64, i / 64 * 256 % 65536, 9);
	see(40000, 0, 9);
	ixdp_frame_checker_counts(checker, &counts);
	assert_int_equal(counts.good, 10001);
	assert_int_equal(counts.lost, 9 * 4096);
	assert_int_equal(checker_accounted(checker, 40000), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(frames_in_order_are_fine, setup, teardown),
	    cmocka_unit_test_setup_teardown(gaps_are_lost_from_the_first_number_on, setup,
					    teardown),
	    cmocka_unit_test_setup_teardown(a_late_frame_fills_its_gap, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_frame_that_comes_again_is_a_duplicate, setup,
					    teardown),
	    cmocka_unit_test_setup_teardown(the_window_has_64_numbers, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_gap_as_wide_as_the_window_is_followed, setup,
					    teardown),
	    cmocka_unit_test_setup_teardown(flows_and_generators_are_apart, setup, teardown),
	    cmocka_unit_test_setup_teardown(wild_jumps_start_a_flow_anew, setup, teardown),
	    cmocka_unit_test_setup_teardown(numbers_before_the_start_do_not_count_losses_down,
					    setup, teardown),
	    cmocka_unit_test_setup_teardown(after_joining_again_nothing_is_missed, setup, teardown),
	    cmocka_unit_test_setup_teardown(foreign_and_corrupt_frames_are_counted, setup,
					    teardown),
	    cmocka_unit_test_setup_teardown(any_bytes_of_any_length_are_harmless, setup, teardown),
	    cmocka_unit_test_setup_teardown(ever_new_flows_do_not_eat_the_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
