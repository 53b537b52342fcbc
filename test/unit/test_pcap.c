/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire of capture files, with files that libpcap wrote, and files put together here byte by
 * byte for what libpcap does not write.
 */
#include "softnic/wire.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static char folder[] = "/tmp/ixdp-test-pcap-XXXXXX";

/* The files of the test, each in the folder. */
static const char *const names[] = {"in", "out", "c:d,e", "link"};

static char log_lines[2000];

static void keep_log(enum ixdp_log_level level, const char *line, void *arg) {
	(void)level, (void)arg;
	strncat(log_lines, line, sizeof(log_lines) - strlen(log_lines) - 2);
	strcat(log_lines, "\n");
}

static int make_folder(void **state) {
	(void)state;
	ixdp_log_set(keep_log, NULL, IXDP_LOG_DEBUG);
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int clear_folder(void **state) {
	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(names[i]);
	log_lines[0] = '\0';
	return 0;
}

static int remove_folder(void **state) {
	clear_folder(state);
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

/* --- wires
 * ----------------------------------------------------------------------------------------- */

static int try_open(struct wire **wire, const char *text) {
	static const uint8_t mac[6] = {2};
	struct softnic_name name;
	int err = softnic_name_parse(&name, text);

	if (err)
		return err;
	err = wire_open(wire, NULL, &name, mac);
	softnic_name_free(&name);
	return err;
}

static struct wire *plug(const char *text) {
	struct wire *wire = NULL;

	if (try_open(&wire, text))
		fail_msg("%s: %s", text, ixdp_error());
	return wire;
}

static void unplug(struct wire *wire) {
	wire->ops->close(wire);
}

static void expect_refused(const char *text, int err, const char *error) {
	struct wire *wire;

	assert_int_equal(try_open(&wire, text), -err);
	assert_string_equal(ixdp_error(), error);
}

static const uint8_t *peek(struct wire *wire, uint64_t now, size_t *len) {
	bool bad_crc = true;
	const uint8_t *frame = wire->ops->peek(wire, now, len, &bad_crc);

	if (frame)
		assert_false(bad_crc);
	return frame;
}

static bool take(struct wire *wire, uint64_t now) {
	size_t len;

	if (!peek(wire, now, &len))
		return false;
	wire->ops->pop(wire);
	return true;
}

static struct ixdp_wire_stats stats_of(struct wire *wire) {
	struct ixdp_wire_stats stats;

	memset(&stats, 0xFF, sizeof(stats));
	wire->ops->stats(wire, &stats);
	assert_false(stats.drained);
	return stats;
}

/* --- files
 * ----------------------------------------------------------------------------------------- */

/* Byte i of frame n: no two frames alike. */
static void fill(uint8_t *frame, size_t len, unsigned n) {
	for (size_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(n * 31 + i * 7 + i / 256);
}

static void expect_frame(const uint8_t *frame, size_t len, unsigned n, size_t expected_len) {
	uint8_t expected[IXDP_FRAME_MAX];

	assert_int_equal(len, expected_len);
	fill(expected, len, n);
	assert_memory_equal(frame, expected, len);
}

static void expect_next(struct wire *wire, uint64_t now, unsigned n, size_t expected_len) {
	size_t len;
	const uint8_t *frame = peek(wire, now, &len);

	assert_non_null(frame);
	expect_frame(frame, len, n, expected_len);
}

/* A file by libpcap: frames of these lengths at these times (ns). */
static void write_file(unsigned precision, int link, const size_t *lens, const uint64_t *times,
		       unsigned n) {
	pcap_t *pcap = pcap_open_dead_with_tstamp_precision(link, 65535, precision);
	pcap_dumper_t *file = pcap_dump_open(pcap, "in");
	unsigned unit = precision == PCAP_TSTAMP_PRECISION_NANO ? 1 : 1000;
	uint8_t frame[2000];

	assert_non_null(file);
	for (unsigned i = 0; i < n; i++) {
		struct pcap_pkthdr header = {.caplen = (uint32_t)lens[i], .len = (uint32_t)lens[i]};

		header.ts.tv_sec = (time_t)(times[i] / SECOND);
		header.ts.tv_usec = (suseconds_t)(times[i] % SECOND / unit);
		fill(frame, lens[i], i);
		pcap_dump((u_char *)file, &header, frame);
	}
	pcap_dump_close(file);
	pcap_close(pcap);
}

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
	uint8_t frame[2000];

	put(hand, sec, 4);
	put(hand, fraction, 4);
	put(hand, caplen, 4);
	put(hand, len, 4);
	fill(frame, caplen, n);
	fwrite(frame, 1, caplen, hand->file);
}

/* --- playing
 * --------------------------------------------------------------------------------------- */

static const size_t mixed[] = {60, 61, 1514, 1513, 64, 999};
static const uint64_t no_times[6];

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
	assert_true(take(wire, 0));
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

	if (gap > 0)
		assert_null(peek(wire, *now + gap - 1, &len));
	*now += gap;
	assert_true(take(wire, *now));
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
	    {59, 59, "in: record 3: 59 bytes: a frame has 60 to 1514"},
	    {0, 0, "in: record 3: 0 bytes: a frame has 60 to 1514"},
	    {1515, 1515, "in: record 3: 1515 bytes: a frame has 60 to 1514"},
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
	assert_true(take(wire, 0));
	assert_int_equal(truncate("in", 500000), 0);
	for (played = 1; take(wire, 0); played++)
		;
	assert_int_equal(played, 326); /* whole records in 500,000 bytes */
	assert_true(stats_of(wire).exhausted);
	assert_non_null(strstr(log_lines, "in: changed while it was played, which ends here: in: "
					  "record 327: truncated"));
	unplug(wire);
}

/* --- capturing
 * ------------------------------------------------------------------------------------- */

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
	expect_refused("b,peer=pcap::out", EBUSY, "out: another port captures into it");
	unplug(wire);
	wire = plug("b,peer=pcap::out");
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
	    TEST(what_the_port_sends_is_captured_byte_for_byte),
	    TEST(a_file_is_played_and_another_captured),
	    TEST(the_file_that_is_played_is_not_overwritten),
	    TEST(two_ports_do_not_capture_into_one_file),
	    TEST(a_capture_that_cannot_be_made_is_refused),
	    TEST(a_full_disk_is_reported_once_and_counted),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
