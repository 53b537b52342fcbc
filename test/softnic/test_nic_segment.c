/* SPDX-License-Identifier: BSD-3-Clause */
/* Segmentation by the software NIC: a large packet leaves as frames, each of them right. */
#include "nic_packets.h"
#include "nic_rig.h"
#include "nic_tx_rig.h"

enum { FRAMES = 64, FIN = 1, PSH = 8, ACK = 16, CWR = 128, IP_ID = 0xABCD, SEQ = 0x11223344 };

/* All frames that left, not the last one alone. */
static struct {
	uint8_t data[FRAMES][ROOM];
	size_t len[FRAMES];
	unsigned n, room;
} out;

static bool keep(const uint8_t *frame, size_t len, void *arg) {
	(void)arg;
	if (out.n >= out.room) return false;
	assert_true(len <= ROOM && out.n < FRAMES);
	memcpy(out.data[out.n], frame, len);
	out.len[out.n++] = len;
	return true;
}

static void start(void) {
	rig_open("");
	tx_start(0);
	out.n = 0;
	out.room = FRAMES;
	softnic_tap(rig.nic, keep, NULL);
}

/* The packet, flags set if it is TCP, with the sum of a pseudo header without length. */
static void make_large(uint8_t *packet, struct packet *p, unsigned flags) {
	make_packet(packet, p);
	if (p->protocol == TCP) packet[p->l4 + 13] = (uint8_t)flags;
	unfill_checksums(packet, p, false);
}

/* Sends the packet from buffer 1 on, in pieces of ROOM bytes, behind a context. */
static void send_large(const uint8_t *packet, const struct packet *p, unsigned mss, uint64_t bits) {
	size_t headers = p->l4 + transport_header(p->protocol);
	unsigned tail = 1;

	put_context_mss(0, 0, p, 0x123, mss);
	bits |= TXD_IFCS | TXD_TSE | TXD_TXSM | (p->ip == 4 ? TXD_IXSM : 0);
	for (size_t at = 0; at < p->len; tail++) {
		size_t part = p->len - at < ROOM ? p->len - at : ROOM;

		memcpy(rig.mem->tx_data[0][tail], packet + at, part);
		tx_put(0, tail, part, tail == 1 ? p->len - headers : 0,
		       bits | (at + part == p->len ? TXD_EOP | TXD_RS : 0));
		at += part;
	}
	ring_doorbell(REG_TDT, tail);
	step();
}

/* What frame n of the packet must be: the same packet, made with its part of the payload. */
static void assert_segment(const uint8_t *large, const struct packet *p, unsigned n, unsigned mss,
			   unsigned flags) {
	size_t headers = p->l4 + transport_header(p->protocol), done = headers + n * mss;
	struct packet s = *p;
	uint8_t frame[ROOM];

	s.payload = p->len - done < mss ? p->len - done : mss;
	make_packet(frame, &s);
	memcpy(frame + headers, large + done, s.payload);
	if (p->ip == 4) {
		put16(frame + s.l3 + 4, IP_ID + n);
		put16(frame + s.l3 + 10, 0);
		put16(frame + s.l3 + 10, ~plain_sum(frame + s.l3, s.l4 - s.l3, 0));
	}
	if (p->protocol == TCP) {
		put16(frame + s.l4 + 4, (SEQ + n * mss) >> 16);
		put16(frame + s.l4 + 6, (SEQ + n * mss) & 0xFFFF);
		frame[s.l4 + 13] = (uint8_t)flags;
	}
	unfill_checksums(frame, &s, true);
	if (p->ip == 4) put16(frame + s.l3 + 10, ~plain_sum(frame + s.l3, s.l4 - s.l3, 0));
	put16(frame + s.l4 + (p->protocol == TCP ? 16 : 6),
	      ~plain_sum(frame + s.l4, s.len - s.l4, 0));
	if (out.len[n] != (s.len < 60 ? 60 : s.len) || memcmp(out.data[n], frame, s.len) != 0)
		fail_msg("segment %u of %zu bytes", n, out.len[n]);
}

