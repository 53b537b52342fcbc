/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates: how they are written, what they mean for a frame's size, and that pacing keeps to them. */
#include <ixdp/ixdp.h>

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static void rates_are_read(void **state) {
	static const struct {
		const char *text;
		double value;
		enum ixdp_rate_unit unit;
	} good[] = {
	    {"1pps", 1, IXDP_RATE_PPS},
	    {"200kpps", 200e3, IXDP_RATE_PPS},
	    {"14.88Mpps", 14.88e6, IXDP_RATE_PPS},
	    {"0.5pps", 0.5, IXDP_RATE_PPS},
	    {"2.5Gbit", 2.5e9, IXDP_RATE_BIT},
	    {"800bit", 800, IXDP_RATE_BIT},
	    {"10Mbit", 10e6, IXDP_RATE_BIT},
	    {"33%", 33, IXDP_RATE_PERCENT},
	    {"0.1%", 0.1, IXDP_RATE_PERCENT},
	    {"101%", 101, IXDP_RATE_PERCENT},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct ixdp_rate rate;

		assert_int_equal(ixdp_rate_parse(good[i].text, &rate), 0);
		assert_true(rate.value == good[i].value);
		assert_int_equal(rate.unit, good[i].unit);
	}
}

static void nonsense_is_refused_with_an_example(void **state) {
	static const char *const bad[] = {
	    "",	      "10",	 "-5pps",  "+5pps",   "1e400pps", "1e3pps", "nan%",
	    "inf%",   "0pps",	 "0%",	   "0.0Gbit", "5 kpps",	  " 5kpps", "5kpps ",
	    "kpps",   "pps",	 "%",	   "5k",      "5k%",	  "5Kpps",  "5mbit",
	    "5gbit",  "5Gbit/s", "5Gbits", "0x10pps", ".5Gbit",	  "5.pps",  "1.2.3pps",
	    "1,5pps", "5pp",	 "5ppss",  "5kkpps",  "5%%",	  "5TBit",
	};
	char digits[500];

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char expected[200];
		struct ixdp_rate rate;

		snprintf(
		    expected, sizeof(expected),
		    "rate \"%s\": write it as 200kpps, 2.5Gbit or 33%% (a number above 0; k, M "
		    "and G are decimal)",
		    bad[i]);
		assert_int_equal(ixdp_rate_parse(bad[i], &rate), -EINVAL);
		assert_string_equal(ixdp_error(), expected);
	}
	memset(digits, '9', sizeof(digits));
	strcpy(digits + 400, "pps");
	assert_int_equal(ixdp_rate_parse(digits, &(struct ixdp_rate){0}), -EINVAL);
}

/* Found by fuzz_name. */
static void refusal_of_a_rate_is_one_line(void **state) {
	struct ixdp_rate rate;

	(void)state;
	assert_int_equal(ixdp_rate_parse("5k\npps", &rate), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "rate \"5k\":"));
	assert_null(strchr(ixdp_error(), '\n'));
	assert_int_equal(ixdp_rate_parse("\x1b[2J", &rate), -EINVAL);
	assert_null(strchr(ixdp_error(), '\x1b'));
}

static double pps_of(const char *text, unsigned size) {
	struct ixdp_rate rate;
	double pps;

	assert_int_equal(ixdp_rate_parse(text, &rate), 0);
	assert_int_equal(ixdp_rate_pps(&rate, size, &pps), 0);
	return pps;
}

static bool close_to(double a, double b) { return fabs(a - b) < 0.005; }

/* Sizes are without FCS: 60 is the shortest frame, 84 bytes on the wire. */
static void rates_count_what_is_on_the_wire(void **state) {
	(void)state;
	assert_true(close_to(pps_of("100%", 60), 14880952.38));
	assert_true(close_to(pps_of("10Gbit", 60), 14880952.38));
	assert_true(close_to(pps_of("1%", 60), 148809.52));
	assert_true(close_to(pps_of("33%", 61), 33e8 / (85 * 8)));
	assert_true(close_to(pps_of("100%", 1514), 812743.82));
	assert_true(close_to(pps_of("1Gbit", 1514), 81274.38));
	assert_true(pps_of("200kpps", 60) == 200e3);
	assert_true(pps_of("200kpps", 1514) == 200e3);
	assert_true(pps_of("14880952pps", 60) == 14880952);
}

static void more_than_the_line_carries_is_reported(void **state) {
	struct ixdp_rate rate;
	double pps;

	(void)state;
	assert_int_equal(ixdp_rate_parse("20Mpps", &rate), 0);
	assert_int_equal(ixdp_rate_pps(&rate, 60, &pps), -ERANGE);
	assert_true(close_to(pps, 14880952.38));
	assert_string_equal(ixdp_error(),
			    "20000000.00 packets per second are more than the line's 14880952.38 "
			    "with frames of 60 B: ask for less");
	assert_int_equal(ixdp_rate_parse("101%", &rate), 0);
	assert_int_equal(ixdp_rate_pps(&rate, 1514, &pps), -ERANGE);
	assert_true(close_to(pps, 812743.82));
	assert_int_equal(ixdp_rate_parse("14880953pps", &rate), 0);
	assert_int_equal(ixdp_rate_pps(&rate, 60, &pps), -ERANGE);
	assert_int_equal(ixdp_rate_parse("812744pps", &rate), 0);
	assert_int_equal(ixdp_rate_pps(&rate, 1514, &pps), -ERANGE);
	assert_int_equal(ixdp_rate_pps(&rate, 1513, &pps), 0);
}

