/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-xdp and ixdp-fwd --threads from end to end: what programs do, how it ends, what it says. */
#include "capture.h"
#include "xdp_program.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { BATCH = 32 };

/* --- programs ------------------------------------------------------------------------------ */

static void only_receives(const char *prog, const char *name) {
	struct program program;

	program_start(&program, PROGRAM_ARGS("ixdp-xdp", "--prog", prog, "--threads", "3", "--json",
					     "soft:a,peer=gen,count=20000"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	xdp_assert_identity(final);
	assert_int_equal(xdp_verdict(final, name), 20000);
	assert_int_equal(json_int(final, "rx_packets"), 20000);
	assert_int_equal(json_int(final, "wire_rx_packets"), 0);
	assert_int_equal(xdp_sum(final, "xdp_tx", "locked"), 0);
	program_free(&program);
}

static void drop_drops(void **state) {
	(void)state;
	only_receives("drop", "drop");
}

/* Were frames not freed, rings would soon be without buffers. */
static void pass_passes_and_frees(void **state) {
	(void)state;
	only_receives("pass", "pass");
}

/* A folder with a capture of `frames` frames, and room for another. */
struct files {
	char folder[32], in[64], out[64];
};

static void make_files(struct files *files, unsigned frames) {
	strcpy(files->folder, "/tmp/ixdp-xdp-XXXXXX");
	assert_non_null(mkdtemp(files->folder));
	snprintf(files->in, sizeof(files->in), "%s/in.pcap", files->folder);
	snprintf(files->out, sizeof(files->out), "%s/out.pcap", files->folder);
	capture_write(files->in, 0, frames);
}

static void remove_files(const struct files *files) {
	unlink(files->in);
	unlink(files->out);
	rmdir(files->folder);
}

/* All frames fit the rings, so that none is lost however slow a thread is. */
static void through_captures(const struct files *files, const char *prog) {
	struct program program;
	char port[192];

	snprintf(port, sizeof(port), "soft:a,peer=pcap:%s:%s", files->in, files->out);
	program_start(&program,
		      PROGRAM_ARGS("ixdp-xdp", "--prog", prog, "--ring=4096", "--json", port));
	assert_int_equal(program_wait(&program), 0);
	assert_int_equal(json_int(program_final(&program, "soft:a"), "wire_rx_packets"),
			 CAPTURE_LENGTHS);
	program_free(&program);
}

static void tx_sends_back_byte_for_byte(void **state) {
	struct files files;

	(void)state;
	make_files(&files, CAPTURE_LENGTHS);
	through_captures(&files, "tx");
	assert_int_equal(capture_read(files.out, 0, IXDP_FRAME_MAX), CAPTURE_LENGTHS);
	remove_files(&files);
}

/* Twice is as they were; once is not, and differs in the addresses alone. */
static void swap_exchanges_the_addresses(void **state) {
	uint8_t before[64], after[64];
	struct files files;
	FILE *in, *out;

	(void)state;
	make_files(&files, CAPTURE_LENGTHS);
	through_captures(&files, "swap");
	in = fopen(files.in, "rb");
	out = fopen(files.out, "rb");
	/* Behind the headers of file and record: the first frame's beginning. */
	assert_true(in && out && !fseek(in, 24 + 16, SEEK_SET) && !fseek(out, 24 + 16, SEEK_SET));
	assert_int_equal(fread(before, 1, IXDP_FRAME_MIN, in), IXDP_FRAME_MIN);
	assert_int_equal(fread(after, 1, IXDP_FRAME_MIN, out), IXDP_FRAME_MIN);
	fclose(in);
	fclose(out);
	assert_memory_not_equal(before, before + 6, 6);
	assert_memory_equal(after, before + 6, 6);
	assert_memory_equal(after + 6, before, 6);
	assert_memory_equal(after + 12, before + 12, IXDP_FRAME_MIN - 12);

	rename(files.out, files.in);
	through_captures(&files, "swap");
	assert_int_equal(capture_read(files.out, 0, IXDP_FRAME_MAX), CAPTURE_LENGTHS);
	remove_files(&files);
}

/* --- ixdp-fwd --threads -------------------------------------------------------------------- */

/* Four workers take turns at one RX queue, and at one TX queue: frames stay in order. */
static void fwd_threads_forward_a_capture_byte_for_byte(void **state) {
	const unsigned frames = 2 * CAPTURE_LENGTHS + 5;
	char port_a[96], port_b[96];
	struct program program;
	struct files files;

	(void)state;
	make_files(&files, frames);
	snprintf(port_a, sizeof(port_a), "soft:a,peer=pcap:%s", files.in);
	snprintf(port_b, sizeof(port_b), "soft:b,peer=pcap::%s", files.out);
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--threads", "4", "--ring", "4096",
					     "--json", port_a, port_b));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");
	struct json_object *b = program_final(&program, "soft:b");

	assert_int_equal(xdp_verdict(a, "redirect"), frames);
	assert_int_equal(json_int(b, "tx_packets"), frames);
	assert_int_equal(json_int(b, "tx_dropped"), 0);
	xdp_assert_workers_sent(a, b, 4, 1);
	xdp_assert_shared(b, 4, 1, BATCH);
	program_free(&program);
	assert_int_equal(capture_read(files.out, 0, IXDP_FRAME_MAX), frames);
	remove_files(&files);
}

