/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-capture from end to end: what is in the file, when it ends, and what becomes of the rest. */
#include "capture.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { FRAMES = 2 * CAPTURE_LENGTHS + 5, FILE_HEADER = 24, RECORD_HEADER = 16 };

/* Files of one test, and the port that frames 0 to FRAMES - 1 come from. */
static char folder[32], in[64], out[64], port[96];

static int make_files(void **state) {
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/ixdp-capture-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(in, sizeof(in), "%s/in.pcap", folder);
	snprintf(out, sizeof(out), "%s/out.pcap", folder);
	snprintf(port, sizeof(port), "soft:a,peer=pcap:%s", in);
	capture_write(in, 0, FRAMES);
	return 0;
}

static int remove_files(void **state) {
	(void)state;
	umount2(folder, MNT_DETACH); /* see mount_small_disk() */
	unlink(in);
	unlink(out);
	return rmdir(folder);
}

static void assert_balance(struct json_object *object) {
	assert_int_equal(json_int(object, "captured"),
			 json_int(object, "written") + json_int(object, "lost"));
	assert_int_equal(json_int(object, "captured"), json_int(object, "rx_packets"));
}

/* Bytes of a file of frames 0 to frames - 1, or of their first snaplen bytes. */
static off_t file_size(unsigned frames, unsigned snaplen) {
	uint8_t data[IXDP_FRAME_MAX];
	off_t size = FILE_HEADER;

	for (unsigned i = 0; i < frames; i++) {
		const unsigned len = capture_frame(i, data);

		size += RECORD_HEADER + (len < snaplen ? len : snaplen);
	}
	return size;
}

static off_t size_of(const char *path) {
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* --- what is in the file ------------------------------------------------------------------ */

static void captures_byte_for_byte(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "-w", out, port));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	assert_int_equal(json_int(final, "captured"), FRAMES);
	assert_int_equal(json_int(final, "lost"), 0);
	assert_int_equal(json_int(final, "rx_dropped"), 0);
	assert_balance(final);
	assert_int_equal(capture_read(out, 0, IXDP_FRAME_MAX), FRAMES);
	program_free(&program);
}

static void captures_from_several_queues(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "--rx-queues", "4",
					     "--batch", "7", "--ring", "64", "-w", out, port));
	assert_int_equal(program_wait(&program), 0);
	assert_int_equal(json_int(program_final(&program, "soft:a"), "written"), FRAMES);
	assert_int_equal(size_of(out), file_size(FRAMES, IXDP_FRAME_MAX));
	program_free(&program);
}

static void snaplen_cuts_frames_but_not_their_length(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--snaplen", "61", "-w", out, port));
	assert_int_equal(program_wait(&program), 0);
	assert_int_equal(capture_read(out, 0, 61), FRAMES);
	assert_int_equal(size_of(out), file_size(FRAMES, 61));
	program_free(&program);
}

/* Seconds and nanoseconds since 1970, by the file's own words. */
static void times_are_when_it_ran_in_nanoseconds(void **state) {
	struct timespec before, after;
	uint32_t words[(FILE_HEADER + RECORD_HEADER) / 4];
	struct program program;
	int fd;

	(void)state;
	clock_gettime(CLOCK_REALTIME, &before);
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--count", "1", "-w", out, port));
	assert_int_equal(program_wait(&program), 0);
	clock_gettime(CLOCK_REALTIME, &after);
	fd = open(out, O_RDONLY);
	assert_int_equal(read(fd, words, sizeof(words)), sizeof(words));
	close(fd);
	assert_int_equal(words[0], 0xA1B23C4D);
	/* The clock may be set by a bit meanwhile. */
	assert_in_range(words[6], before.tv_sec - 1, after.tv_sec + 1);
	assert_in_range(words[7], 0, 999999999);
	program_free(&program);
}

static void count_is_exact(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-capture", "--json", "--count", "1001", "-w", out, port));
	assert_int_equal(program_wait(&program), 0);
	assert_int_equal(json_int(program_final(&program, "soft:a"), "written"), 1001);
	assert_balance(program_final(&program, "soft:a"));
	assert_int_equal(capture_read(out, 0, IXDP_FRAME_MAX), 1001);
	program_free(&program);
}

/* Who follows the file sees all that the last interval's line counts. */
static void the_file_grows_each_second(void **state) {
	struct program program;
	const char *line;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "-w", out,
					     "soft:a,peer=gen,rate=100pps"));
	line = program_line(&program);
	assert_non_null(line);
	struct json_object *object = json_tokener_parse(line);
	const int64_t written = json_int(object, "written");

	assert_true(written > 0);
	assert_balance(object);
	assert_true(size_of(out) >= FILE_HEADER + written * (RECORD_HEADER + IXDP_FRAME_MIN));
	json_object_put(object);
	kill(program.pid, SIGTERM);
	assert_int_equal(program_wait(&program), 0);
	program_free(&program);
}