/* Takes what is due, looking every step_ns (odd numbers, so that no grid helps), for a time. */
static uint64_t run(struct ixdp_pacer *pacer, uint64_t *now, uint64_t step, uint64_t duration) {
	uint64_t end = *now + duration;
	uint64_t sent = 0;

	for (; *now < end; *now += step) {
		unsigned due = ixdp_pacer_due(pacer, *now, UINT32_MAX);

		assert_true(due <= pacer->burst);
		ixdp_pacer_sent(pacer, due);
		sent += due;
	}
	return sent;
}

static void one_second_has_as_many_frames_as_the_rate_says(void **state) {
	static const double rates[] = {1, 7, 1000, 14880952, 14880952.38, 148809.52, 3333.33};

	(void)state;
	for (unsigned i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		for (uint64_t step = 97; step < 2000000; step = step * 37 + 1) {
			/* What piles up between two looks must fit into a burst. */
			unsigned burst = (unsigned)(rates[i] * (double)step / 1e9) + 1;
			uint64_t now = 123456789;
			struct ixdp_pacer pacer;
			double sent;

			ixdp_pacer_init(&pacer, rates[i], burst);
			sent = (double)run(&pacer, &now, step, SECOND);
			/* The first one is due at once: whole frames, so one may be there more. */
			assert_true(fabs(sent - rates[i]) <= 1 + rates[i] * 0.001);
			assert_true(sent >= floor(rates[i] * 0.999));
		}
	}
}

/* Roundings must not add up: after an hour no frame is missing. */
static void an_hour_has_as_many_frames_as_the_rate_says(void **state) {
	static const double rates[] = {7, 999.9, 812743.82};

	(void)state;
	for (unsigned i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct ixdp_pacer pacer;
		uint64_t now = 0;
		uint64_t sent;

		ixdp_pacer_init(&pacer, rates[i], 1000000);
		sent = run(&pacer, &now, 10000019, 3600 * SECOND);
		assert_true(fabs((double)sent - rates[i] * 3600) <= 1 + rates[i] * 0.010001);
	}
}

static void the_first_frame_is_due_at_once_the_second_in_time(void **state) {
	struct ixdp_pacer pacer;

	(void)state;
	ixdp_pacer_init(&pacer, 4, 8);
	assert_int_equal(ixdp_pacer_due(&pacer, 0, 10), 1);
	assert_int_equal(ixdp_pacer_due(&pacer, 0, 10), 1);
	ixdp_pacer_sent(&pacer, 1);
	assert_int_equal(ixdp_pacer_due(&pacer, 0, 10), 0);
	assert_int_equal(ixdp_pacer_due(&pacer, SECOND / 4 - 1, 10), 0);
	assert_int_equal(ixdp_pacer_due(&pacer, SECOND / 4, 10), 1);
	assert_int_equal(ixdp_pacer_due(&pacer, SECOND, 10), 4);
	assert_int_equal(ixdp_pacer_due(&pacer, SECOND, 3), 3);
	assert_int_equal(ixdp_pacer_due(&pacer, SECOND, 0), 0);
}

/* After a stall a burst, then the rate again: what was missed is not made up for. */
static void a_stall_is_not_followed_by_a_flood(void **state) {
	struct ixdp_pacer pacer;
	uint64_t now = 0;

	(void)state;
	ixdp_pacer_init(&pacer, 1000, 32);
	assert_int_equal(run(&pacer, &now, 100000, SECOND), 1000);
	now += 10 * SECOND;
	assert_int_equal(ixdp_pacer_due(&pacer, now, 1000), 32);
	assert_int_equal(run(&pacer, &now, 100000, SECOND), 32 + 999);
}

static void a_clock_that_goes_back_sends_nothing(void **state) {
	struct ixdp_pacer pacer;

	(void)state;
	ixdp_pacer_init(&pacer, 1e6, 32);
	ixdp_pacer_sent(&pacer, ixdp_pacer_due(&pacer, SECOND, 1));
	assert_int_equal(ixdp_pacer_due(&pacer, 0, 100), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rates_are_read),
	    cmocka_unit_test(nonsense_is_refused_with_an_example),
	    cmocka_unit_test(refusal_of_a_rate_is_one_line),
	    cmocka_unit_test(rates_count_what_is_on_the_wire),
	    cmocka_unit_test(more_than_the_line_carries_is_reported),
	    cmocka_unit_test(one_second_has_as_many_frames_as_the_rate_says),
	    cmocka_unit_test(an_hour_has_as_many_frames_as_the_rate_says),
	    cmocka_unit_test(the_first_frame_is_due_at_once_the_second_in_time),
	    cmocka_unit_test(a_stall_is_not_followed_by_a_flood),
	    cmocka_unit_test(a_clock_that_goes_back_sends_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
