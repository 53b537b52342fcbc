/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of several packet buffers through the programs: whole, in order, counted as frames. */
#include "capture.h"
#include "program.h"

#include <pcap/pcap.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { FRAMES = 401 };

/* Files of one test, and the ports that play and write them. */
static char folder[32], in[64], out[64], player[96], writer[96];

static int make_files(void **state) {
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/ixdp-jumbo-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(in, sizeof(in), "%s/in.pcap", folder);
	snprintf(out, sizeof(out), "%s/out.pcap", folder);
	snprintf(player, sizeof(player), "soft:a,peer=pcap:%s", in);
	snprintf(writer, sizeof(writer), "soft:b,peer=pcap::%s", out);
	capture_write(in, CAPTURE_JUMBO, FRAMES);
	return 0;
}

static int remove_files(void **state) {
	(void)state;
	unlink(in);
	unlink(out);
	return rmdir(folder);
}

/* --- ixdp-fwd ------------------------------------------------------------------------------ */

static void forwards_mixed_sizes_byte_for_byte(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--mtu", "9000", "--ring", "64",
					     "--batch", "9", player, writer));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *b = program_final(&program, "soft:b");

	assert_int_equal(json_int(program_final(&program, "soft:a"), "rx_packets"), FRAMES);
	assert_int_equal(json_int(b, "tx_packets"), FRAMES);
	assert_int_equal(json_int(b, "tx_dropped"), 0);
	assert_int_equal(capture_read(out, CAPTURE_JUMBO, IXDP_FRAME_MAX), FRAMES);
	program_free(&program);
}

/* Frame n of three: bytes n, and 9,000 of them behind the header; 9,001 in the second one. */
static unsigned three(unsigned n, uint8_t data[IXDP_FRAME_MAX + 1]) {
	memset(data, (int)n, IXDP_FRAME_MAX + 1);
	return n == 1 ? IXDP_FRAME_MAX + 1 : IXDP_FRAME_MAX;
}

static void write_three(void) {
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *dumper = pcap_dump_open(pcap, in);
	uint8_t data[IXDP_FRAME_MAX + 1];

	assert_non_null(dumper);
	for (unsigned n = 0; n < 3; n++) {
		const unsigned len = three(n, data);

		pcap_dump((u_char *)dumper, &(struct pcap_pkthdr){.caplen = len, .len = len}, data);
	}
	pcap_dump_close(dumper);
	pcap_close(pcap);
}

static void what_the_mtu_forbids_is_counted_and_its_neighbours_are_whole(void **state) {
	uint8_t expected[IXDP_FRAME_MAX + 1];
	char error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	struct program program;
	const u_char *data;

	(void)state;
	write_three();
	program_start(&program,
		      PROGRAM_ARGS("ixdp-fwd", "--json", "--mtu", "9000", player, writer));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");

	assert_int_equal(json_int(a, "rx_packets"), 2);
	assert_int_equal(json_int(a, "rx_dropped"), 1);
	assert_int_equal(json_int(program_final(&program, "soft:b"), "tx_packets"), 2);
	program_free(&program);

	pcap_t *pcap = pcap_open_offline(out, error);

	assert_non_null(pcap);
	for (unsigned n = 0; n < 3; n += 2) {
		assert_int_equal(pcap_next_ex(pcap, &header, &data), 1);
		assert_int_equal(header->len, three(n, expected));
		assert_memory_equal(data, expected, header->len);
	}
	assert_int_equal(pcap_next_ex(pcap, &header, &data), PCAP_ERROR_BREAK);
	pcap_close(pcap);
}

/* As many elements would be a fifth of them. */
static void count_is_of_frames(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--mtu", "9000", "--count",
					     "3000", "soft:a,peer=gen,size=9014", "soft:b"));
	assert_int_equal(program_wait(&program), 0);
	const int64_t received = json_int(program_final(&program, "soft:a"), "rx_packets");

	assert_true(received >= 3000);
	assert_int_equal(json_int(program_final(&program, "soft:b"), "wire_rx_packets"), received);
	assert_int_equal(json_int(program_final(&program, "soft:b"), "corrupt"), 0);
	program_free(&program);
}