static void packets_become_frames(void **state) {
	static const struct {
		struct packet packet;
		unsigned mss, frames;
	} cases[] = {
	    {{.ip = 4, .protocol = TCP, .payload = 4000}, 1460, 3},
	    {{.ip = 4, .protocol = TCP, .payload = 2920}, 1460, 2}, /* no rest */
	    {{.ip = 4, .protocol = TCP, .payload = 1}, 1460, 1},
	    {{.ip = 4, .options = 12, .protocol = TCP, .payload = 3001}, 1000, 4},
	    {{.ip = 6, .protocol = TCP, .payload = 4000}, 1440, 3},
	    {{.ip = 6, .options = 8, .protocol = TCP, .payload = 2000}, 999, 3},
	    {{.ip = 4, .protocol = UDP, .payload = 10000}, 1472, 7},
	    {{.ip = 6, .protocol = UDP, .payload = 10001}, 1400, 8},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet p = cases[i].packet;
		static uint8_t large[ROOM * 4];

		start();
		make_large(large, &p, FIN | PSH | ACK | CWR);
		send_large(large, &p, cases[i].mss, 0);
		if (out.n != cases[i].frames) fail_msg("case %u: %u frames", i, out.n);
		for (unsigned n = 0; n < out.n; n++) {
			unsigned flags =
			    ACK | (n == 0 ? CWR : 0) | (n + 1 == out.n ? FIN | PSH : 0);

			assert_segment(large, &p, n, cases[i].mss, flags);
		}
		assert_int_equal(rd(REG_GPTC), out.n);
		assert_int_equal(rd(REG_QPTC), out.n);
		rig_close_clean();
	}
}

static void tags_are_in_every_segment(void **state) {
	struct packet p = {.ip = 4, .protocol = UDP, .payload = 3000};
	static uint8_t large[ROOM];

	(void)state;
	start();
	make_large(large, &p, 0);
	send_large(large, &p, 1400, TXD_VLE);
	assert_int_equal(out.n, 3);
	for (unsigned n = 0; n < 3; n++) {
		assert_int_equal(get32(out.data[n] + 12), 0x81000123);
		memmove(out.data[n] + 12, out.data[n] + 16, ROOM - 16);
		out.len[n] -= 4;
		assert_segment(large, &p, n, 1400, 0);
	}
	rig_close_clean();
}

/* The flags that first, middle and last segments keep are DTXTCPFLGL's and DTXTCPFLGH's. */
static void flags_follow_their_masks(void **state) {
	struct packet p = {.ip = 4, .protocol = TCP, .payload = 300};
	static uint8_t large[ROOM];

	(void)state;
	start();
	wr(REG_DTXTCPFLGL, 0x0002 << 16 | 0x0001);
	wr(REG_DTXTCPFLGH, 0x0004);
	make_large(large, &p, 0xFF);
	send_large(large, &p, 100, 0);
	assert_int_equal(out.n, 3);
	for (unsigned n = 0; n < 3; n++)
		assert_segment(large, &p, n, 100, 1 << n);
	rig_close_clean();
}

/* A wire that takes no more holds the rest; what has left does not leave again. */
static void held_segments_leave_once(void **state) {
	struct packet p = {.ip = 4, .protocol = TCP, .payload = 4000};
	static uint8_t large[ROOM * 2];

	(void)state;
	start();
	out.room = 0;
	make_large(large, &p, ACK);
	send_large(large, &p, 1000, 0);
	assert_int_equal(out.n, 0);
	for (out.room = 1; out.room < 4; out.room++) {
		step();
		step();
		assert_int_equal(out.n, out.room);
		assert_int_equal(rd(REG_TDH), 1);
		assert_false(tx_done(0, 2));
	}
	step();
	assert_int_equal(out.n, 4);
	assert_true(tx_done(0, 1) || tx_done(0, 2));
	for (unsigned n = 0; n < 4; n++)
		assert_segment(large, &p, n, 1000, ACK);
	rig_close_clean();
}

