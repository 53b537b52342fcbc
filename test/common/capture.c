/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture.h"

#include <pcap/pcap.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static unsigned length(unsigned number) {
	/* Where a frame begins or ends to need another packet buffer. */
	static const uint16_t edges[] = {60,   61,   2047, 2048, 2049, 4095, 4096,
					 4097, 6144, 6145, 8192, 8193, 9013, 9014};

	if (number < CAPTURE_JUMBO) return IXDP_FRAME_MIN + number % CAPTURE_LENGTHS;
	if (number % 2) return edges[number / 2 % (sizeof(edges) / sizeof(edges[0]))];
	/* A prime, so that short and long ones follow each other. */
	return IXDP_FRAME_MIN + number * 2503 % (IXDP_FRAME_MAX - IXDP_FRAME_MIN + 1);
}

unsigned capture_frame(unsigned number, uint8_t data[IXDP_FRAME_MAX]) {
	const unsigned len = length(number);

	for (unsigned i = 0; i < len; i++)
		data[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
	return len;
}

void capture_write(const char *path, unsigned first, unsigned frames) {
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *dumper = pcap_dump_open(pcap, path);
	uint8_t data[IXDP_FRAME_MAX];

	assert_non_null(dumper);
	for (unsigned i = 0; i < frames; i++) {
		const unsigned len = capture_frame(first + i, data);
		const struct pcap_pkthdr header = {
		    .ts = {.tv_sec = i / 1000, .tv_usec = i % 1000}, .caplen = len, .len = len};

		pcap_dump((u_char *)dumper, &header, data);
	}
	pcap_dump_close(dumper);
	pcap_close(pcap);
}

unsigned capture_read(const char *path, unsigned first, unsigned snaplen) {
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *pcap =
	    pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
	struct pcap_pkthdr *header;
	uint8_t expected[IXDP_FRAME_MAX];
	const u_char *data;
	int64_t last_ns = 0;
	unsigned n = 0;
	int end;

	if (!pcap) fail_msg("%s", error);
	while ((end = pcap_next_ex(pcap, &header, &data)) == 1) {
		const unsigned len = capture_frame(first + n++, expected);
		const unsigned caplen = len < snaplen ? len : snaplen;
		const int64_t ns = header->ts.tv_sec * INT64_C(1000000000) + header->ts.tv_usec;

		assert_int_equal(header->len, len);
		assert_int_equal(header->caplen, caplen);
		assert_memory_equal(data, expected, caplen);
		assert_true(ns >= last_ns);
		assert_in_range(header->ts.tv_usec, 0, 999999999);
		last_ns = ns;
	}
	if (end != PCAP_ERROR_BREAK) fail_msg("%s: %s", path, pcap_geterr(pcap));
	pcap_close(pcap);
	return n;
}
