/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture files that a wire writes. */
#include "pcap_rig.h"

static void what_the_port_sends_is_captured_byte_for_byte(void **state) {
	char why[PCAP_ERRBUF_SIZE];
	struct timespec before;
	struct pcap_pkthdr *header;
	struct ixdp_wire_stats stats;
	uint8_t frame[IXDP_FRAME_MAX];
	uint8_t magic[4];
	struct wire *wire;
	const u_char *data;
	uint64_t last = 0;
	pcap_t *file;
	FILE *raw;

	(void)state;
	clock_gettime(CLOCK_REALTIME, &before);
	wire = plug("a,peer=pcap::out");
	for (unsigned i = 0; i < 3000; i++) {
		size_t len = 60 + i % 1455;

		fill(frame, len, i);
		/* 7 s and a bit in all, so that seconds carry at many places. */
		assert_true(wire->ops->send(wire, frame, len, 5 * SECOND + i * 2345679ull));
	}
	stats = stats_of(wire);
	assert_false(stats.source || stats.finite || stats.exhausted || stats.checks);
	assert_int_equal(stats.from_port_packets, 3000);
	unplug(wire);

	raw = fopen("out", "r");
	assert_int_equal(fread(magic, 1, 4, raw), 4);
	fclose(raw);
	assert_int_equal(*(uint32_t *)magic, 0xA1B23C4D); /* nanoseconds */
	file = pcap_open_offline_with_tstamp_precision("out", PCAP_TSTAMP_PRECISION_NANO, why);
	assert_non_null(file);
	assert_int_equal(pcap_datalink(file), DLT_EN10MB);
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t stamp;

		assert_int_equal(pcap_next_ex(file, &header, &data), 1);
		assert_int_equal(header->caplen, header->len);
		expect_frame(data, header->len, i, 60 + i % 1455);
		assert_in_range(header->ts.tv_usec, 0, SECOND - 1);
		stamp = (uint64_t)header->ts.tv_sec * SECOND + (uint64_t)header->ts.tv_usec;
		if (i == 0)
			assert_in_range(header->ts.tv_sec, before.tv_sec, before.tv_sec + 60);
		else
			assert_int_equal(stamp - last, 2345679);
		last = stamp;
	}
	assert_int_equal(pcap_next_ex(file, &header, &data), PCAP_ERROR_BREAK);
	pcap_close(file);
}

static void a_file_is_played_and_another_captured(void **state) {
	struct wire *wire;
	struct wire *again;
	size_t len;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_MICRO, DLT_EN10MB, mixed, no_times, 6);
	wire = plug("a,peer=pcap:in:c\\:d\\,e");
	for (unsigned i = 0; i < 6; i++) {
		const uint8_t *frame = peek(wire, i, &len);

		assert_true(wire->ops->send(wire, frame, len, i));
		wire->ops->pop(wire);
	}
	unplug(wire);
	again = plug("a,peer=pcap:c\\:d\\,e");
	for (unsigned i = 0; i < 6; i++) {
		expect_next(again, 0, i, mixed[i]);
		again->ops->pop(again);
	}
	assert_null(peek(again, 0, &len));
	unplug(again);
}

static void the_file_that_is_played_is_not_overwritten(void **state) {
	struct stat before;
	struct stat after;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_MICRO, DLT_EN10MB, mixed, no_times, 6);
	assert_int_equal(link("in", "link"), 0);
	assert_int_equal(stat("in", &before), 0);
	expect_refused("a,peer=pcap:in:in", EINVAL,
		       "in: is being played: capture into another file");
	expect_refused("a,peer=pcap:in:./link", EINVAL,
		       "./link: is being played: capture into another file");
	assert_int_equal(stat("in", &after), 0);
	assert_int_equal(before.st_size, after.st_size);
}

static void two_ports_do_not_capture_into_one_file(void **state) {
	struct wire *wire = plug("a,peer=pcap::out");

	(void)state;
	expect_refused("b,peer=pcap::out", EBUSY, "out: another port plays it or captures into it");
	unplug(wire);
	wire = plug("b,peer=pcap::out");
	unplug(wire);
}

/* Whichever is opened first, the other would destroy it, or read what is half written. */
static void what_one_port_plays_no_other_captures_into(void **state) {
	struct wire *wire;
	struct stat before, after;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_NANO, DLT_EN10MB, mixed, no_times, 6);
	assert_int_equal(stat("in", &before), 0);
	wire = plug("a,peer=pcap:in");
	expect_refused("b,peer=pcap::in", EBUSY, "in: another port plays it or captures into it");
	assert_int_equal(stat("in", &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	unplug(wire);
	wire = plug("a,peer=pcap::out");
	expect_refused("b,peer=pcap:out", EBUSY, "out: a port captures into it");
	unplug(wire);
}

static void a_capture_that_cannot_be_made_is_refused(void **state) {
	(void)state;
	expect_refused("a,peer=pcap::nowhere/out", ENOENT,
		       "nowhere/out: No such file or directory");
	assert_int_equal(mkfifo("out", 0600), 0);
	expect_refused("a,peer=pcap::out", ENXIO, "out: No such device or address");
	/* The port's name is free again. */
	unlink("out");
	unplug(plug("a,peer=pcap::out"));
}

static unsigned count(const char *text, const char *part) {
	unsigned n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

/* /dev/full is a disk without room. */
static void a_full_disk_is_reported_once_and_counted(void **state) {
	struct wire *wire = plug("a,peer=pcap::/dev/full");
	uint8_t frame[1514] = {0};

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		assert_true(wire->ops->send(wire, frame, sizeof(frame), i));
	assert_int_equal(stats_of(wire).from_port_packets, 100);
	unplug(wire);
	assert_int_equal(count(log_lines,
			       "/dev/full: cannot write, the capture ends here: No space "
			       "left on device\n"),
			 1);
	assert_int_equal(count(log_lines, "frames are missing at its end\n"), 1);
	assert_int_equal(count(log_lines, "\n"), 2);

	log_lines[0] = '\0';
	wire = plug("a,peer=pcap::/dev/full");
	assert_true(wire->ops->send(wire, frame, 60, 0)); /* less than a buffer: found at close */
	unplug(wire);
	assert_string_equal(log_lines, "/dev/full: cannot write, the capture is incomplete: No "
				       "space left on device\n");
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, clear_folder)
	const struct CMUnitTest tests[] = {
	    TEST(what_the_port_sends_is_captured_byte_for_byte),
	    TEST(a_file_is_played_and_another_captured),
	    TEST(the_file_that_is_played_is_not_overwritten),
	    TEST(two_ports_do_not_capture_into_one_file),
	    TEST(what_one_port_plays_no_other_captures_into),
	    TEST(a_capture_that_cannot_be_made_is_refused),
	    TEST(a_full_disk_is_reported_once_and_counted),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
