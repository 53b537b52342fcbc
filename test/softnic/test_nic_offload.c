/* SPDX-License-Identifier: BSD-3-Clause */
/* Offloads of what the software NIC sends: checksums and VLAN tags of single frames. */
#include "nic_packets.h"
#include "nic_rig.h"
#include "nic_tx_rig.h"

static void start(void) {
	rig_open("");
	tx_start(0);
}

/* Puts a packet whose checksums are not filled in into buffer i: as drivers prepare it. */
static void put_packet(unsigned i, struct packet *p) {
	uint8_t *frame = rig.mem->tx_data[0][i];

	make_packet(frame, p);
	unfill_checksums(frame, p, true);
}

static const struct packet packets[] = {
    {.ip = 4, .protocol = TCP, .payload = 501},
    {.ip = 4, .protocol = UDP, .payload = 30},
    {.ip = 4, .protocol = SCTP, .payload = 77},
    {.ip = 6, .protocol = TCP, .payload = 0},
    {.ip = 6, .protocol = UDP, .payload = 1400},
    {.ip = 6, .protocol = SCTP, .payload = 4},
    {.ip = 4, .options = 24, .protocol = TCP, .payload = 1},
    {.ip = 6, .options = 16, .protocol = UDP, .payload = 9},
};
enum { PACKETS = sizeof(packets) / sizeof(packets[0]) };

static void checksums_are_filled_in(void **state) {
	(void)state;
	for (unsigned i = 0; i < PACKETS; i++) {
		struct packet p = packets[i];
		uint8_t whole[ROOM];

		start();
		put_packet(1, &p);
		make_packet(whole, &p);
		put_context(0, 0, &p, 0);
		tx_put(0, 1, p.len, p.len,
		       TX_EOP_IFCS | TXD_RS | TXD_TXSM | (p.ip == 4 ? TXD_IXSM : 0));
		ring_doorbell(REG_TDT, 2);
		step();
		assert_int_equal(rig.sent, 1);
		if (memcmp(rig.frame, whole, p.len) != 0) fail_msg("packet %u", i);
		assert_true(tx_done(0, 1));
		assert_false(tx_done(0, 0));
		rig_close_clean();
	}
}

static void only_what_is_asked_is_filled_in(void **state) {
	static const uint64_t asked[] = {TXD_IXSM, TXD_TXSM};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct packet p = packets[0];
		uint8_t expected[ROOM];

		start();
		put_packet(1, &p);
		make_packet(expected, &p);
		unfill_checksums(expected, &p, true);
		if (i == 0)
			put16(expected + p.l3 + 10, ~plain_sum(expected + p.l3, 20, 0));
		else
			put16(expected + p.l4 + 16, ~plain_sum(expected + p.l4, p.len - p.l4, 0));
		put_context(0, 0, &p, 0);
		tx_put(0, 1, p.len, p.len, TX_EOP_IFCS | TXD_RS | asked[i]);
		ring_doorbell(REG_TDT, 2);
		step();
		assert_memory_equal(rig.frame, expected, p.len);
		/* What is in memory stays as it was. */
		unfill_checksums(expected, &p, true);
		assert_memory_equal(rig.mem->tx_data[0][1], expected, p.len);
		rig_close_clean();
	}
}

/* RFC 768: a sum of 0 is sent as all ones, since 0 says that there is none. */
static void udp_never_says_that_it_has_no_checksum(void **state) {
	struct packet p = {.ip = 4, .protocol = UDP, .payload = 20};
	uint8_t *frame;

	(void)state;
	start();
	frame = rig.mem->tx_data[0][1];
	make_packet(frame, &p);
	put16(frame + p.len - 2, 0);
	put16(frame + p.l4 + 6, 0);
	/* The last word makes the whole sum all ones, whose complement is 0. */
	put16(frame + p.len - 2,
	      ~plain_sum(frame + p.l4, p.len - p.l4, pseudo_sum(frame + p.l3, UDP, p.len - p.l4)));
	put16(frame + p.l4 + 6, pseudo_sum(frame + p.l3, UDP, p.len - p.l4));
	put_context(0, 0, &p, 0);
	tx_put(0, 1, p.len, p.len, TX_EOP_IFCS | TXD_RS | TXD_TXSM);
	ring_doorbell(REG_TDT, 2);
	step();
	assert_int_equal(get16(rig.frame + p.l4 + 6), 0xFFFF);
	rig_close_clean();
}

