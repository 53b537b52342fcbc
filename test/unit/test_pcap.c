/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture files that a wire plays: files that libpcap wrote, and files put together here byte by
 * byte for what libpcap does not write.
 */
#include "pcap_rig.h"

/* The same by hand, in either byte order. */
struct hand {
	FILE *file;
	bool big_endian;
};

static void put(struct hand *hand, uint32_t value, unsigned bytes) {
	for (unsigned i = 0; i < bytes; i++)
		fputc(value >> 8 * (hand->big_endian ? bytes - 1 - i : i) & 0xFF, hand->file);
}

static struct hand begin(bool big_endian, uint32_t magic, uint32_t link) {
	struct hand hand = {fopen("in", "w"), big_endian};

	assert_non_null(hand.file);
	put(&hand, magic, 4);
	put(&hand, 2, 2);
	put(&hand, 4, 2);
	put(&hand, 0, 4);
	put(&hand, 0, 4);
	put(&hand, 262144, 4);
	put(&hand, link, 4);
	return hand;
}

static void record(struct hand *hand, uint32_t sec, uint32_t fraction, uint32_t caplen,
		   uint32_t len, unsigned n) {
	uint8_t frame[9019];

	put(hand, sec, 4);
	put(hand, fraction, 4);
	put(hand, caplen, 4);
	put(hand, len, 4);
	fill(frame, caplen, n);
	fwrite(frame, 1, caplen, hand->file);
}

/* --- playing
 * --------------------------------------------------------------------------------------- */

static void frames_are_played_byte_for_byte(void **state) {
	struct ixdp_wire_stats stats;
	struct wire *wire;
	size_t len;
	size_t bytes = 0;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_MICRO, DLT_EN10MB, mixed, no_times, 6);
	wire = plug("a,peer=pcap:in");
	assert_true(wire->waits);
	for (unsigned i = 0; i < 6; i++) {
		assert_false(stats_of(wire).exhausted);
		expect_next(wire, 0, i, mixed[i]);
		expect_next(wire, 0, i, mixed[i]);
		wire->ops->pop(wire);
		bytes += mixed[i];
	}
	assert_null(peek(wire, 0, &len));
	wire->ops->pop(wire);
	stats = stats_of(wire);
	assert_true(stats.source && stats.finite && stats.exhausted && !stats.checks);
	assert_int_equal(stats.to_port_packets, 6);
	assert_int_equal(stats.to_port_bytes, bytes);
	unplug(wire);
}

static void a_stopped_file_sends_no_more(void **state) {
	struct wire *wire;
	size_t len;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_MICRO, DLT_EN10MB, mixed, no_times, 6);
	wire = plug("a,peer=pcap:in");
	assert_true(take_any(wire, 0));
	wire->ops->stop(wire);
	assert_null(peek(wire, 0, &len));
	assert_true(stats_of(wire).exhausted);
	assert_int_equal(stats_of(wire).to_port_packets, 1);
	unplug(wire);
}

static void a_file_without_frames_is_exhausted_at_once(void **state) {
	struct wire *wire;
	size_t len;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_MICRO, DLT_EN10MB, NULL, NULL, 0);
	wire = plug("a,peer=pcap:in");
	assert_true(stats_of(wire).exhausted);
	assert_null(peek(wire, 0, &len));
	unplug(wire);
}

/* When the first frame after the one at 0 is due, by looking every nanosecond around it. */
static void expect_gap(struct wire *wire, uint64_t *now, uint64_t gap) {
	size_t len;

	if (gap > 0) assert_null(peek(wire, *now + gap - 1, &len));
	*now += gap;
	assert_true(take_any(wire, *now));
}

static void both_byte_orders_and_precisions_keep_the_files_gaps(void **state) {
	static const uint32_t magics[] = {0xA1B2C3D4, 0xA1B23C4D};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool nano = i % 2;
		uint32_t unit = nano ? 1 : 1000;
		struct hand hand = begin(i / 2, magics[nano], 1);
		uint64_t now = 77 * SECOND;
		struct wire *wire;

		record(&hand, 1700000000, 999999000 / unit, 60, 60, 0);
		record(&hand, 1700000001, 0, 61, 61, 1);
		record(&hand, 1700000001, 0, 62, 62, 2);
		record(&hand, 1700000003, 5000 / unit, 63, 63, 3);
		record(&hand, 1700000003, 5000 / unit + 1, 64, 64, 4);
		fclose(hand.file);
		wire = plug("a,peer=pcap:in,rate=file");
		expect_next(wire, now, 0, 60);
		expect_gap(wire, &now, 0); /* the first one at once */
		expect_gap(wire, &now, 1000);
		expect_gap(wire, &now, 0);
		expect_gap(wire, &now, 2 * SECOND + 5000);
		expect_gap(wire, &now, unit);
		assert_true(stats_of(wire).exhausted);
		unplug(wire);
	}
}