static void fwd_threads_forward_back_out_of_one_port(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--threads=3", "--rx-queues=2", "--tx-queues=3",
				   "--json", "soft:a,peer=gen,flows=50,count=5000"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");

	xdp_assert_identity(a);
	assert_int_equal(xdp_verdict(a, "redirect") + xdp_verdict(a, "redirect_err"), 5000);
	xdp_assert_workers_sent(a, a, 3, 3);
	program_free(&program);
}

/* --- how it ends, and what it says --------------------------------------------------------- */

static void intervals_add_up(void **state) {
	static const char *const counters[] = {"tx", "tx_full", "pass"};
	int64_t verdicts[3] = {0}, packets = 0, locked = 0, sends = 0, all = 0;
	struct json_object *objects, *final;
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-xdp", "--prog=tx", "--threads=3", "--queues=2",
				   "--duration=1.2", "--json", "soft:a,peer=gen,rate=50kpps"));
	assert_int_equal(program_wait(&program), 0);
	final = program_final(&program, "soft:a");
	objects = program_objects(&program);
	assert_true(json_object_array_length(objects) >= 3);
	for (size_t i = 0; i + 1 < json_object_array_length(objects); i++) {
		struct json_object *object = json_object_array_get_idx(objects, i);

		for (unsigned c = 0; c < 3; c++)
			verdicts[c] += xdp_verdict(object, counters[c]);
		packets += xdp_sum(object, "xdp_tx", "packets");
		locked += xdp_sum(object, "xdp_tx", "locked");
		sends += json_object_get_int64(
		    json_object_array_get_idx(xdp_array(object, "worker_sends"), 1));
	}
	for (unsigned c = 0; c < 3; c++) {
		assert_int_equal(verdicts[c], xdp_verdict(final, counters[c]));
		all += verdicts[c];
	}
	assert_int_equal(all, json_int(final, "rx_packets"));
	assert_int_equal(packets, xdp_sum(final, "xdp_tx", "packets"));
	assert_int_equal(locked, xdp_sum(final, "xdp_tx", "locked"));
	assert_int_equal(sends, json_object_get_int64(json_object_array_get_idx(
				    xdp_array(final, "worker_sends"), 1)));
	program_free(&program);
}

static void a_signal_ends_it_with_totals(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-xdp", "--prog=tx", "--threads=130", "--json",
					     "soft:a,peer=gen,rate=50kpps"));
	assert_non_null(program_line(&program));
	assert_int_equal(kill(program.pid, SIGTERM), 0);
	assert_int_equal(program_wait(&program), 0);
	xdp_assert_identity(program_final(&program, "soft:a"));
	program_free(&program);
}

static void ends_at_count(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-xdp", "--prog=drop", "--count=1000", "--json",
					     "soft:a,peer=gen,rate=50kpps"));
	assert_int_equal(program_wait(&program), 0);
	assert_true(xdp_verdict(program_final(&program, "soft:a"), "drop") >= 1000);
	xdp_assert_identity(program_final(&program, "soft:a"));
	program_free(&program);
}

