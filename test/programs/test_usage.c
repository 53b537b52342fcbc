/* SPDX-License-Identifier: BSD-3-Clause */
/* How programs take their options, and how they complain: one line, and the right exit code. */
#include "program.h"

#include <ixdp/ixdp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void fwd_names_the_wrong_option(void **state) {
	static const struct {
		const char *args[4];
		const char *named;
	} cases[] = {
	    {{"--batch", "0"}, "--batch"},
	    {{"--batch", "257"}, "--batch"},
	    {{"--batch", "-1"}, "--batch"},
	    {{"--batch", "many"}, "--batch"},
	    {{"--batch"}, "--batch"},
	    {{"--duration", "0"}, "--duration"},
	    {{"--duration", "-1"}, "--duration"},
	    {{"--duration", "nan"}, "--duration"},
	    {{"--duration", "3s"}, "--duration"},
	    {{"--duration", ""}, "--duration"},
	    {{"--count", "0"}, "--count"},
	    {{"--count", "18446744073709551616"}, "--count"},
	    {{"--rx-queues", "0"}, "--rx-queues"},
	    {{"--rx-queues", "17"}, "--rx-queues"},
	    {{"--tx-queues", "129"}, "--tx-queues"},
	    {{"--ring", "100"}, "--ring"},
	    {{"--ring", "32"}, "--ring"},
	    {{"--ring", "8192"}, "--ring"},
	    {{"--mtu", "67"}, "--mtu"},
	    {{"--mtu", "9001"}, "--mtu"},
	    {{"--mtu", "jumbo"}, "--mtu"},
	    {{"--mtu=9000", "--batch=4"}, "--batch 4: a frame of --mtu 9000 may take 5"},
	    {{"--batch=1", "--mtu=2031"}, "--batch 1: a frame of --mtu 2031 may take 2"},
	    {{"--pause", "both"}, "--pause"},
	    {{"--pause", "tx,rx"}, "--pause"},
	    {{"--pause", ""}, "--pause"},
	    {{"--cpu", "x"}, "--cpu"},
	    {{"--cpu", "1-0"}, "--cpu"},
	    {{"--cpu", "0,"}, "--cpu"},
	    {{"--cpu", "1023"}, "--cpu"},
	    {{"--nonsense"}, "--nonsense"},
	    {{"soft:a", "soft:b", "soft:c"}, "soft:c"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const *args = cases[i].args;
		struct program program;

		program_start(&program, PROGRAM_ARGS("ixdp-fwd", args[0], args[1], args[2]));
		assert_int_equal(program_wait(&program), 2);
		assert_int_equal(program_lines(&program.err), 1);
		assert_non_null(strstr(program.err.data, cases[i].named));
		assert_int_equal(program.out.len, 0);
		program_free(&program);
	}
}

static void fwd_says_what_failed(void **state) {
	static const struct {
		const char *args[2];
		const char *named;
	} cases[] = {
	    {{"nonsense"}, "nonsense"},
	    {{"soft:a,colour=red"}, "colour"},
	    {{"soft:a,peer=pcap:/nonexistent/in.pcap"}, "/nonexistent/in.pcap"},
	    {{"soft:a", "soft:a"}, "soft:a"},
	    {{"ffff:ff:1f.7"}, "ffff:ff:1f.7"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct program program;

		program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--duration", "0.1",
						     cases[i].args[0], cases[i].args[1]));
		assert_int_equal(program_wait(&program), 1);
		assert_non_null(strstr(program.err.data, cases[i].named));
		assert_int_equal(program_error_lines(&program), 1);
		assert_int_equal(program.out.len, 0);
		program_free(&program);
	}
}

/* What the limits of options allow is taken, and works. */
static void fwd_takes_what_is_right(void **state) {
	static const char *const cases[][2] = {
	    {"--mtu=68", "--batch=1"},	  {"--mtu=2030", "--batch=1"}, {"--mtu=9000", "--batch=5"},
	    {"--pause=rx", "--mtu=1500"}, {"--pause=rx,tx", "--json"}, {"--pause=off", "--json"},
	    {"--pause=tx", "--json"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct program program;

		program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", cases[i][0], cases[i][1],
						     "soft:a,peer=gen,count=10", "soft:b"));
		assert_int_equal(program_wait(&program), 0);
		assert_int_equal(json_int(program_final(&program, "soft:b"), "wire_rx_packets"),
				 10);
		assert_int_equal(program_error_lines(&program), 0);
		program_free(&program);
	}
}