/* Two contexts a queue, until they are overwritten or the queue starts anew. */
static void a_context_lasts_and_there_are_two(void **state) {
	struct packet p[2] = {packets[1], packets[6]};
	uint8_t whole[ROOM];
	unsigned tail = 2;

	(void)state;
	start();
	for (unsigned i = 0; i < 2; i++) {
		make_packet(whole, &p[i]);
		put_context(i, i, &p[i], 0);
	}
	for (unsigned i = 0; i < 6; i++, tail++) {
		struct packet *now = &p[i / 2 % 2];

		put_packet(tail, now);
		tx_put(0, tail, now->len, now->len,
		       TX_EOP_IFCS | TXD_RS | TXD_IXSM | TXD_TXSM |
			   (uint64_t)(i / 2 % 2) << TXD_IDX_LOW);
		ring_doorbell(REG_TDT, tail + 1);
		step();
		make_packet(whole, now);
		assert_memory_equal(rig.frame, whole, now->len);
	}
	assert_int_equal(rig.sent, 6);
	put_context(tail++, 0, &p[1], 0);
	put_packet(tail, &p[1]);
	tx_put(0, tail, p[1].len, p[1].len, TX_EOP_IFCS | TXD_RS | TXD_IXSM | TXD_TXSM);
	ring_doorbell(REG_TDT, tail + 1);
	step();
	make_packet(whole, &p[1]);
	assert_memory_equal(rig.frame, whole, p[1].len);
	assert_int_equal(softnic_violations(rig.nic), 0);
	/* Off and on: they are gone. */
	wr(REG_TXDCTL, 0);
	tx_start(0);
	put_packet(0, &p[0]);
	tx_put(0, 0, p[0].len, p[0].len, TX_EOP_IFCS | TXD_RS | TXD_TXSM);
	ring_doorbell(REG_TDT, 1);
	step();
	assert_int_equal(rig.sent, 7);
	assert_non_null(strstr(softnic_last_violation(rig.nic), "context that was not written"));
	rig_close();
}

static void tags_are_inserted(void **state) {
	(void)state;
	for (unsigned legacy = 0; legacy < 2; legacy++) {
		struct packet p = {.ip = 4, .protocol = UDP, .payload = 18};
		struct packet tagged = {.vlan = 0xE123, .ip = 4, .protocol = UDP, .payload = 18};
		uint8_t whole[ROOM];
		unsigned tail = 0;

		start();
		if (legacy) {
			make_packet(rig.mem->tx_data[0][0], &p);
			rig.mem->tx[0][tail++] =
			    (struct desc){htole64(iova_of(rig.mem->tx_data[0][0])),
					  htole64(p.len | TX_EOP_IFCS | TXD_RS | TXD_VLE |
						  UINT64_C(0xE123) << 48)};
		} else {
			put_packet(1, &p);
			put_context(tail++, 0, &p, 0xE123);
			tx_put(0, tail++, p.len, p.len,
			       TX_EOP_IFCS | TXD_RS | TXD_VLE | TXD_IXSM | TXD_TXSM);
		}
		ring_doorbell(REG_TDT, tail);
		step();
		make_packet(whole, &tagged);
		assert_int_equal(rig.len, tagged.len);
		assert_memory_equal(rig.frame, whole, tagged.len);
		assert_int_equal(rd(REG_GOTCL), tagged.len + 4);
		rig_close_clean();
	}
}

static void the_type_of_a_tag_is_dmatxctls(void **state) {
	struct packet p = {.payload = 10};

	(void)state;
	start();
	wr(REG_DMATXCTL, (rd(REG_DMATXCTL) & ~(uint32_t)DMATXCTL_VT) | FIELD(DMATXCTL_VT, 0x88A8));
	make_packet(rig.mem->tx_data[0][1], &p);
	put_context(0, 0, &p, 5);
	tx_put(0, 1, p.len, p.len, TX_EOP_IFCS | TXD_RS | TXD_VLE);
	ring_doorbell(REG_TDT, 2);
	step();
	assert_int_equal(get32(rig.frame + 12), 0x88A80005);
	assert_int_equal(rig.len, 60); /* padded when it has its tag */
	rig_close_clean();
}