static void a_device_that_goes_ends_it(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-xdp", "--prog=tx", "--threads=9", "--json",
					     "soft:a,peer=gen,fault=gone-after:500"));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "device has gone"));
	program_free(&program);
}

static void says_who_shares_what(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-xdp", "--prog=tx", "--threads=130",
					     "soft:a,peer=gen,count=40000"));
	assert_int_equal(program_wait(&program), 0);
	assert_non_null(strstr(program.out.data,
			       "soft:a: 130 workers on 64 XDP TX queues: queues 0 to 1 have 3 "
			       "each, and a lock; queues 2 to 63 have 2 each, and a lock\n"));
	assert_non_null(strstr(program.out.data, "rx queue 0: tx "));
	assert_non_null(strstr(program.out.data, "xdp tx queue 63: packets "));
	assert_non_null(strstr(program.out.data, "130 of 130 workers have sent"));
	assert_int_equal(program_error_lines(&program), 0);
	program_free(&program);

	program_start(&program, PROGRAM_ARGS("ixdp-xdp", "--threads=65", "--json",
					     "soft:a,peer=gen,count=10"));
	assert_int_equal(program_wait(&program), 0);
	assert_non_null(strstr(program.err.data,
			       "soft:a: 65 workers on 64 XDP TX queues: queue 0 has 2, and a lock; "
			       "queues 1 to 63 have 1 each\n"));
	program_free(&program);
}

static void names_the_wrong_option(void **state) {
	static const struct {
		const char *args[4];
		const char *named;
	} cases[] = {
	    {{"ixdp-xdp"}, "DEV"},
	    {{"ixdp-xdp", "soft:a", "soft:b", "soft:c"}, "soft:c"},
	    {{"ixdp-xdp", "--prog=redirect", "soft:a"}, "--prog redirect"},
	    {{"ixdp-xdp", "--prog=reject", "soft:a"}, "--prog reject"},
	    {{"ixdp-xdp", "--threads=0", "soft:a"}, "--threads"},
	    {{"ixdp-xdp", "--threads=1025", "soft:a"}, "--threads"},
	    {{"ixdp-xdp", "--queues=0", "soft:a"}, "--queues"},
	    {{"ixdp-xdp", "--queues=65", "soft:a"}, "--queues"},
	    {{"ixdp-xdp", "--tx-queues=2", "soft:a"}, "--tx-queues"},
	    {{"ixdp-fwd", "--threads=0", "soft:a"}, "--threads"},
	    {{"ixdp-fwd", "--threads=2", "--tx-queues=65", "soft:a"}, "--tx-queues"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const *args = cases[i].args;
		struct program program;

		program_start(&program, PROGRAM_ARGS(args[0], args[1], args[2], args[3]));
		assert_int_equal(program_wait(&program), 2);
		assert_int_equal(program_lines(&program.err), 1);
		assert_non_null(strstr(program.err.data, cases[i].named));
		assert_int_equal(program.out.len, 0);
		program_free(&program);
	}
}

static void refuses_frames_of_several_buffers(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-xdp", "--mtu=9000", "--json", "soft:a"));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "MTU 9000"));
	assert_int_equal(program_error_lines(&program), 1);
	assert_int_equal(program.out.len, 0);
	program_free(&program);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(drop_drops),
	    cmocka_unit_test(pass_passes_and_frees),
	    cmocka_unit_test(tx_sends_back_byte_for_byte),
	    cmocka_unit_test(swap_exchanges_the_addresses),
	    cmocka_unit_test(fwd_threads_forward_a_capture_byte_for_byte),
	    cmocka_unit_test(fwd_threads_forward_back_out_of_one_port),
	    cmocka_unit_test(intervals_add_up),
	    cmocka_unit_test(a_signal_ends_it_with_totals),
	    cmocka_unit_test(ends_at_count),
	    cmocka_unit_test(a_device_that_goes_ends_it),
	    cmocka_unit_test(says_who_shares_what),
	    cmocka_unit_test(names_the_wrong_option),
	    cmocka_unit_test(refuses_frames_of_several_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