static void intervals_add_up(void **state) {
	static const char *const counters[] = {"captured", "written", "lost", "rx_packets"};
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "--duration", "1.2", "-w",
					     out, "soft:a,peer=gen,rate=20kpps"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");
	struct json_object *objects = program_objects(&program);
	const size_t n = json_object_array_length(objects);

	assert_true(n >= 3);
	for (size_t c = 0; c < sizeof(counters) / sizeof(counters[0]); c++) {
		int64_t sum = 0;

		for (size_t i = 0; i + 1 < n; i++)
			sum += json_int(json_object_array_get_idx(objects, i), counters[c]);
		assert_int_equal(sum, json_int(final, counters[c]));
	}
	assert_int_equal(json_int(final, "captured"), json_int(final, "wire_tx_packets"));
	program_free(&program);
}

/* --- stdout ------------------------------------------------------------------------------- */

/* The last line that a program printed on stderr, as an object. */
static struct json_object *last_of_stderr(const struct program *program) {
	const char *line = program->err.data, *end;

	while ((end = strchr(line, '\n')) && end[1])
		line = end + 1;
	struct json_object *object = json_tokener_parse(line);

	if (!object) fail_msg("no object at its end: %s", program->err.data);
	return object;
}

static void writes_to_stdout(void **state) {
	struct program program;
	int fd;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "-w", "-", port));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = last_of_stderr(&program);

	assert_int_equal(json_int(final, "written"), FRAMES);
	json_object_put(final);
	fd = open(out, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, program.out.data, program.out.len), program.out.len);
	close(fd);
	assert_int_equal(capture_read(out, 0, IXDP_FRAME_MAX), FRAMES);
	program_free(&program);
}

static void a_reader_that_leaves_is_one_line(void **state) {
	struct program program;

	(void)state;
	program_start(&program,
		      PROGRAM_ARGS("ixdp-capture", "-w", "-", "soft:a,peer=gen,rate=20kpps"));
	program_wait_stderr(&program, "rx Mpps");
	program_hang_up(&program);
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "ixdp-capture: stdout: Broken pipe\n"));
	assert_non_null(strstr(program.err.data, "; captured "));
	program_free(&program);
}

static void a_reader_that_leaves_costs_what_it_did_not_take(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "-w", "-",
					     "soft:a,peer=gen,rate=20kpps"));
	program_wait_stderr(&program, "\"captured\"");
	program_hang_up(&program);
	assert_int_equal(program_wait(&program), 1);
	struct json_object *final = last_of_stderr(&program);

	assert_balance(final);
	assert_true(json_int(final, "lost") > 0);
	assert_true(json_int(final, "written") > 0);
	json_object_put(final);
	program_free(&program);
}

static void wait_until_full(int pipe) {
	int bytes = 0;

	while (bytes < fcntl(pipe, F_GETPIPE_SZ) - PIPE_BUF) {
		assert_int_equal(ioctl(pipe, FIONREAD, &bytes), 0);
		usleep(1000);
	}
}

/* Nobody reads the pipe, which fills up: the program would wait for its reader for ever. */
static void signals_end_the_wait_for_a_reader(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "-w", "-",
					     "soft:a,peer=gen,rate=200kpps"));
	wait_until_full(program.out.fd);
	while (!program_has_ended(&program)) {
		kill(program.pid, SIGTERM);
		usleep(100 * 1000);
	}
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "stdout: Interrupted system call"));
	struct json_object *final = last_of_stderr(&program);

	assert_balance(final);
	json_object_put(final);
	program_free(&program);
}

static void refuses_a_closed_stdout(void **state) {
	struct program program;

	(void)state;
	program_start_mute(&program, PROGRAM_ARGS("ixdp-capture", "-w", "-", port));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "stdout is closed"));
	program_free(&program);
}

/* --- the disk is full ---------------------------------------------------------------------- */

/* What the file took before it was full is whole, and counted. */
static void assert_full(struct program *program, const char *path, const char *why) {
	char line[160];

	assert_int_equal(program_wait(program), 1);
	snprintf(line, sizeof(line), "ixdp-capture: %s: %s\n", path, why);
	if (!strstr(program->err.data, line) || program_error_lines(program) != 1)
		fail_msg("not the one line \"%s\": %s", line, program->err.data);
	struct json_object *final = program_final(program, "soft:a");
	const int64_t written = json_int(final, "written");

	assert_balance(final);
	assert_true(json_int(final, "lost") > 0);
	assert_int_equal(capture_read(path, 0, IXDP_FRAME_MAX), written);
	assert_int_equal(size_of(path), file_size(written, IXDP_FRAME_MAX));
}

static void a_file_that_may_not_grow_is_whole(void **state) {
	/* It ends in the middle of a frame, and of a block. */
	const rlim_t size = file_size(1000, IXDP_FRAME_MAX) + RECORD_HEADER + 1;
	struct rlimit old, limit;
	struct program program;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "-w", out, port));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_full(&program, out, "File too large");
	assert_int_equal(json_int(program_final(&program, "soft:a"), "written"), 1000);
	program_free(&program);
}