/* A clock that was set while it captured: no waiting for ever, no gap. */
static void where_the_files_clock_goes_back_there_is_no_gap(void **state) {
	static const uint64_t times[] = {100 * SECOND, 99 * SECOND, 99 * SECOND + 5, 1, 2};
	static const size_t lens[] = {60, 60, 60, 60, 60};
	struct wire *wire;
	uint64_t now = 0;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_NANO, DLT_EN10MB, lens, times, 5);
	wire = plug("a,peer=pcap:in,rate=file");
	expect_gap(wire, &now, 0);
	expect_gap(wire, &now, 0);
	expect_gap(wire, &now, 5);
	expect_gap(wire, &now, 0);
	expect_gap(wire, &now, 1);
	unplug(wire);
}

/* 1 Mbit/s is a bit per microsecond: after a frame of 60 B the next comes 84 * 8 later. */
static void a_rate_in_bits_paces_each_frame_by_its_length(void **state) {
	struct wire *wire;
	uint64_t now = SECOND;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_NANO, DLT_EN10MB, mixed, no_times, 6);
	wire = plug("a,peer=pcap:in,rate=1Mbit");
	expect_gap(wire, &now, 0);
	for (unsigned i = 1; i < 6; i++)
		expect_gap(wire, &now, (mixed[i - 1] + 24) * 8 * 1000);
	unplug(wire);

	now = SECOND;
	wire = plug("a,peer=pcap:in,rate=0.01%");
	expect_gap(wire, &now, 0);
	for (unsigned i = 1; i < 6; i++)
		expect_gap(wire, &now, (mixed[i - 1] + 24) * 8 * 1000);
	unplug(wire);
}

static void a_rate_in_packets_paces_each_frame_alike(void **state) {
	struct wire *wire;
	uint64_t now = SECOND;

	(void)state;
	write_file(PCAP_TSTAMP_PRECISION_NANO, DLT_EN10MB, mixed, no_times, 6);
	wire = plug("a,peer=pcap:in,rate=50pps");
	expect_gap(wire, &now, 0);
	for (unsigned i = 1; i < 6; i++)
		expect_gap(wire, &now, SECOND / 50);
	unplug(wire);
	expect_refused("a,peer=pcap:in,rate=20Mpps", ERANGE,
		       "soft:a: rate=: 20000000.00 packets per second are more than the line's "
		       "14880952.38 with frames of 60 B: ask for less");
	expect_refused("a,peer=pcap::out,rate=5pps", EINVAL,
		       "soft:a: rate= needs a file to play: peer=pcap:IN");
	assert_int_equal(access("out", F_OK), -1);
}

