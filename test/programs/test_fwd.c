/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-fwd from end to end: what it prints, when it ends, and how. */
#include "capture.h"
#include "program.h"

#include <fcntl.h>
#include <ixdp/ixdp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_nothing_lost(struct json_object *final) {
	assert_int_equal(json_int(final, "rx_dropped"), 0);
	assert_int_equal(json_int(final, "tx_dropped"), 0);
	assert_int_equal(json_int(final, "lost"), 0);
	assert_int_equal(json_int(final, "misordered"), 0);
	assert_int_equal(json_int(final, "corrupt"), 0);
	assert_int_equal(json_int(final, "rx_packets"), json_int(final, "wire_tx_packets"));
	assert_int_equal(json_int(final, "tx_packets"), json_int(final, "wire_rx_packets"));
}

/* Two ports, generators behind both: everything that one receives the other sends. */
static void assert_forwarded(struct program *program) {
	struct json_object *a = program_final(program, "soft:a");
	struct json_object *b = program_final(program, "soft:b");

	assert_nothing_lost(a);
	assert_nothing_lost(b);
	assert_true(json_int(a, "rx_packets") > 0);
	assert_true(json_int(b, "rx_packets") > 0);
	assert_int_equal(json_int(a, "rx_packets"), json_int(b, "tx_packets"));
	assert_int_equal(json_int(b, "rx_packets"), json_int(a, "tx_packets"));
	assert_int_equal(json_int(a, "rx_bytes"), json_int(b, "tx_bytes"));
	assert_int_equal(json_int(a, "link"), 10000);
}

static void forwards_between_generators(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "--duration", "0.5",
				   "soft:a,peer=gen,rate=20kpps", "soft:b,peer=gen,rate=20kpps"));
	assert_int_equal(program_wait(&program), 0);
	assert_forwarded(&program);
	program_free(&program);
}

static void forwards_without_devices(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--duration", "0.2"));
	assert_int_equal(program_wait(&program), 0);
	/* At full rate rings may overflow, but what arrives is in order and whole. */
	struct json_object *a = program_final(&program, "soft:a");

	assert_true(json_int(a, "wire_rx_packets") > 0);
	assert_int_equal(json_int(a, "misordered"), 0);
	assert_int_equal(json_int(a, "corrupt"), 0);
	assert_non_null(program_final(&program, "soft:b"));
	program_free(&program);
}

static void forwards_back_out_of_one_port(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--rx-queues", "2",
					     "--tx-queues", "3", "--batch", "7", "--ring", "64",
					     "soft:a,peer=gen,count=1001,rate=20kpps"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");

	assert_nothing_lost(a);
	assert_int_equal(json_int(a, "rx_packets"), 1001);
	assert_int_equal(json_int(a, "tx_packets"), 1001);
	program_free(&program);
}

static void ends_when_all_sources_are_through(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "soft:a,peer=gen,count=300,rate=20kpps",
				   "soft:b,peer=gen,count=2000,rate=20kpps"));
	assert_int_equal(program_wait(&program), 0);
	assert_forwarded(&program);
	assert_int_equal(json_int(program_final(&program, "soft:a"), "rx_packets"), 300);
	assert_int_equal(json_int(program_final(&program, "soft:b"), "rx_packets"), 2000);
	program_free(&program);
}

static void goes_on_while_one_source_is_endless(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--duration", "0.3",
					     "soft:a,peer=gen,count=100,rate=20kpps",
					     "soft:b,peer=gen,rate=1kpps"));
	assert_int_equal(program_wait(&program), 0);
	assert_forwarded(&program);
	assert_true(json_number(program_final(&program, "soft:a"), "t") >= 0.3);
	program_free(&program);
}

static void ends_at_count(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--count", "1000",
					     "soft:a,peer=gen,rate=20kpps", "soft:b"));
	assert_int_equal(program_wait(&program), 0);
	const int64_t received = json_int(program_final(&program, "soft:a"), "rx_packets");

	/* What was under way is forwarded as well, but no endless stream. */
	assert_true(received >= 1000);
	assert_true(received < 1000000);
	assert_int_equal(json_int(program_final(&program, "soft:b"), "wire_rx_packets"), received);
	assert_int_equal(json_int(program_final(&program, "soft:b"), "lost"), 0);
	program_free(&program);
}