static void help_and_version_go_to_stdout(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--help"));
	assert_int_equal(program_wait(&program), 0);
	assert_non_null(strstr(program.out.data, "--duration=SEC"));
	assert_int_equal(program.err.len, 0);
	program_free(&program);

	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--version"));
	assert_int_equal(program_wait(&program), 0);
	assert_string_equal(program.out.data, "ixdp-fwd " IXDP_VERSION "\n");
	program_free(&program);
}

static void cpu_pins_the_worker_alone(void **state) {
	struct program program;
	cpu_set_t usable, pinned;
	char cpu[16];
	int first = 0;

	(void)state;
	sched_getaffinity(0, sizeof(usable), &usable);
	while (!CPU_ISSET(first, &usable))
		first++;
	snprintf(cpu, sizeof(cpu), "%d", first);
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--cpu", cpu, "soft:a"));
	assert_non_null(program_line(&program));
	assert_int_equal(sched_getaffinity(program.pid, sizeof(pinned), &pinned), 0);
	assert_int_equal(CPU_COUNT(&pinned), 1);
	assert_true(CPU_ISSET(first, &pinned));
	kill(program.pid, SIGTERM);
	assert_int_equal(program_wait(&program), 0);
	program_free(&program);
}

static void pktgen_names_the_wrong_option(void **state) {
	static const struct {
		const char *args[4];
		const char *named;
	} cases[] = {
	    {{NULL}, "DEV"},
	    {{"soft:a", "soft:b"}, "soft:b"},
	    {{"--size", "59", "soft:a"}, "--size"},
	    {{"--size", "9015", "soft:a"}, "--size"},
	    {{"--size=1515", "--mtu=1500", "soft:a"}, "--size 1515: too long for --mtu 1500"},
	    {{"--size=9014", "--batch=4", "soft:a"}, "--batch 4: a frame of --mtu 9000"},
	    {{"--rate", "fast", "soft:a"}, "--rate"},
	    {{"--rate", "100", "soft:a"}, "--rate"},
	    {{"--rate", "-1kpps", "soft:a"}, "--rate"},
	    {{"--flows", "0", "soft:a"}, "--flows"},
	    {{"--flows", "65537", "soft:a"}, "--flows"},
	    {{"--dst-mac", "02:00:00:00:00", "soft:a"}, "--dst-mac"},
	    {{"--dst-mac", "02:00:00:00:00:001", "soft:a"}, "--dst-mac"},
	    {{"--src-mac", "01:00:00:00:00:00", "soft:a"}, "--src-mac"},
	    {{"--src-mac", "02-00-00-00-00-00", "soft:a"}, "--src-mac"},
	    {{"--batch", "257", "soft:a"}, "--batch"},
	    {{"--dry-run", "--json"}, "--dry-run"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const *args = cases[i].args;
		struct program program;

		program_start(&program, PROGRAM_ARGS("ixdp-pktgen", args[0], args[1], args[2]));
		assert_int_equal(program_wait(&program), 2);
		assert_int_equal(program_lines(&program.err), 1);
		assert_non_null(strstr(program.err.data, cases[i].named));
		assert_int_equal(program.out.len, 0);
		program_free(&program);
	}
}

static void an_unknown_device_is_one_line(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "nonsense"));
	assert_int_equal(program_wait(&program), 1);
	assert_int_equal(program_lines(&program.err), 1);
	assert_non_null(strstr(program.err.data, "nonsense"));
	assert_int_equal(program.out.len, 0);
	program_free(&program);
}

static void refuses_a_closed_stdout(void **state) {
	struct program program;

	(void)state;
	program_start_mute(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--duration", "0.1"));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "stdout is closed"));
	program_free(&program);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fwd_names_the_wrong_option),
	    cmocka_unit_test(fwd_says_what_failed),
	    cmocka_unit_test(fwd_takes_what_is_right),
	    cmocka_unit_test(help_and_version_go_to_stdout),
	    cmocka_unit_test(cpu_pins_the_worker_alone),
	    cmocka_unit_test(pktgen_names_the_wrong_option),
	    cmocka_unit_test(an_unknown_device_is_one_line),
	    cmocka_unit_test(refuses_a_closed_stdout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
