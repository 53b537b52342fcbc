/* SPDX-License-Identifier: BSD-3-Clause */
/* What the software NIC's descriptors say of a received frame: packet types and checksums. */
#include "nic_packets.h"
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED, LEGACY = SRRCTL_DESCTYPE_LEGACY };

/* Bits of the status, and of the packet type in the first word. */
enum { UDPCS = 1 << 4, L4CS = 1 << 5, IPCS = 1 << 6, L4E = 1 << 30 };
#define IPE (UINT64_C(1) << 31)
#define CHECKS (UDPCS | L4CS | IPCS | L4E | IPE)
enum {
	T_IPV4 = 1 << 4,
	T_OPTIONS = 1 << 5,
	T_IPV6 = 1 << 6,
	T_EXTENSION = 1 << 7,
	T_TCP = 1 << 8,
	T_UDP = 1 << 9,
	T_SCTP = 1 << 10,
};

struct seen {
	uint64_t status;
	unsigned types;
};

static void start(unsigned type) {
	rig_open("");
	rx_start(0, 2, type, true);
	rx_give(0, 0, RING - 1);
}

static struct seen arrive(const uint8_t *frame, size_t len) {
	unsigned at = rd(REG_RDH);

	assert_true(softnic_inject(rig.nic, frame, len));
	step();
	assert_int_equal(rd(REG_RDH), at + 1);
	return (struct seen){rx_status(0, at), le64toh(rig.mem->rx[0][at].qw0) & 0x1FFF0};
}

/* The packet with its byte `at` changed, if `by` is not 0; padded with bytes that are not zero. */
static struct seen look(struct packet p, size_t at, uint8_t by) {
	uint8_t frame[ROOM];
	struct seen seen;

	start(ADVANCED);
	memset(frame, 0x99, sizeof(frame));
	make_packet(frame, &p);
	frame[at] ^= by;
	seen = arrive(frame, p.len < 60 ? 60 : p.len);
	rig_close_clean();
	return seen;
}