/* Buffers come back late, so the TX ring is full most of the time, and takes parts of batches. */
static void what_a_full_ring_does_not_take_is_sent_later(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "--ring", "64", "--batch", "20",
				   "soft:a,peer=gen,count=3000", "soft:b,fault=dd-late:20"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *b = program_final(&program, "soft:b");

	assert_int_equal(json_int(program_final(&program, "soft:a"), "rx_packets"), 3000);
	assert_int_equal(json_int(b, "wire_rx_packets"), 3000);
	assert_int_equal(json_int(b, "lost") + json_int(b, "misordered"), 0);
	assert_int_equal(json_int(b, "tx_dropped"), 0);
	program_free(&program);
}

/* --- capture files ------------------------------------------------------------------------ */

static void forwards_a_capture_byte_for_byte(void **state) {
	char folder[] = "/tmp/ixdp-fwd-XXXXXX";
	char in[64], out[64], port_a[96], port_b[96];
	const unsigned frames = 2 * CAPTURE_LENGTHS + 5;
	struct program program;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(in, sizeof(in), "%s/in.pcap", folder);
	snprintf(out, sizeof(out), "%s/out.pcap", folder);
	snprintf(port_a, sizeof(port_a), "soft:a,peer=pcap:%s", in);
	snprintf(port_b, sizeof(port_b), "soft:b,peer=pcap::%s", out);
	capture_write(in, 0, frames);

	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", port_a, port_b));
	assert_int_equal(program_wait(&program), 0);
	assert_int_equal(json_int(program_final(&program, "soft:a"), "rx_packets"), frames);
	assert_int_equal(json_int(program_final(&program, "soft:b"), "tx_packets"), frames);
	assert_int_equal(json_int(program_final(&program, "soft:b"), "tx_dropped"), 0);
	program_free(&program);

	assert_int_equal(capture_read(out, 0, IXDP_FRAME_MAX), frames);
	unlink(in);
	unlink(out);
	rmdir(folder);
}

/* --- output ------------------------------------------------------------------------------- */

static void intervals_add_up(void **state) {
	static const char *const counters[] = {
	    "rx_packets", "rx_bytes",	"tx_packets",	   "tx_bytes",
	    "rx_dropped", "tx_dropped", "wire_tx_packets", "lost",
	    "misordered", "corrupt",	"wire_rx_packets", "foreign",
	};
	static const char *const rates[] = {"rx_mpps", "tx_mpps", "rx_gbps_l1", "tx_gbps_l1"};
	int64_t sums[sizeof(counters) / sizeof(counters[0])] = {0};
	struct program program;
	double t = 0;
	unsigned intervals = 0;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "--duration", "1.3",
				   "soft:a,peer=gen,rate=20kpps", "soft:b,peer=gen,rate=10kpps"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");
	struct json_object *objects = program_objects(&program), *member;

	for (size_t i = 0; i < json_object_array_length(objects); i++) {
		struct json_object *object = json_object_array_get_idx(objects, i);

		json_object_object_get_ex(object, "port", &member);
		if (strcmp(json_object_get_string(member), "soft:a") != 0 || object == final)
			continue;
		json_object_object_get_ex(object, "final", &member);
		assert_true(json_object_is_type(member, json_type_boolean));
		assert_false(json_object_get_boolean(member));
		assert_true(json_number(object, "t") > t);
		t = json_number(object, "t");
		for (size_t c = 0; c < sizeof(counters) / sizeof(counters[0]); c++)
			sums[c] += json_int(object, counters[c]);
		for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
			assert_true(json_number(object, rates[r]) >= 0);
		intervals++;
	}
	assert_true(intervals >= 2);
	for (size_t c = 0; c < sizeof(counters) / sizeof(counters[0]); c++)
		assert_int_equal(sums[c], json_int(final, counters[c]));

	/* Rates of the totals follow from packets, bytes and time; 24 B a frame are on L1 only. */
	const double packets = (double)json_int(final, "rx_packets");
	const double bits = ((double)json_int(final, "rx_bytes") + packets * 24) * 8;

	t = json_number(final, "t");
	assert_true(json_int(final, "rx_bytes") == packets * 60);
	assert_float_equal(json_number(final, "rx_mpps"), packets / t / 1e6, 2e-6);
	assert_float_equal(json_number(final, "rx_gbps_l1"), bits / t / 1e9, 2e-6);
	program_free(&program);
}