static void a_bad_record_is_refused_by_number_before_anything_is_played(void **state) {
	static const struct {
		uint32_t caplen, len;
		const char *error;
	} bad[] = {
	    {59, 59, "in: record 3: 59 bytes: a frame has 60 to 9018"},
	    {0, 0, "in: record 3: 0 bytes: a frame has 60 to 9018"},
	    {9019, 9019, "in: record 3: 9019 bytes: a frame has 60 to 9018"},
	    {96, 1000, "in: record 3: 96 of the frame's 1000 bytes: it was cut when captured"},
	    {100, 96, "in: record 3: 100 of the frame's 96 bytes: it was cut when captured"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct hand hand = begin(false, 0xA1B2C3D4, 1);

		record(&hand, 0, 0, 60, 60, 0);
		record(&hand, 0, 0, 1514, 1514, 1);
		record(&hand, 0, 0, bad[i].caplen, bad[i].len, 2);
		record(&hand, 0, 0, 60, 60, 3);
		fclose(hand.file);
		expect_refused("a,peer=pcap:in:out", EINVAL, bad[i].error);
		assert_int_equal(access("out", F_OK), -1);
	}
}

static void a_truncated_file_is_refused_by_record(void **state) {
	static const char header[] =
	    "in: record 2: truncated dump file; tried to read 16 header bytes, only got ";
	static const char body[] =
	    "in: record 2: truncated dump file; tried to read 60 captured bytes, only got ";

	(void)state;
	for (off_t cut = 1; cut < 16 + 60; cut++) {
		struct hand hand = begin(false, 0xA1B2C3D4, 1);
		struct wire *wire;

		record(&hand, 0, 0, 60, 60, 0);
		record(&hand, 0, 0, 60, 60, 1);
		fclose(hand.file);
		assert_int_equal(truncate("in", 24 + 76 + cut), 0);
		assert_int_equal(try_open(&wire, "a,peer=pcap:in"), -EINVAL);
		assert_int_equal(strncmp(ixdp_error(), cut < 16 ? header : body,
					 strlen(cut < 16 ? header : body)),
				 0);
	}
}

static void what_is_no_ethernet_capture_is_refused(void **state) {
	static const size_t lens[] = {60};
	struct hand hand;
	struct wire *wire;

	(void)state;
	expect_refused("a,peer=pcap:nowhere/in", ENOENT, "nowhere/in: No such file or directory");
	expect_refused("a,peer=pcap:.", EINVAL, ".: not a regular file: a capture is read twice");
	assert_int_equal(mkfifo("in", 0600), 0);
	expect_refused("a,peer=pcap:in", EINVAL, "in: not a regular file: a capture is read twice");
	unlink("in");
	expect_refused("a,peer=pcap:-", ENOENT, "-: No such file or directory"); /* not stdin */

	close(open("in", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(try_open(&wire, "a,peer=pcap:in"), -EINVAL);
	assert_int_equal(strncmp(ixdp_error(), "in: no capture file: ", 21), 0);

	write_file(PCAP_TSTAMP_PRECISION_MICRO, DLT_RAW, lens, no_times, 1);
	assert_int_equal(try_open(&wire, "a,peer=pcap:in"), -EINVAL);
	assert_string_equal(ixdp_error(), "in: link type 12 (Raw IP): only Ethernet can be played");

	hand = begin(false, 0xA1B2C3D4, 0x24000001); /* Ethernet with 2 words of FCS */
	fclose(hand.file);
	expect_refused("a,peer=pcap:in", EINVAL,
		       "in: frames with FCS: only those without can be played");
	expect_refused("a,peer=pcap", EINVAL,
		       "soft:a: peer=pcap: names no file: pcap:IN[:OUT] or pcap::OUT");
	expect_refused("a,peer=pcap::", EINVAL,
		       "soft:a: peer=pcap: names no file: pcap:IN[:OUT] or pcap::OUT");
}

static void a_file_that_changes_while_it_is_played_ends_there(void **state) {
	struct wire *wire;
	unsigned played = 0;

	(void)state;
	/* More than stdio reads ahead. */
	struct hand hand = begin(false, 0xA1B2C3D4, 1);
	for (unsigned i = 0; i < 1000; i++)
		record(&hand, 0, 0, 1514, 1514, i);
	fclose(hand.file);
	wire = plug("a,peer=pcap:in");
	assert_true(take_any(wire, 0));
	assert_int_equal(truncate("in", 500000), 0);
	for (played = 1; take_any(wire, 0); played++)
		;
	assert_int_equal(played, 326); /* whole records in 500,000 bytes */
	assert_true(stats_of(wire).exhausted);
	assert_non_null(strstr(log_lines, "in: changed while it was played, which ends here: in: "
					  "record 327: truncated"));
	unplug(wire);
}

/* --- capturing
 * ------------------------------------------------------------------------------------- */

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, clear_folder)
	const struct CMUnitTest tests[] = {
	    TEST(frames_are_played_byte_for_byte),
	    TEST(a_stopped_file_sends_no_more),
	    TEST(a_file_without_frames_is_exhausted_at_once),
	    TEST(both_byte_orders_and_precisions_keep_the_files_gaps),
	    TEST(where_the_files_clock_goes_back_there_is_no_gap),
	    TEST(a_rate_in_bits_paces_each_frame_by_its_length),
	    TEST(a_rate_in_packets_paces_each_frame_alike),
	    TEST(a_bad_record_is_refused_by_number_before_anything_is_played),
	    TEST(a_truncated_file_is_refused_by_record),
	    TEST(what_is_no_ethernet_capture_is_refused),
	    TEST(a_file_that_changes_while_it_is_played_ends_there),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
