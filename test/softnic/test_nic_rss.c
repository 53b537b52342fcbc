/* SPDX-License-Identifier: BSD-3-Clause */
/* RSS of the software NIC: hash, queue, and what the descriptor says of them. */
#include "nic_packets.h"
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED };

/* Microsoft's, "Verifying the RSS Hash Calculation", as are the four hashes below. */
static const uint8_t key[40] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};
enum { TCP_IPV4 = 0x51ccc178, ANY_IPV4 = 0x323e8fc2, TCP_IPV6 = 0x40207d3d, ANY_IPV6 = 0x2cc18cd5 };

#define V4                                                                                         \
	.ip = 4, .src = {66, 9, 149, 187}, .dst = {161, 142, 100, 80}, .sport = 2794, .dport = 1766
/* clang-format off */
#define V6 .ip = 6, .sport = 2794, .dport = 1766, \
	.src = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, [15] = 7}, \
	.dst = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, [15] = 1}
/* clang-format on */

enum {
	ALL = MRQC_TCP_IPV4 | MRQC_IPV4 | MRQC_TCP_IPV6 | MRQC_IPV6 | MRQC_UDP_IPV4 | MRQC_UDP_IPV6,
};

static void write_key(void) {
	for (unsigned i = 0; i < 10; i++)
		wr(REG_N(RSSRK, i), key[4 * i] | key[4 * i + 1] << 8 | key[4 * i + 2] << 16 |
					(uint32_t)key[4 * i + 3] << 24);
}

/* Entry i of the redirection table says queue i % queues. */
static void write_reta(unsigned queues) {
	for (unsigned i = 0; i < 32; i++) {
		uint32_t entries = 0;

		for (unsigned byte = 0; byte < 4; byte++)
			entries |= (4 * i + byte) % queues << 8 * byte;
		wr(REG_N(RETA, i), entries);
	}
}

static void rss_start(uint32_t fields) {
	write_key();
	write_reta(QUEUES);
	wr(REG_RXCSUM, RXCSUM_PCSD);
	wr(REG_MRQC, MRQC_MRQE_RSS | fields);
	for (unsigned q = 0; q < QUEUES; q++) {
		rx_start(q, 2, ADVANCED, true);
		rx_give(q, 0, RING - 1);
	}
}

static void arrive(struct packet *p) {
	uint8_t frame[ROOM];

	memset(frame, 0, 60);
	make_packet(frame, p);
	assert_true(softnic_inject(rig.nic, frame, p->len < 60 ? 60 : p->len));
	step();
}

struct hashed {
	const char *what;
	struct packet packet;
	uint32_t fields; /* of MRQC */
	unsigned type;
	uint32_t hash;
};

static void check_hash(const struct hashed *c) {
	struct packet packet = c->packet;
	unsigned q = c->type ? (c->hash & 0x7F) % QUEUES : 0;
	uint64_t qw0;

	rig_open("");
	rss_start(c->fields);
	arrive(&packet);
	qw0 = le64toh(rig.mem->rx[q][0].qw0);
	if (rd(REG_N(RDH, q)) != 1) fail_msg("%s: not in queue %u", c->what, q);
	if ((qw0 & 0xF) != c->type || qw0 >> 32 != c->hash)
		fail_msg("%s: type %llu, hash 0x%08llx", c->what, (unsigned long long)qw0 & 0xF,
			 (unsigned long long)qw0 >> 32);
	rig_close_clean();
}