static void prints_a_table(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--duration", "1.1",
					     "soft:a,peer=gen,rate=20kpps", "soft:b"));
	assert_int_equal(program_wait(&program), 0);
	/* A heading, a row per port and second, a total per port. */
	assert_true(program_lines(&program.out) >= 5);
	assert_non_null(strstr(program.out.data, "rx Mpps"));
	assert_non_null(strstr(program.out.data, "10000 Mbit/s"));
	assert_non_null(strstr(program.out.data, "total  soft:a in "));
	assert_non_null(strstr(program.out.data, "lost 0, misordered 0, corrupt 0"));
	assert_null(strstr(program.out.data, "nan"));
	program_free(&program);
}

/* A pipe's buffer would hold back the rows of 40 seconds, and show them all at once. */
static void rows_are_visible_as_they_come(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "soft:a"));
	assert_non_null(program_line(&program));
	assert_in_range(program_lines(&program.out), 1, 20);
	assert_int_equal(kill(program.pid, SIGTERM), 0);
	assert_int_equal(program_wait(&program), 0);
	program_free(&program);
}

static void reports_when_nothing_arrives(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "--duration", "0.1", "soft:a", "soft:b"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");

	assert_int_equal(json_int(a, "rx_packets"), 0);
	assert_true(json_number(a, "rx_mpps") == 0);
	assert_true(json_number(a, "rx_gbps_l1") == 0);
	program_free(&program);
}

static void end_by_signal(int signal) {
	struct program program;

	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "soft:a,peer=gen,rate=20kpps",
					     "soft:b,peer=gen,rate=20kpps"));
	/* The first interval is visible at once although stdout is a pipe. */
	assert_non_null(program_line(&program));
	assert_int_equal(kill(program.pid, signal), 0);
	assert_int_equal(program_wait(&program), 0);
	assert_forwarded(&program);
	program_free(&program);
}

static void sigterm_ends_it_with_totals(void **state) {
	(void)state;
	end_by_signal(SIGTERM);
}

static void sigint_ends_it_with_totals(void **state) {
	(void)state;
	end_by_signal(SIGINT);
}

/* A terminal that goes away must not leave a card running. */
static void sighup_ends_it_with_totals(void **state) {
	(void)state;
	end_by_signal(SIGHUP);
}

/* What the library could only log has failed all the same. */
static void a_capture_that_is_incomplete_is_a_failure(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "soft:a,peer=gen,count=5000",
					     "soft:b,peer=pcap::/dev/full"));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "/dev/full"));
	assert_int_equal(json_int(program_final(&program, "soft:a"), "rx_packets"), 5000);
	program_free(&program);
}

/* A port that sends nothing would be waited for until it is given up. */
static void another_signal_ends_the_drain(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "--ring", "64",
				   "soft:a,peer=gen,rate=20kpps", "soft:b,fault=tx-stop"));
	assert_non_null(program_line(&program));
	/* Signals that arrive together count once. */
	while (!program_has_ended(&program)) {
		kill(program.pid, SIGTERM);
		usleep(100 * 1000);
	}
	assert_int_equal(program_wait(&program), 0);
	assert_null(strstr(program.err.data, "given up"));
	struct json_object *b = program_final(&program, "soft:b");

	/* All that a received is accounted for: a full TX ring, and what it did not take. */
	assert_int_equal(json_int(b, "tx_packets"), 0);
	assert_true(json_int(b, "tx_dropped") > 63);
	assert_int_equal(json_int(b, "tx_dropped"),
			 json_int(program_final(&program, "soft:a"), "rx_packets"));
	program_free(&program);
}

static void a_port_that_sends_nothing_is_given_up(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "--duration", "0.1",
				   "soft:a,peer=gen,rate=20kpps", "soft:b,fault=tx-stop"));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "given up"));
	assert_int_equal(json_int(program_final(&program, "soft:b"), "tx_packets"), 0);
	program_free(&program);
}