/* Its ring has room for 12 of them, and is full most of the time. */
static void what_a_full_ring_does_not_take_is_sent_later_whole(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--mtu", "9000", "--ring", "64",
					     "--batch", "23", "soft:a,peer=gen,size=9014,count=600",
					     "soft:b,fault=dd-late:20"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *b = program_final(&program, "soft:b");

	assert_int_equal(json_int(b, "wire_rx_packets"), 600);
	assert_int_equal(json_int(b, "lost") + json_int(b, "misordered"), 0);
	assert_int_equal(json_int(b, "corrupt") + json_int(b, "foreign"), 0);
	assert_int_equal(json_int(b, "tx_dropped"), 0);
	program_free(&program);
}

static void what_is_never_sent_is_counted_in_frames(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--mtu", "9000", "--ring", "64",
					     "--duration", "0.1", "soft:a,peer=gen,size=9014",
					     "soft:b,fault=tx-stop"));
	assert_int_equal(program_wait(&program), 1);
	struct json_object *b = program_final(&program, "soft:b");

	assert_int_equal(json_int(b, "tx_packets"), 0);
	assert_true(json_int(b, "tx_dropped") > 12);
	assert_int_equal(json_int(b, "tx_dropped"),
			 json_int(program_final(&program, "soft:a"), "rx_packets"));
	program_free(&program);
}

/* Flows stay in order though queues are served in turn. */
static void forwards_flows_of_several_queues_in_order(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "--json", "--mtu", "9000", "--rx-queues",
					     "4", "--ring", "256", "--batch", "7",
					     "soft:a,peer=gen,size=4097,flows=1000,count=5000"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *a = program_final(&program, "soft:a");

	assert_int_equal(json_int(a, "rx_packets"), 5000);
	assert_int_equal(json_int(a, "wire_rx_packets"), 5000);
	assert_int_equal(json_int(a, "lost") + json_int(a, "misordered"), 0);
	assert_int_equal(json_int(a, "corrupt") + json_int(a, "foreign"), 0);
	program_free(&program);
}

/* --- ixdp-pktgen --------------------------------------------------------------------------- */

static void assert_came_back(struct program *program, int64_t frames, int64_t size) {
	struct json_object *final = program_final(program, "soft:a");

	assert_int_equal(json_int(final, "tx_packets"), frames);
	assert_int_equal(json_int(final, "tx_bytes"), frames * size);
	assert_int_equal(json_int(final, "rx_packets"), frames);
	assert_int_equal(json_int(final, "rx_bytes"), frames * size);
	assert_int_equal(json_int(final, "rx_lost"), 0);
	assert_int_equal(json_int(final, "rx_misordered"), 0);
	assert_int_equal(json_int(final, "rx_corrupt"), 0);
}

static void long_test_frames_come_back_whole(void **state) {
	static const char *const sizes[] = {"2048", "2049", "4096", "4097", "9014"};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct program program;

		program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "501",
						     "--size", sizes[i], "--batch", "8", "--ring",
						     "64", "soft:a,peer=loop"));
		assert_int_equal(program_wait(&program), 0);
		assert_came_back(&program, 501, strtol(sizes[i], NULL, 10));
		program_free(&program);
	}
}

static void flows_come_back_on_several_queues(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--count", "3001", "--size",
					     "2100", "--flows", "100", "--rx-queues", "4", "--rate",
					     "20kpps", "soft:a,peer=loop"));
	assert_int_equal(program_wait(&program), 0);
	assert_came_back(&program, 3001, 2100);
	program_free(&program);
}

/* Bytes per second of the rate are those of frames, not of their parts. */
static void the_rate_is_of_frames(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-pktgen", "--json", "--rate", "1kpps", "--size",
					     "9014", "--duration", "1", "soft:a"));
	assert_int_equal(program_wait(&program), 0);
	struct json_object *final = program_final(&program, "soft:a");
	const int64_t sent = json_int(final, "tx_packets");

	assert_true(sent > 100);
	assert_true((double)sent <= 1000 * json_number(final, "t") + 32);
	assert_int_equal(json_int(final, "corrupt") + json_int(final, "lost"), 0);
	program_free(&program);
}

/* --- ixdp-capture -------------------------------------------------------------------------- */