/* Section 7.2.3.2.2: of legacy descriptors the last one says where the sum is. */
static void legacy_sums_go_where_they_say(void **state) {
	struct packet p = {.ip = 4, .protocol = TCP, .payload = 33};
	uint8_t whole[ROOM];

	(void)state;
	start();
	put_packet(0, &p);
	make_packet(whole, &p);
	put16(whole + p.l3 + 10, 0); /* the other sum is not filled in */
	memcpy(rig.mem->tx_data[0][1], rig.mem->tx_data[0][0] + 40, p.len - 40);
	rig.mem->tx[0][0] =
	    (struct desc){htole64(iova_of(rig.mem->tx_data[0][0])), htole64(40 | TXD_IFCS)};
	rig.mem->tx[0][1] =
	    (struct desc){htole64(iova_of(rig.mem->tx_data[0][1])),
			  htole64((p.len - 40) | TX_EOP_IFCS | TXD_RS | TXD_IC |
				  (uint64_t)(p.l4 + 16) << 16 | (uint64_t)p.l4 << 40)};
	ring_doorbell(REG_TDT, 2);
	step();
	assert_memory_equal(rig.frame, whole, p.len);
	rig_close_clean();
}

static void offloads_work_over_many_descriptors(void **state) {
	struct packet p = {.ip = 4, .protocol = TCP, .payload = 1000};
	uint8_t whole[ROOM], bare[ROOM];
	unsigned tail = 1;

	(void)state;
	start();
	make_packet(whole, &p);
	memcpy(bare, whole, p.len);
	unfill_checksums(bare, &p, true);
	put_context(0, 0, &p, 0);
	/* 40 of them, of all sizes. */
	for (size_t at = 0; at < p.len; tail++) {
		size_t part = tail < 40 ? tail : p.len - at;

		memcpy(rig.mem->tx_data[0][tail], bare + at, part);
		tx_put(0, tail, part, tail == 1 ? p.len : 0,
		       TXD_IFCS | TXD_IXSM | TXD_TXSM | (tail == 40 ? TXD_EOP | TXD_RS : 0));
		at += part;
	}
	assert_int_equal(tail, 41);
	ring_doorbell(REG_TDT, tail);
	step();
	assert_int_equal(rig.sent, 1);
	assert_memory_equal(rig.frame, whole, p.len);
	rig_close_clean();
}

/* What a context says must be true of the frame: else the card would write anywhere. */
static void contexts_that_lie_hang_the_queue(void **state) {
	static const struct {
		const char *what;
		unsigned mac, ip, type;
		uint64_t asked;
		const char *text;
	} cases[] = {
	    {"IP beyond", 14, 511, 1, TXD_IXSM, "headers are not in the frame"},
	    {"transport beyond", 127, 120, 1, TXD_TXSM, "headers are not in the frame"},
	    {"IP too short", 14, 18, 1, TXD_IXSM, "headers are not in the frame"},
	    {"no MAC", 0, 20, 1, TXD_IXSM, "headers are not in the frame"},
	    {"no type", 14, 20, 3, TXD_TXSM, "headers are not in the frame"},
	    {"no such context", 14, 20, 1, TXD_TXSM | UINT64_C(1) << 36, "was not written"},
	    {"index", 14, 20, 1, TXD_TXSM | UINT64_C(2) << 36, "was not written"},
	    {"IPsec", 14, 20, 1, TXD_IPSEC, "offload"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start();
		make_frame(rig.mem->tx_data[0][1], 200, 0);
		rig.mem->tx[0][0] = (struct desc){
		    htole64(cases[i].ip | cases[i].mac << 9),
		    htole64(TXD_DEXT | TXD_DTYP_CONTEXT | cases[i].type << 11 | 1 << 10)};
		tx_put(0, 1, 200, 200, TX_EOP_IFCS | TXD_RS | cases[i].asked);
		ring_doorbell(REG_TDT, 2);
		step();
		step();
		if (rig.sent != 0 || softnic_violations(rig.nic) != 1 ||
		    !strstr(softnic_last_violation(rig.nic), cases[i].text))
			fail_msg("%s: %u: %s", cases[i].what, rig.sent,
				 softnic_last_violation(rig.nic));
		assert_int_equal(rd(REG_TDH), 1);
		rig_close();
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(checksums_are_filled_in),
	    cmocka_unit_test(only_what_is_asked_is_filled_in),
	    cmocka_unit_test(udp_never_says_that_it_has_no_checksum),
	    cmocka_unit_test(a_context_lasts_and_there_are_two),
	    cmocka_unit_test(tags_are_inserted),
	    cmocka_unit_test(the_type_of_a_tag_is_dmatxctls),
	    cmocka_unit_test(legacy_sums_go_where_they_say),
	    cmocka_unit_test(offloads_work_over_many_descriptors),
	    cmocka_unit_test(contexts_that_lie_hang_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