static void hashes_are_those_of_the_published_vectors(void **state) {
	static const struct hashed cases[] = {
	    {"TCP", {V4, .protocol = TCP}, ALL, 1, TCP_IPV4},
	    {"TCP not enabled", {V4, .protocol = TCP}, MRQC_IPV4 | MRQC_UDP_IPV4, 2, ANY_IPV4},
	    {"IPv4 not enabled", {V4, .protocol = 1}, ALL & ~MRQC_IPV4, 0, 0},
	    {"TCP over IPv6", {V6, .protocol = TCP}, ALL, 3, TCP_IPV6},
	    {"IPv6", {V6, .protocol = TCP}, MRQC_IPV6 | MRQC_TCP_IPV4, 5, ANY_IPV6},
	    {"IPv6 not enabled", {V6, .protocol = TCP}, MRQC_IPV4, 0, 0},
	    {"UDP", {V4, .protocol = UDP}, ALL, 7, TCP_IPV4},
	    {"UDP not enabled", {V4, .protocol = UDP}, MRQC_TCP_IPV4 | MRQC_IPV4, 2, ANY_IPV4},
	    {"UDP over IPv6", {V6, .protocol = UDP}, ALL, 8, TCP_IPV6},
	    {"SCTP", {V4, .protocol = SCTP}, ALL, 2, ANY_IPV4},
	    {"ICMP", {V4, .protocol = 1}, ALL, 2, ANY_IPV4},
	    {"nothing enabled", {V4, .protocol = TCP}, 0, 0, 0},
	    {"not IP", {.payload = 50}, ALL, 0, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_hash(&cases[i]);
}

/* Only the first fragment has ports, and all must come to one queue. */
static void fragments_are_hashed_by_address_alone(void **state) {
	static const struct hashed cases[] = {
	    {"TCP", {V4, .protocol = TCP, .fragment = true}, ALL, 2, ANY_IPV4},
	    {"UDP", {V4, .protocol = UDP, .fragment = true}, ALL, 2, ANY_IPV4},
	    {"IPv6", {V6, .protocol = TCP, .fragment = true}, ALL, 5, ANY_IPV6},
	    {"not enabled", {V4, .protocol = TCP, .fragment = true}, MRQC_TCP_IPV4, 0, 0},
	};
	struct packet last = {V4, .protocol = UDP, .payload = 30};
	uint8_t frame[ROOM];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_hash(&cases[i]);
	rig_open("");
	rss_start(ALL);
	make_packet(frame, &last);
	put16(frame + last.l3 + 6, 185); /* an offset, and no more to come */
	softnic_inject(rig.nic, frame, last.len);
	step();
	assert_int_equal(le64toh(rig.mem->rx[ANY_IPV4 % QUEUES][0].qw0) >> 32, ANY_IPV4);
	rig_close_clean();
}

static void headers_in_between_do_not_hide_the_ports(void **state) {
	static const struct hashed cases[] = {
	    {"tag", {V4, .vlan = 5, .protocol = TCP}, ALL, 1, TCP_IPV4},
	    {"tag, IPv6", {V6, .vlan = 0xFFF, .protocol = UDP}, ALL, 8, TCP_IPV6},
	    {"options", {V4, .options = 12, .protocol = TCP}, ALL, 1, TCP_IPV4},
	    {"extension", {V6, .options = 24, .protocol = TCP}, ALL, 3, TCP_IPV6},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_hash(&cases[i]);
}

static void headers_that_lie_are_not_hashed(void **state) {
	static const struct {
		unsigned ip, at;
		uint8_t value;
	} cases[] = {{4, 0, 0x44}, {4, 0, 0x4F}, {4, 0, 0x65}, {4, 2, 0xFF},
		     {4, 3, 19},   {6, 0, 0x40}, {6, 4, 0xFF}, {6, 5, 255}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet packet = {.ip = cases[i].ip, .protocol = TCP, .payload = 6};
		uint8_t frame[ROOM];

		rig_open("");
		rss_start(ALL);
		make_packet(frame, &packet);
		frame[packet.l3 + cases[i].at] = cases[i].value;
		softnic_inject(rig.nic, frame, packet.len);
		step();
		assert_int_equal(rd(REG_RDH), 1);
		assert_int_equal(rig.mem->rx[0][0].qw0, 0);
		rig_close_clean();
	}
}

static void without_mode_or_pcsd_there_is_no_hash(void **state) {
	struct packet packet = {V4, .protocol = TCP};

	(void)state;
	rig_open("");
	rss_start(ALL);
	wr(REG_MRQC, ALL);
	arrive(&packet);
	assert_int_equal(rd(REG_RDH), 1);
	assert_int_equal(le64toh(rig.mem->rx[0][0].qw0) & 0xF, 0);
	assert_int_equal(le64toh(rig.mem->rx[0][0].qw0) >> 32, 0);
	/* Queues are chosen all the same; but the place has the identification of IPv4. */
	wr(REG_MRQC, MRQC_MRQE_RSS | ALL);
	wr(REG_RXCSUM, 0);
	arrive(&packet);
	arrive(&packet);
	assert_int_equal(rd(REG_N(RDH, TCP_IPV4 % QUEUES)), 1 + 2);
	assert_int_equal(le64toh(rig.mem->rx[TCP_IPV4 % QUEUES][2].qw0) & 0xF, 0);
	assert_int_equal(le64toh(rig.mem->rx[TCP_IPV4 % QUEUES][2].qw0) >> 32, 0xABCD);
	rig_close_clean();
}

/* 128 entries, a byte each, four to a register: the hash's last 7 bits pick one. */
static void each_entry_of_the_table_is_its_own(void **state) {
	bool used[128] = {false};
	unsigned entries = 0;

	(void)state;
	rig_open("");
	rss_start(ALL);
	for (uint32_t source = 0; entries < 128; source++) {
		struct packet packet = {.ip = 4, .protocol = UDP, .src = {9}, .sport = source};
		unsigned entry;
		unsigned before = rd(REG_RDH), after;
		uint64_t qw0;

		write_reta(1);
		arrive(&packet);
		qw0 = le64toh(rig.mem->rx[0][before].qw0);
		entry = qw0 >> 32 & 0x7F;
		entries += !used[entry];
		used[entry] = true;
		after = rd(REG_RDH);
		rx_give(0, (after + RING - 2) % RING, (after + RING - 1) % RING);
		/* Now all but this one entry lead elsewhere. */
		for (unsigned i = 0; i < 32; i++)
			wr(REG_N(RETA, i), 0x01010101 ^ (i == entry / 4) << entry % 4 * 8);
		arrive(&packet);
		assert_int_equal(rd(REG_RDH), (after + 1) % RING);
		rx_give(0, (after + RING - 1) % RING, after);
	}
	rig_close_clean();
}

/* A hash that waits in the packet buffer comes with its frame. */
static void what_waits_keeps_its_queue_and_hash(void **state) {
	struct packet packet = {V4, .protocol = TCP};
	unsigned q = TCP_IPV4 % QUEUES;

	(void)state;
	rig_open("");
	rss_start(ALL);
	wr(REG_N(RXDCTL, q), 0);
	rx_start(q, 2, ADVANCED, false);
	arrive(&packet);
	write_reta(1);
	rx_give(q, 0, 4);
	step();
	assert_int_equal(rd(REG_N(RDH, q)), 1);
	assert_int_equal(le64toh(rig.mem->rx[q][0].qw0) >> 32, TCP_IPV4);
	rig_close_clean();
}

static void the_hash_is_in_the_last_descriptor(void **state) {
	struct packet packet = {V4, .protocol = TCP, .payload = 1200};
	unsigned q = TCP_IPV4 % QUEUES;

	(void)state;
	rig_open("");
	rss_start(ALL);
	wr(REG_N(RXDCTL, q), 0);
	rx_start(q, 1, ADVANCED, true);
	rx_give(q, 0, 8);
	arrive(&packet);
	assert_int_equal(rd(REG_N(RDH, q)), 2);
	assert_int_equal(rig.mem->rx[q][0].qw0, 0);
	assert_int_equal(le64toh(rig.mem->rx[q][1].qw0) >> 32, TCP_IPV4);
	rig_close_clean();
}

static void modes_that_are_not_modelled_are_named(void **state) {
	struct packet packet = {V4, .protocol = TCP};

	(void)state;
	rig_open("");
	rss_start(ALL);
	wr(REG_MRQC, 5 | ALL);
	assert_int_equal(softnic_violations(rig.nic), 1);
	assert_non_null(strstr(softnic_last_violation(rig.nic), "MRQC: mode 5"));
	arrive(&packet);
	assert_int_equal(rd(REG_RDH), 1);
	rig_close();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hashes_are_those_of_the_published_vectors),
	    cmocka_unit_test(fragments_are_hashed_by_address_alone),
	    cmocka_unit_test(headers_in_between_do_not_hide_the_ports),
	    cmocka_unit_test(headers_that_lie_are_not_hashed),
	    cmocka_unit_test(without_mode_or_pcsd_there_is_no_hash),
	    cmocka_unit_test(each_entry_of_the_table_is_its_own),
	    cmocka_unit_test(what_waits_keeps_its_queue_and_hash),
	    cmocka_unit_test(the_hash_is_in_the_last_descriptor),
	    cmocka_unit_test(modes_that_are_not_modelled_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
