/* SPDX-License-Identifier: BSD-3-Clause */
/* What the software NIC's statistics count: sizes, kinds of addresses, octets, damaged frames. */
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED };

/* Frames without FCS at the edges of the size classes, and the class of each. */
static const struct {
	size_t len;
	unsigned class;
} sizes[] = {{60, 0},  {61, 1},	 {123, 1},  {124, 2},  {251, 2},  {252, 3},
	     {507, 3}, {508, 4}, {1019, 4}, {1020, 5}, {1514, 5}, {9000, 5}};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void start(bool rx) {
	rig_open("");
	wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_JUMBOEN);
	wr(REG_MAXFRS, FIELD(MAXFRS_MFS, 9018));
	if (rx) {
		rx_start(0, 4, ADVANCED, true);
		rx_give(0, 0, RING - 1);
	} else {
		tx_start(0);
	}
}

/* Exactly one of the six counters has counted, once. */
static void assert_class(uint32_t first, unsigned class) {
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(rd(first + 4 * i), i == class);
}

static void received_frames_are_counted_by_size(void **state) {
	uint64_t octets = 0;

	(void)state;
	start(true);
	for (unsigned i = 0; i < SIZES; i++) {
		inject(sizes[i].len, 0);
		step();
		assert_class(REG_PRC, sizes[i].class);
		octets += sizes[i].len + 4;
	}
	assert_int_equal(rd(REG_TORL), octets);
	assert_int_equal(rd(REG_GORCL), octets);
	assert_int_equal(rd(REG_QBRCL), octets);
	assert_int_equal(rd(REG_QPRC), SIZES);
	rig_close_clean();
}

static void sent_frames_are_counted_by_size(void **state) {
	uint64_t octets = 0;
	unsigned tail = 0;

	(void)state;
	start(false);
	for (unsigned i = 0; i < SIZES; i++) {
		for (size_t at = 0; at < sizes[i].len; at += ROOM, tail++) {
			size_t part = sizes[i].len - at < ROOM ? sizes[i].len - at : ROOM;

			make_frame(rig.mem->tx_data[0][tail], part, 0);
			tx_put(0, tail, part, at ? 0 : sizes[i].len,
			       TXD_IFCS | TXD_RS | (at + part == sizes[i].len ? TXD_EOP : 0));
		}
		ring_doorbell(REG_TDT, tail);
		step();
		assert_class(REG_PTC, sizes[i].class);
		octets += sizes[i].len + 4;
	}
	assert_int_equal(rd(REG_GOTCL), octets);
	assert_int_equal(rd(REG_QBTCL), octets);
	assert_int_equal(rd(REG_GPTC), SIZES);
	rig_close_clean();
}

static void addresses_are_counted_by_kind(void **state) {
	static const uint8_t first[3] = {0x02, 0x01, 0xFF};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		uint8_t frame[60];

		make_frame(frame, 60, 0);
		memset(frame, first[i], 6);
		start(true);
		softnic_inject(rig.nic, frame, 60);
		step();
		assert_int_equal(rd(REG_MPRC), i == 1);
		assert_int_equal(rd(REG_BPRC), i == 2);
		tx_start(0);
		memcpy(rig.mem->tx_data[0][0], frame, 60);
		tx_frame(0, 0, 60);
		ring_doorbell(REG_TDT, 1);
		step();
		assert_int_equal(rd(REG_MPTC), i == 1);
		assert_int_equal(rd(REG_BPTC), i == 2);
		assert_int_equal(rd(REG_GPTC), 1);
		rig_close_clean();
	}
}

static unsigned by_last_byte(const uint8_t *frame, size_t len, void *arg) {
	(void)arg;
	return frame[len - 1] % 2;
}

/* RQSMR and TQSM say which counter is a queue's, of octets as of packets. */
static void octets_of_queues_are_where_they_are_mapped(void **state) {
	(void)state;
	start(true);
	rx_start(1, 4, ADVANCED, true);
	rx_give(1, 0, RING - 1);
	wr(REG_RQSMR, 0x00000F07);
	wr(REG_TQSM, 0x00030000);
	softnic_steer(rig.nic, by_last_byte, NULL);
	for (unsigned seed = 0; seed < 2; seed++)
		inject(60 + seed * 2, seed);
	step();
	for (unsigned n = 0; n < 16; n++) {
		unsigned q0 = rd(REG_N(QBRCL, n));

		if (n == 7 || n == 15)
			assert_in_range(q0, 64, 66);
		else
			assert_int_equal(q0, 0);
	}
	tx_start(2);
	make_frame(rig.mem->tx_data[2][0], 100, 0);
	tx_frame(2, 0, 100);
	ring_doorbell(REG_N(TDT, 2), 1);
	step();
	for (unsigned n = 0; n < 16; n++)
		assert_int_equal(rd(REG_N(QBTCL, n)), n == 3 ? 104 : 0);
	rig_close_clean();
}

/* What is dropped for want of descriptors was received by the port, and by no queue. */
static void dropped_frames_are_not_the_queues(void **state) {
	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, true);
	inject(60, 0);
	step();
	assert_int_equal(rd(REG_QPRDC), 1);
	assert_int_equal(rd(REG_QBRCL), 0);
	assert_int_equal(rd(REG_QPRC), 0);
	assert_int_equal(rd(REG_GPRC), 1);
	assert_int_equal(rd(REG_GORCL), 64);
	rig_close_clean();
}

static void damaged_frames_have_one_name_each(void **state) {
	static const struct {
		size_t len;
		bool bad_crc;
		uint32_t reg;
	} cases[] = {{60, true, REG_CRCERRS}, {59, false, REG_RUC},   {59, true, REG_RFC},
		     {5, true, REG_RFC},      {1515, false, REG_ROC}, {1515, true, REG_RJC}};
	static const uint32_t all[] = {REG_CRCERRS, REG_RUC, REG_RFC, REG_ROC, REG_RJC};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t frame[1515];

		rig_open("");
		rx_start(0, 2, ADVANCED, true);
		rx_give(0, 0, RING - 1);
		make_frame(frame, cases[i].len, 0);
		if (cases[i].bad_crc)
			softnic_inject_bad_crc(rig.nic, frame, cases[i].len);
		else
			softnic_inject(rig.nic, frame, cases[i].len);
		step();
		for (unsigned n = 0; n < 5; n++)
			assert_int_equal(rd(all[n]), all[n] == cases[i].reg);
		assert_int_equal(rd(REG_TPR), 1);
		assert_int_equal(rd(REG_TORL), cases[i].len + 4);
		assert_int_equal(rd(REG_GPRC), 0);
		assert_int_equal(rd(REG_GORCL), 0);
		for (unsigned n = 0; n < 6; n++)
			assert_int_equal(rd(REG_N(PRC, n)), 0);
		assert_int_equal(rd(REG_RDH), 0);
		rig_close_clean();
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(received_frames_are_counted_by_size),
	    cmocka_unit_test(sent_frames_are_counted_by_size),
	    cmocka_unit_test(addresses_are_counted_by_kind),
	    cmocka_unit_test(octets_of_queues_are_where_they_are_mapped),
	    cmocka_unit_test(dropped_frames_are_not_the_queues),
	    cmocka_unit_test(damaged_frames_have_one_name_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
