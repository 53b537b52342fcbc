/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-doctor --selftest: what it says of a NIC that is well, and of one for each thing amiss. */
#include "doctor.h"
#include "program.h"

#include <ixdp/ixdp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const checks[] = {
    "open",	     "sizes",	   "rss",    "vlan-insert", "vlan-strip", "checksum-insert",
    "checksum-look", "statistics", "filter",
};

enum { CHECKS = sizeof(checks) / sizeof(checks[0]) };

static int selftest(struct program *program, const char *device) {
	program_start(program, PROGRAM_ARGS("ixdp-doctor", "--json", "--selftest", device));
	return program_wait(program);
}

static const char *status_of(struct program *program, const char *check) {
	struct json_object *finding = doctor_finding(program, "selftest", check);

	return finding ? doctor_text(finding, "status") : "";
}

static void a_port_that_is_well_passes(void **state) {
	struct program program;

	(void)state;
	assert_int_equal(selftest(&program, "soft:a"), 0);
	for (unsigned i = 0; i < CHECKS; i++)
		assert_string_equal(status_of(&program, checks[i]), "PASS");
	doctor_found(&program, "PASS", "selftest", "link", "up, 10000 Mbit/s");
	doctor_found(&program, "PASS", "selftest", "sizes", "10 sizes, 60 to 9014 B: 200 of each");
	doctor_found(&program, "PASS", "selftest", "rss", "0 left their flow's queue");
	doctor_found(&program, "PASS", "selftest", "filter",
		     "of 100 for us 100 came, of 100 for another address 0");
	/* All but those for another address come back. */
	doctor_found(&program, "INFO", "report", "counts",
		     "0 checks failed; frames sent 7000, received 6900, dropped 0");
	doctor_found(&program, "INFO", "report", "device", "soft:a, software NIC");
	doctor_found(&program, "INFO", "report", "version", "ixdp " IXDP_VERSION " on Linux");
	doctor_found(&program, "PASS", "verdict", "soft:a", "can run; 0 to mend");
	assert_int_equal(program_error_lines(&program), 0);
	program_free(&program);
}

/* Each check finds something, and says what; those that it does not concern pass. */
static void each_check_can_fail(void **state) {
	static const struct {
		const char *device;
		const char *failing[4]; /* all that must fail */
		const char *says;	/* the first one of them */
	} cases[] = {
	    {"soft:a,fault=corrupt:4001", {"rss"}, "3999 whole"},
	    {"soft:a,fault=miscount:100",
	     {"statistics"},
	     "sent 6400 (6960000 B), the NIC counts 6336"},
	    {"soft:a,fault=no-rss", {"rss"}, "on 4 queues 4000, 0, 0, 0"},
	    {"soft:a,fault=no-filter", {"filter"}, "another address 100"},
	    {"soft:a,fault=no-offload",
	     {"vlan-insert", "vlan-strip", "checksum-insert", "checksum-look"},
	     "200 not as asked for"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct program program;

		assert_int_equal(selftest(&program, cases[i].device), 1);
		for (unsigned k = 0; k < 4 && cases[i].failing[k]; k++)
			assert_string_equal(status_of(&program, cases[i].failing[k]), "FAIL");
		doctor_found(&program, "FAIL", "selftest", cases[i].failing[0], cases[i].says);
		doctor_found(&program, "FAIL", "selftest", cases[i].failing[0], "look at ");
		assert_string_equal(status_of(&program, "sizes"), "PASS");
		doctor_found(&program, "FAIL", "verdict", cases[i].device, "cannot run");
		program_free(&program);
	}
}

/* The size at which it begins is named, and what the NIC says of the frames. */
static void lost_and_damaged_frames_are_found(void **state) {
	struct program program;

	(void)state;
	assert_int_equal(selftest(&program, "soft:a,fault=len-zero:300"), 1);
	doctor_found(&program, "FAIL", "selftest", "sizes",
		     "61 B: of 200 sent 199 came back, 199 whole");
	doctor_found(&program, "FAIL", "selftest", "statistics", "length 0 ");
	program_free(&program);

	assert_int_equal(selftest(&program, "soft:a,fault=corrupt:700"), 1);
	doctor_found(&program, "FAIL", "selftest", "sizes",
		     "65 B: of 200 sent 200 came back, 199 whole");
	program_free(&program);
}

/* It is over soon, and does not go through all the checks. */
static void nothing_that_comes_back_ends_it(void **state) {
	struct program program;

	(void)state;
	assert_int_equal(selftest(&program, "soft:a,fault=rx-stop"), 1);
	doctor_found(&program, "FAIL", "selftest", "sizes", "60 B: of 32 sent 0 came back");
	doctor_found(&program, "FAIL", "selftest", "statistics", "no descriptor 32");
	assert_null(doctor_finding(&program, "selftest", "rss"));
	assert_non_null(doctor_finding(&program, "report", "counts"));
	program_free(&program);
}

static void what_cannot_be_opened_says_which_register(void **state) {
	struct program program;

	(void)state;
	assert_int_equal(selftest(&program, "soft:a,fault=reset-stuck"), 1);
	doctor_found(&program, "FAIL", "selftest", "open", "CTRL.RST");
	doctor_found(&program, "INFO", "report", "counts", "1 checks failed; frames sent 0");
	program_free(&program);

	assert_int_equal(selftest(&program, "0000:7f:00.0"), 1);
	doctor_found(&program, "FAIL", "nic", "0000:7f:00.0", "no such device");
	assert_null(doctor_finding(&program, "selftest", "open"));
	program_free(&program);
}

/* Loopback is inside: that the cable is not there is said, and no failure. */
static void needs_no_link(void **state) {
	struct program program;

	(void)state;
	assert_int_equal(selftest(&program, "soft:a,fault=link-down"), 0);
	doctor_found(&program, "WARN", "selftest", "link", "down after 5 s");
	doctor_found(&program, "INFO", "report", "link", "down");
	assert_string_equal(status_of(&program, "sizes"), "PASS");
	program_free(&program);
}

/* What the peer sends is not for the selftest. */
static void a_busy_cable_does_not_disturb(void **state) {
	struct program program;

	(void)state;
	assert_int_equal(selftest(&program, "soft:a,peer=gen,rate=10kpps"), 0);
	doctor_found(&program, "INFO", "report", "counts", "0 checks failed; frames sent 7000");
	program_free(&program);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_port_that_is_well_passes),
	    cmocka_unit_test(each_check_can_fail),
	    cmocka_unit_test(lost_and_damaged_frames_are_found),
	    cmocka_unit_test(nothing_that_comes_back_ends_it),
	    cmocka_unit_test(what_cannot_be_opened_says_which_register),
	    cmocka_unit_test(needs_no_link),
	    cmocka_unit_test(a_busy_cable_does_not_disturb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