/* 64 KB, as IP can say; the queue goes on behind it. */
static void the_largest_packet_is_cut(void **state) {
	struct packet p = {.ip = 6, .protocol = UDP, .payload = 65000};
	static uint8_t large[70000];

	(void)state;
	start();
	make_large(large, &p, 0);
	send_large(large, &p, 1400, 0);
	assert_int_equal(out.n, 47);
	for (unsigned n = 0; n < out.n; n++)
		assert_segment(large, &p, n, 1400, 0);
	out.n = 0;
	make_frame(rig.mem->tx_data[0][40], 60, 3);
	tx_frame(0, rd(REG_TDH), 60);
	ring_doorbell(REG_TDT, rd(REG_TDH) + 1);
	step();
	assert_int_equal(out.n, 1);
	rig_close_clean();
}

static void what_cannot_be_cut_hangs_the_queue(void **state) {
	static const struct {
		const char *what, *text;
		struct packet packet;
		unsigned mss;
		uint64_t qw0, qw1; /* xored into the context */
	} cases[] = {
	    {"SCTP", "neither TCP nor UDP", {.ip = 4, .protocol = SCTP, .payload = 300}, 100, 0, 0},
	    {"MSS", "MSS", {.ip = 4, .protocol = TCP, .payload = 300}, 0, 0, 0},
	    {"beyond",
	     "headers are not in",
	     {.ip = 4, .protocol = TCP, .payload = 10},
	     100,
	     0,
	     UINT64_C(128) << 40},
	    {"short TCP",
	     "headers",
	     {.ip = 4, .protocol = TCP, .payload = 300},
	     100,
	     0,
	     UINT64_C(16) << 40},
	    {"IPv4 that is not",
	     "headers too short",
	     {.ip = 4, .protocol = UDP, .payload = 300},
	     100,
	     0,
	     1 << 10},
	    {"long", "15.5 KB", {.ip = 6, .protocol = UDP, .payload = 20000}, 16000, 0, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet p = cases[i].packet;
		static uint8_t large[ROOM * 8];

		start();
		make_large(large, &p, 0);
		softnic_bus_master(rig.nic, false); /* until the context is as it shall be */
		send_large(large, &p, cases[i].mss, 0);
		rig.mem->tx[0][0].qw0 ^= htole64(cases[i].qw0);
		rig.mem->tx[0][0].qw1 ^= htole64(cases[i].qw1);
		softnic_bus_master(rig.nic, true);
		step();
		step();
		if (out.n != 0 || softnic_violations(rig.nic) != 1 ||
		    !strstr(softnic_last_violation(rig.nic), cases[i].text))
			fail_msg("%s: %u: %s", cases[i].what, out.n,
				 softnic_last_violation(rig.nic));
		rig_close();
	}
}

static void segments_without_checksums_are_reported(void **state) {
	struct packet p = {.ip = 4, .protocol = TCP, .payload = 300};
	uint8_t *packet;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		start();
		packet = rig.mem->tx_data[0][1];
		make_large(packet, &p, 0);
		put_context_mss(0, 0, &p, 0, 100);
		tx_put(0, 1, p.len, i == 2 ? p.len : 300,
		       TX_EOP_IFCS | TXD_RS | TXD_TSE | (i == 0 ? TXD_TXSM : TXD_IXSM) |
			   (i == 2 ? TXD_TXSM : 0));
		ring_doorbell(REG_TDT, 2);
		step();
		assert_int_equal(out.n, 3);
		assert_int_equal(softnic_violations(rig.nic), 1);
		assert_non_null(
		    strstr(softnic_last_violation(rig.nic), i == 2 ? "PAYLEN" : "IXSM"));
		rig_close();
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(packets_become_frames),
	    cmocka_unit_test(tags_are_in_every_segment),
	    cmocka_unit_test(flags_follow_their_masks),
	    cmocka_unit_test(held_segments_leave_once),
	    cmocka_unit_test(the_largest_packet_is_cut),
	    cmocka_unit_test(what_cannot_be_cut_hangs_the_queue),
	    cmocka_unit_test(segments_without_checksums_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