/* In a mount namespace of this test's own, which goes with it. */
static bool mount_small_disk(void) {
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", folder, "tmpfs", 0, "size=512k") == 0;
}

static void a_file_on_a_full_disk_is_whole(void **state) {
	struct program program;

	(void)state;
	if (!mount_small_disk()) {
		print_message("needs root, to mount a small disk: %s\n", strerror(errno));
		skip();
	}
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "--count", "100000", "-w",
					     out, "soft:a,peer=gen,size=1514"));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "No space left on device"));
	assert_int_equal(program_error_lines(&program), 1);
	struct json_object *final = program_final(&program, "soft:a");
	const int64_t written = json_int(final, "written");

	assert_balance(final);
	assert_true(written > 200);
	assert_true(json_int(final, "lost") > 0);
	assert_int_equal(size_of(out), FILE_HEADER + written * (RECORD_HEADER + 1514));
	program_free(&program);
}

static void a_file_without_room_for_its_header(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "-w", "/dev/full", port));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "/dev/full: No space left on device"));
	assert_int_equal(program_error_lines(&program), 1);
	program_free(&program);
}

/* --- how it ends --------------------------------------------------------------------------- */

static void end_by_signal(int signal) {
	struct program program;

	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "-w", out,
					     "soft:a,peer=gen,rate=20kpps"));
	assert_non_null(program_line(&program));
	assert_int_equal(kill(program.pid, signal), 0);
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");

	assert_balance(final);
	assert_int_equal(json_int(final, "lost"), 0);
	/* What was under way then is in the file as well. */
	assert_int_equal(json_int(final, "captured"), json_int(final, "wire_tx_packets"));
	assert_int_equal(size_of(out), FILE_HEADER + json_int(final, "written") *
							 (RECORD_HEADER + IXDP_FRAME_MIN));
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

static void prints_its_balance(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "-w", out, port));
	assert_int_equal(program_wait(&program), 0);
	assert_non_null(strstr(program.out.data, "; captured 2915, written 2915, lost 0\n"));
	program_free(&program);
}

static void a_wrong_device_leaves_the_file_alone(void **state) {
	struct program program;

	(void)state;
	capture_write(out, 0, 3);
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "-w", out, "soft:a,colour=red"));
	assert_int_equal(program_wait(&program), 1);
	assert_int_equal(capture_read(out, 0, IXDP_FRAME_MAX), 3);
	program_free(&program);
}

static void names_the_wrong_option(void **state) {
	static const struct {
		const char *args[5];
		const char *named;
	} cases[] = {
	    {{NULL}, "DEV"},
	    {{"-w", "x"}, "DEV"},
	    {{"soft:a"}, "-w"},
	    {{"-w", "x", "soft:a", "soft:b"}, "soft:b"},
	    {{"--snaplen", "0", "soft:a"}, "--snaplen"},
	    {{"--snaplen", "65536", "soft:a"}, "--snaplen"},
	    {{"--tx-queues", "2", "soft:a"}, "--tx-queues"},
	    {{"--batch", "257", "soft:a"}, "--batch"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const *args = cases[i].args;
		struct program program;

		program_start(&program,
			      PROGRAM_ARGS("ixdp-capture", args[0], args[1], args[2], args[3]));
		assert_int_equal(program_wait(&program), 2);
		assert_int_equal(program_lines(&program.err), 1);
		assert_non_null(strstr(program.err.data, cases[i].named));
		assert_int_equal(program.out.len, 0);
		program_free(&program);
	}
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, make_files, remove_files)

int main(void) {
	const struct CMUnitTest tests[] = {
	    WITH_FILES(captures_byte_for_byte),
	    WITH_FILES(captures_from_several_queues),
	    WITH_FILES(snaplen_cuts_frames_but_not_their_length),
	    WITH_FILES(times_are_when_it_ran_in_nanoseconds),
	    WITH_FILES(count_is_exact),
	    WITH_FILES(the_file_grows_each_second),
	    WITH_FILES(intervals_add_up),
	    WITH_FILES(writes_to_stdout),
	    WITH_FILES(a_reader_that_leaves_is_one_line),
	    WITH_FILES(a_reader_that_leaves_costs_what_it_did_not_take),
	    WITH_FILES(signals_end_the_wait_for_a_reader),
	    WITH_FILES(refuses_a_closed_stdout),
	    WITH_FILES(a_file_that_may_not_grow_is_whole),
	    WITH_FILES(a_file_on_a_full_disk_is_whole),
	    WITH_FILES(a_file_without_room_for_its_header),
	    WITH_FILES(sigterm_ends_it_with_totals),
	    WITH_FILES(sigint_ends_it_with_totals),
	    WITH_FILES(prints_its_balance),
	    WITH_FILES(a_wrong_device_leaves_the_file_alone),
	    WITH_FILES(names_the_wrong_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