static void assert_balance(struct json_object *final, int64_t written) {
	assert_int_equal(json_int(final, "written"), written);
	assert_int_equal(json_int(final, "captured"), written);
	assert_int_equal(json_int(final, "lost"), 0);
}

static void captures_mixed_sizes_byte_for_byte(void **state) {
	static const char *const snaplens[] = {"65535", "3000", "100"};

	(void)state;
	for (size_t i = 0; i < sizeof(snaplens) / sizeof(snaplens[0]); i++) {
		const char *snaplen = snaplens[i];
		struct program program;

		program_start(&program,
			      PROGRAM_ARGS("ixdp-capture", "--json", "--mtu", "9000", "--batch",
					   "7", "--snaplen", snaplen, "-w", out, player));
		assert_int_equal(program_wait(&program), 0);
		assert_balance(program_final(&program, "soft:a"), FRAMES);
		assert_int_equal(json_int(program_final(&program, "soft:a"), "rx_packets"), FRAMES);
		assert_int_equal(capture_read(out, CAPTURE_JUMBO, strtoul(snaplen, NULL, 10)),
				 FRAMES);
		program_free(&program);
	}
}

/* The room for one long frame may be filled by five short ones. */
static void the_count_of_a_capture_is_exact(void **state) {
	(void)state;
	for (unsigned count = 100; count < 107; count++) {
		struct program program;
		struct stat st;
		char text[8];

		snprintf(text, sizeof(text), "%u", count);
		program_start(&program,
			      PROGRAM_ARGS("ixdp-capture", "--json", "--mtu", "9000", "--batch",
					   "7", "--count", text, "-w", out, "soft:a,peer=gen"));
		assert_int_equal(program_wait(&program), 0);
		assert_balance(program_final(&program, "soft:a"), count);
		assert_int_equal(stat(out, &st), 0);
		assert_int_equal(st.st_size, 24 + count * (16 + 60));
		program_free(&program);
	}
}

static void captures_flows_of_several_queues(void **state) {
	char error[PCAP_ERRBUF_SIZE];
	struct ixdp_frame_checker *checker = ixdp_frame_checker_new();
	struct ixdp_frame_counts counts;
	struct pcap_pkthdr *header;
	struct program program;
	const u_char *data;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-capture", "--json", "--mtu", "9000",
					     "--rx-queues", "4", "--ring", "256", "-w", out,
					     "soft:a,peer=gen,size=9014,flows=100,count=500"));
	assert_int_equal(program_wait(&program), 0);
	assert_balance(program_final(&program, "soft:a"), 500);
	program_free(&program);

	pcap_t *pcap = pcap_open_offline(out, error);

	assert_non_null(pcap);
	while (pcap_next_ex(pcap, &header, &data) == 1)
		ixdp_frame_check(checker, data, header->caplen);
	pcap_close(pcap);
	ixdp_frame_checker_counts(checker, &counts);
	assert_int_equal(counts.good, 500);
	assert_int_equal(counts.lost + counts.misordered, 0);
	ixdp_frame_checker_free(checker);
}

#define TEST_OF_FILES(test) cmocka_unit_test_setup_teardown(test, make_files, remove_files)

int main(void) {
	const struct CMUnitTest tests[] = {
	    TEST_OF_FILES(forwards_mixed_sizes_byte_for_byte),
	    TEST_OF_FILES(what_the_mtu_forbids_is_counted_and_its_neighbours_are_whole),
	    cmocka_unit_test(count_is_of_frames),
	    cmocka_unit_test(what_a_full_ring_does_not_take_is_sent_later_whole),
	    cmocka_unit_test(what_is_never_sent_is_counted_in_frames),
	    cmocka_unit_test(forwards_flows_of_several_queues_in_order),
	    cmocka_unit_test(long_test_frames_come_back_whole),
	    cmocka_unit_test(flows_come_back_on_several_queues),
	    cmocka_unit_test(the_rate_is_of_frames),
	    TEST_OF_FILES(captures_mixed_sizes_byte_for_byte),
	    TEST_OF_FILES(the_count_of_a_capture_is_exact),
	    TEST_OF_FILES(captures_flows_of_several_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