/* A peer that knows nothing of our end goes on: what it sends then is not waited for. */
static void a_peer_that_never_gets_quiet_is_left_alone(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--count", "2000",
					     "soft:a,peer=gen,rate=50kpps,stop=off", "soft:b"));
	assert_int_equal(program_wait(&program), 0);
	assert_int_equal(program_error_lines(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");
	struct json_object *b = program_final(&program, "soft:b");

	/* All that was received has been sent. */
	assert_true(json_int(a, "rx_packets") >= 2000);
	assert_int_equal(json_int(b, "tx_packets"), json_int(a, "rx_packets"));
	assert_int_equal(json_int(b, "tx_dropped"), 0);
	assert_true(json_number(a, "t") < 5);
	program_free(&program);
}

static void survives_a_reader_that_leaves(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "soft:a,peer=gen,rate=20kpps"));
	assert_non_null(program_line(&program));
	program_hang_up(&program);
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "stdout: Broken pipe"));
	assert_int_equal(program_error_lines(&program), 1);
	program_free(&program);
}

static int64_t sum_of_intervals(struct program *program, const char *port, const char *counter) {
	struct json_object *objects = program_objects(program), *member;
	int64_t sum = 0;

	for (size_t i = 0; i < json_object_array_length(objects); i++) {
		struct json_object *object = json_object_array_get_idx(objects, i);

		json_object_object_get_ex(object, "port", &member);
		if (strcmp(json_object_get_string(member), port) != 0) continue;
		json_object_object_get_ex(object, "final", &member);
		if (!json_object_get_boolean(member)) sum += json_int(object, counter);
	}
	return sum;
}

/* The pipe is full from the start; the file says that frames flow after several intervals. */
static void a_reader_that_does_not_read_stops_nothing(void **state) {
	char folder[] = "/tmp/ixdp-fwd-XXXXXX", out[64], port[96], pipe_end[32], full[4096] = "";
	struct program program;
	struct stat st = {0};

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(out, sizeof(out), "%s/out.pcap", folder);
	snprintf(port, sizeof(port), "soft:b,peer=pcap::%s", out);
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "soft:a,peer=gen,rate=1kpps", port));
	assert_int_equal(fcntl(program.out.fd, F_SETPIPE_SZ, sizeof(full)), sizeof(full));
	snprintf(pipe_end, sizeof(pipe_end), "/proc/self/fd/%d", program.out.fd);
	const int fd = open(pipe_end, O_WRONLY);

	assert_int_equal(write(fd, full, sizeof(full)), sizeof(full));
	close(fd);
	for (unsigned looks = 0; st.st_size < 2500 * (16 + 60); looks++) {
		assert_true(looks < 10 * PROGRAM_LIMIT_S);
		usleep(100 * 1000);
		stat(out, &st);
	}
	assert_int_equal(read(program.out.fd, full, sizeof(full)), sizeof(full));
	kill(program.pid, SIGTERM);
	assert_int_equal(program_wait(&program), 0);
	assert_non_null(strstr(program.err.data, "had no line of their own"));
	assert_int_equal(sum_of_intervals(&program, "soft:a", "rx_packets"),
			 json_int(program_final(&program, "soft:a"), "rx_packets"));
	program_free(&program);
	unlink(out);
	rmdir(folder);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(forwards_between_generators),
	    cmocka_unit_test(forwards_without_devices),
	    cmocka_unit_test(forwards_back_out_of_one_port),
	    cmocka_unit_test(ends_when_all_sources_are_through),
	    cmocka_unit_test(goes_on_while_one_source_is_endless),
	    cmocka_unit_test(ends_at_count),
	    cmocka_unit_test(what_a_full_ring_does_not_take_is_sent_later),
	    cmocka_unit_test(forwards_a_capture_byte_for_byte),
	    cmocka_unit_test(intervals_add_up),
	    cmocka_unit_test(prints_a_table),
	    cmocka_unit_test(rows_are_visible_as_they_come),
	    cmocka_unit_test(reports_when_nothing_arrives),
	    cmocka_unit_test(sigterm_ends_it_with_totals),
	    cmocka_unit_test(sigint_ends_it_with_totals),
	    cmocka_unit_test(sighup_ends_it_with_totals),
	    cmocka_unit_test(a_capture_that_is_incomplete_is_a_failure),
	    cmocka_unit_test(another_signal_ends_the_drain),
	    cmocka_unit_test(a_port_that_sends_nothing_is_given_up),
	    cmocka_unit_test(a_peer_that_never_gets_quiet_is_left_alone),
	    cmocka_unit_test(survives_a_reader_that_leaves),
	    cmocka_unit_test(a_reader_that_does_not_read_stops_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