static const struct {
	const char *what;
	struct packet packet;
	unsigned types;
	uint64_t checks;
} cases[] = {
    {"not IP", {.payload = 50}, 0, 0},
    {"ICMP", {.ip = 4, .protocol = 1, .payload = 9}, T_IPV4, IPCS},
    {"TCP", {.ip = 4, .protocol = TCP}, T_IPV4 | T_TCP, IPCS | L4CS},
    {"TCP, odd", {.ip = 4, .protocol = TCP, .payload = 1401}, T_IPV4 | T_TCP, IPCS | L4CS},
    {"UDP", {.ip = 4, .protocol = UDP, .payload = 1}, T_IPV4 | T_UDP, IPCS | L4CS | UDPCS},
    {"SCTP", {.ip = 4, .protocol = SCTP, .payload = 33}, T_IPV4 | T_SCTP, IPCS | L4CS},
    {"options", {.ip = 4, .options = 40, .protocol = TCP}, T_IPV4 | T_OPTIONS | T_TCP, IPCS | L4CS},
    {"fragment", {.ip = 4, .fragment = true, .protocol = TCP, .payload = 80}, T_IPV4, IPCS},
    {"IPv6", {.ip = 6, .protocol = 58, .payload = 7}, T_IPV6, 0},
    {"IPv6 TCP", {.ip = 6, .protocol = TCP, .payload = 3}, T_IPV6 | T_TCP, L4CS},
    {"IPv6 UDP", {.ip = 6, .protocol = UDP, .payload = 1402}, T_IPV6 | T_UDP, L4CS | UDPCS},
    {"IPv6 SCTP", {.ip = 6, .protocol = SCTP, .payload = 4}, T_IPV6 | T_SCTP, L4CS},
    {"extension", {.ip = 6, .options = 16, .protocol = TCP}, T_IPV6 | T_EXTENSION | T_TCP, L4CS},
    {"IPv6 fragment",
     {.ip = 6, .fragment = true, .protocol = UDP, .payload = 80},
     T_IPV6 | T_EXTENSION,
     0},
    {"large words",
     {.ip = 4,
      .protocol = UDP,
      .src = {255, 255, 255, 254},
      .dst = {255, 255, 255, 255},
      .sport = 0xFFFF,
      .dport = 0xFFFF,
      .payload = 1471},
     T_IPV4 | T_UDP,
     IPCS | L4CS | UDPCS},
    {"tag", {.vlan = 7, .ip = 4, .protocol = TCP}, T_IPV4 | T_TCP, IPCS | L4CS},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void types_and_checks_follow_from_the_headers(void **state) {
	(void)state;
	for (unsigned i = 0; i < CASES; i++) {
		struct seen seen = look(cases[i].packet, 0, 0);

		if (seen.types != cases[i].types || (seen.status & CHECKS) != cases[i].checks)
			fail_msg("%s: types 0x%x, status 0x%llx", cases[i].what, seen.types,
				 (unsigned long long)seen.status);
	}
}

/* Any byte that is wrong shows in the checksum that covers it, and only there. */
static void every_wrong_byte_shows(void **state) {
	(void)state;
	for (unsigned i = 0; i < CASES; i++) {
		struct packet p = cases[i].packet;
		uint8_t frame[ROOM];

		make_packet(frame, &p);
		if (cases[i].checks & L4CS) {
			struct seen first = look(p, p.l4, 0x10);
			struct seen last = look(p, p.len - 1, 0x01);

			assert_int_equal(first.status & CHECKS, cases[i].checks | L4E);
			assert_int_equal(last.status & CHECKS, cases[i].checks | L4E);
			/* The padding is no part of it. */
			if (p.len < 60)
				assert_int_equal(look(p, 59, 0x01).status & CHECKS,
						 cases[i].checks);
		}
		if (cases[i].checks & IPCS) {
			/* The time to live is in no pseudo header; the source address is. */
			assert_int_equal(look(p, p.l3 + 8, 1).status & CHECKS,
					 cases[i].checks | IPE);
			assert_int_equal(
			    look(p, p.l3 + 12, 1).status & CHECKS,
			    cases[i].checks | IPE |
				((cases[i].checks & L4CS) && p.protocol != SCTP ? L4E : 0));
		}
	}
}

/* 82599 specification update: such a packet is flagged, though it has no checksum to be wrong. */
static void udp_without_checksum_is_flagged(void **state) {
	struct packet p = {.ip = 4, .protocol = UDP, .payload = 40};
	uint8_t frame[ROOM];

	(void)state;
	start(ADVANCED);
	make_packet(frame, &p);
	put16(frame + p.l4 + 6, 0);
	assert_int_equal(arrive(frame, p.len).status & CHECKS, IPCS | L4CS | UDPCS | L4E);
	/* A datagram that ends before its packet does is right as far as it goes. */
	make_packet(frame, &p);
	put16(frame + p.l4 + 4, 18);
	put16(frame + p.l4 + 6, 0);
	put16(frame + p.l4 + 6, ~plain_sum(frame + p.l4, 18, pseudo_sum(frame + p.l3, UDP, 18)));
	assert_int_equal(arrive(frame, p.len).status & CHECKS, IPCS | L4CS | UDPCS);
	put16(frame + p.l4 + 4, 49); /* one more than there are */
	assert_int_equal(arrive(frame, p.len).status & CHECKS, IPCS | L4CS | UDPCS | L4E);
	put16(frame + p.l4 + 4, 7);
	assert_int_equal(arrive(frame, p.len).status & CHECKS, IPCS | L4CS | UDPCS | L4E);
	rig_close_clean();
}

/* A transport header that is cut is none. */
static void short_transports_are_none(void **state) {
	static const struct {
		unsigned protocol;
		size_t least;
	} headers[] = {{TCP, 20}, {UDP, 8}, {SCTP, 12}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct packet p = {.ip = 4, .protocol = headers[i].protocol, .payload = 40};
		uint8_t frame[ROOM];

		start(ADVANCED);
		make_packet(frame, &p);
		put16(frame + p.l3 + 2, 20 + headers[i].least - 1);
		assert_int_equal(arrive(frame, p.len).types, T_IPV4);
		put16(frame + p.l3 + 2, 20 + headers[i].least);
		assert_int_not_equal(arrive(frame, p.len).types, T_IPV4);
		rig_close_clean();
	}
}

/* In legacy descriptors the same bits stand elsewhere. */
static void legacy_descriptors_tell_of_checksums_too(void **state) {
	struct packet p = {.ip = 4, .protocol = UDP, .payload = 40};
	uint8_t frame[ROOM];

	(void)state;
	start(LEGACY);
	make_packet(frame, &p);
	assert_int_equal(arrive(frame, p.len).status, UINT64_C(0x00F3) << 32 | p.len);
	frame[p.len - 1] ^= 1;
	assert_int_equal(arrive(frame, p.len).status, UINT64_C(0x40F3) << 32 | p.len);
	frame[p.len - 1] ^= 1;
	frame[p.l3 + 8] ^= 1;
	assert_int_equal(arrive(frame, p.len).status, UINT64_C(0x80F3) << 32 | p.len);
	rig_close_clean();
}

static void nothing_is_said_of_damaged_frames(void **state) {
	struct packet p = {.ip = 4, .protocol = UDP, .payload = 40};
	uint8_t frame[ROOM];

	(void)state;
	start(ADVANCED);
	wr(REG_RXCTRL, 0);
	wr(REG_FCTRL, rd(REG_FCTRL) | FCTRL_SBP);
	wr(REG_RXCTRL, RXCTRL_RXEN);
	make_packet(frame, &p);
	softnic_inject_bad_crc(rig.nic, frame, p.len);
	step();
	assert_int_equal(rx_status(0, 0) & (CHECKS | RXD_ERR_CE), RXD_ERR_CE);
	assert_int_equal(le64toh(rig.mem->rx[0][0].qw0) & 0x1FFF0, 0);
	rig_close_clean();
}

static void it_is_said_in_the_last_descriptor(void **state) {
	struct packet p = {.ip = 4, .protocol = TCP, .payload = 1400};
	uint8_t frame[ROOM];

	(void)state;
	rig_open("");
	rx_start(0, 1, ADVANCED, true);
	rx_give(0, 0, 4);
	make_packet(frame, &p);
	softnic_inject(rig.nic, frame, p.len);
	step();
	assert_int_equal(rx_status(0, 0), RXD_DD | UINT64_C(1024) << RXD_LEN_LOW);
	assert_int_equal(rig.mem->rx[0][0].qw0, 0);
	assert_int_equal(rx_status(0, 1) & CHECKS, IPCS | L4CS);
	assert_int_equal(le64toh(rig.mem->rx[0][1].qw0) & 0x1FFF0, T_IPV4 | T_TCP);
	rig_close_clean();
}

/* Frames of any bytes behind plausible beginnings: nothing but the sanitizers can complain. */
static void no_headers_lead_outside_of_the_frame(void **state) {
	uint32_t random = 1;

	(void)state;
	start(ADVANCED);
	for (unsigned i = 0; i < 20000; i++) {
		struct packet p = cases[i % CASES].packet;
		uint8_t whole[ROOM], *frame;
		size_t len;

		memset(whole, 0, 60);
		make_packet(whole, &p);
		len = p.len < 60 ? 60 : p.len;
		for (unsigned n = 0; n < 3; n++) {
			random = random * 1664525 + 1013904223;
			whole[12 + (random >> 8) % 60 % (len - 12)] = (uint8_t)(random >> 24);
		}
		frame = malloc(len); /* so that its end is known to them */
		assert_non_null(frame);
		memcpy(frame, whole, len);
		softnic_inject(rig.nic, frame, len);
		free(frame);
		step();
		rx_give(0, rd(REG_RDH), (rd(REG_RDH) + RING - 1) % RING);
	}
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(types_and_checks_follow_from_the_headers),
	    cmocka_unit_test(every_wrong_byte_shows),
	    cmocka_unit_test(udp_without_checksum_is_flagged),
	    cmocka_unit_test(short_transports_are_none),
	    cmocka_unit_test(legacy_descriptors_tell_of_checksums_too),
	    cmocka_unit_test(nothing_is_said_of_damaged_frames),
	    cmocka_unit_test(it_is_said_in_the_last_descriptor),
	    cmocka_unit_test(no_headers_lead_outside_of_the_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
