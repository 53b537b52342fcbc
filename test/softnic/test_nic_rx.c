/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive side of the software NIC: ring ownership, write-back, full rings. */
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED, LEGACY = SRRCTL_DESCTYPE_LEGACY };

static void a_frame_is_written_and_given_back(void **state) {
	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, true);
	rx_give(0, 0, 4);
	inject(60, 5);
	assert_int_equal(rx_status(0, 0), 0); /* frames move in steps only */
	assert_int_equal(step(), 1);
	/* Bit 7: promiscuous, so the address did not match exactly. */
	assert_int_equal(rx_status(0, 0), RXD_DD | RXD_EOP | 1 << 7 | (uint64_t)60 << RXD_LEN_LOW);
	assert_frame(rig.mem->rx_data[0][0], 60, 5);
	assert_int_equal(rig.mem->rx_data[0][0][60], 0xEE);
	/* The write-back takes the place of the buffer's address: who reuses it without, loses. */
	assert_int_equal(rig.mem->rx[0][0].qw0, 0);
	assert_int_equal(rd(REG_RDH), 1);
	assert_int_equal(rx_status(0, 1), 0);
	assert_int_equal(rd(REG_QPRC), 1);
	assert_int_equal(rd(REG_GPRC), 1);
	assert_int_equal(rd(REG_TPR), 1);
	assert_int_equal(rd(REG_GORCL), 64);
	rig_close_clean();
}

static void legacy_descriptors_keep_their_address(void **state) {
	(void)state;
	rig_open("");
	rx_start(0, 2, LEGACY, true);
	rx_give(0, 0, 4);
	inject(100, 1);
	step();
	assert_int_equal(rx_status(0, 0), (UINT64_C(0x83) << 32) | 100);
	assert_int_equal(le64toh(rig.mem->rx[0][0].qw0), iova_of(rig.mem->rx_data[0][0]));
	assert_frame(rig.mem->rx_data[0][0], 100, 1);
	rig_close_clean();
}

static void the_device_owns_head_to_tail_and_no_more(void **state) {
	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, true);
	inject(60, 0); /* head and tail are equal: nothing is the device's */
	step();
	assert_int_equal(rd(REG_QPRDC), 1);
	rx_give(0, 0, RING - 1);
	for (unsigned i = 0; i < RING; i++)
		inject(60, i);
	step();
	assert_int_equal(rd(REG_RDH), RING - 1);
	assert_int_equal(rd(REG_QPRC), RING - 1);
	assert_int_equal(rd(REG_QPRDC), 1);
	assert_int_equal(rig.mem->rx[0][RING - 1].qw1, UINT64_C(0xEEEEEEEEEEEEEEEE));
	/* Around the end, three times over. */
	for (unsigned round = 0, at = RING - 1; round < 3 * RING; round++, at = (at + 1) % RING) {
		rx_give(0, at, (at + 1) % RING);
		inject(60, round);
		step();
		assert_frame(rig.mem->rx_data[0][at], 60, round);
		assert_int_equal(rd(REG_RDH), (at + 1) % RING);
	}
	rig_close_clean();
}

static void a_long_frame_takes_several_descriptors(void **state) {
	(void)state;
	rig_open("");
	wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_JUMBOEN);
	wr(REG_MAXFRS, FIELD(MAXFRS_MFS, 9018));
	rx_start(0, 1, ADVANCED, true);
	rx_give(0, 0, 8);
	inject(60, 1);
	inject(2500, 2);
	inject(1024, 3); /* fits exactly */
	step();
	assert_int_equal(rd(REG_RDH), 5);
	assert_int_equal(rx_status(0, 1), RXD_DD | UINT64_C(1024) << RXD_LEN_LOW);
	assert_int_equal(rx_status(0, 2), RXD_DD | UINT64_C(1024) << RXD_LEN_LOW);
	assert_int_equal(rx_status(0, 3), RXD_DD | RXD_EOP | 1 << 7 | UINT64_C(452) << RXD_LEN_LOW);
	assert_int_equal(rx_len(0, 4), 1024);
	assert_true(rx_status(0, 4) & RXD_EOP);
	uint8_t whole[2500];
	memcpy(whole, rig.mem->rx_data[0][1], 1024);
	memcpy(whole + 1024, rig.mem->rx_data[0][2], 1024);
	memcpy(whole + 2048, rig.mem->rx_data[0][3], 452);
	assert_frame(whole, 2500, 2);
	for (unsigned i = 0; i < 5; i++) /* never past what SRRCTL says */
		assert_int_equal(rig.mem->rx_data[0][i][1024], 0xEE);
	assert_int_equal(rd(REG_QPRC), 3);
	rig_close_clean();
}

static void a_frame_is_never_begun_without_room_for_its_end(void **state) {
	(void)state;
	rig_open("");
	wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_JUMBOEN);
	wr(REG_MAXFRS, FIELD(MAXFRS_MFS, 9018));
	rx_start(0, 1, ADVANCED, true);
	rx_give(0, 0, 2);
	inject(2500, 2);
	inject(600, 3);
	step();
	assert_int_equal(rd(REG_RDH), 1);
	assert_frame(rig.mem->rx_data[0][0], 600, 3);
	assert_int_equal(rd(REG_QPRDC), 1);
	rig_close_clean();
}

/* Unless it is stripped, the FCS is part of what is written, and may begin in one buffer's end. */
static void fcs_is_stripped_or_written(void **state) {
	/* By zlib's crc32. */
	static const uint8_t crc60[] = {0x44, 0x5B, 0x56, 0x87},
			     crc1022[] = {0x9B, 0xE0, 0x5F, 0x99};

	(void)state;
	rig_open("");
	wr(REG_HLREG0, rd(REG_HLREG0) & ~(uint32_t)HLREG0_RXCRCSTRP);
	rx_start(0, 1, ADVANCED, true);
	rx_give(0, 0, 8);
	inject(60, 5);
	inject(1022, 5);
	step();
	assert_int_equal(rx_len(0, 0), 64);
	assert_frame(rig.mem->rx_data[0][0], 60, 5);
	assert_memory_equal(rig.mem->rx_data[0][0] + 60, crc60, 4);
	assert_int_equal(rx_len(0, 1), 1024);
	assert_int_equal(rx_len(0, 2), 2);
	assert_memory_equal(rig.mem->rx_data[0][1] + 1022, crc1022, 2);
	assert_memory_equal(rig.mem->rx_data[0][2], crc1022 + 2, 2);
	wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_RXCRCSTRP);
	inject(60, 5);
	step();
	assert_int_equal(rx_len(0, 3), 60);
	assert_int_equal(rig.mem->rx_data[0][3][60], 0xEE);
	assert_int_equal(rd(REG_GORCL), 64 + 1026 + 64); /* octets always count it */
	rig_close_clean();
}

static void without_drop_en_frames_wait_in_order(void **state) {
	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, false);
	rx_give(0, 0, 3);
	for (unsigned i = 0; i < 10; i++)
		inject(60, i);
	step();
	assert_int_equal(rd(REG_RDH), 3);
	assert_int_equal(rd(REG_QPRDC), 0);
	rx_give(0, 3, 12);
	inject(60, 10);
	step();
	assert_int_equal(rd(REG_RDH), 11);
	for (unsigned i = 0; i < 11; i++)
		assert_frame(rig.mem->rx_data[0][i], 60, i);
	assert_int_equal(rd(REG_MPC), 0);
	rig_close_clean();
}

static unsigned fill_packet_buffer(size_t len) {
	uint8_t frame[ROOM];
	unsigned frames = 0;

	make_frame(frame, len, 0);
	while (softnic_inject(rig.nic, frame, len) && frames < 100000)
		frames++;
	return frames;
}

static void a_full_packet_buffer_misses_frames(void **state) {
	unsigned large, small;

	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, false);
	large = fill_packet_buffer(1000);
	assert_in_range(large, 512 * 1024 / 1100, 512 * 1024 / 1000);
	assert_int_equal(rd(REG_MPC), 1);
	assert_true(rd(REG_EICR) & 1 << 17);
	assert_int_equal(rd(REG_GPRC), large + 1); /* missed frames were good ones */
	/* A smaller buffer holds less. What waits already stays. */
	rx_give(0, 0, RING - 1);
	step();
	assert_int_equal(fill_packet_buffer(1000), RING - 1);
	wr(REG_CTRL, CTRL_RST);
	wr(REG_RXPBSIZE, FIELD(RXPBSIZE_SIZE, 128));
	rx_start(0, 2, ADVANCED, false);
	small = fill_packet_buffer(1000);
	assert_in_range(small, large / 4 - 1, large / 4 + 1);
	/* There are 512 KB, whatever is written. */
	wr(REG_CTRL, CTRL_RST);
	wr(REG_RXPBSIZE, RXPBSIZE_SIZE);
	rx_start(0, 2, ADVANCED, false);
	assert_int_equal(fill_packet_buffer(1000), large);
	rig_close_clean();
}

/* The packet buffer's memory is used over and over, however far its ends are apart. */
static void packet_buffer_goes_round(void **state) {
	unsigned in = 0, out = 0;

	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, false);
	while (in < 300)
		inject(1400, in++);
	for (unsigned round = 0; round < 60; round++) {
		unsigned at = rd(REG_RDH);

		rx_give(0, at, (at + RING - 1) % RING);
		step();
		for (; at != rd(REG_RDH); at = (at + 1) % RING, out++)
			assert_frame(rig.mem->rx_data[0][at], 1400, out);
		while (in < out + 300)
			inject(1400, in++);
	}
	assert_int_equal(out, 60 * (RING - 1));
	rig_close_clean();
}

static unsigned by_last_byte(const uint8_t *frame, size_t len, void *arg) {
	(void)arg;
	return frame[len - 1] % QUEUES;
}

/* Seed of a 60 byte frame that goes to queue q. */
static unsigned seed_for(unsigned q) { return (q + 256 - 59 * 7 % 256) % 256; }

static void one_full_queue_stops_all_without_drop_en(void **state) {
	(void)state;
	for (unsigned drop = 0; drop < 2; drop++) {
		rig_open("");
		softnic_steer(rig.nic, by_last_byte, NULL);
		rx_start(0, 2, ADVANCED, drop);
		rx_start(1, 2, ADVANCED, drop);
		rx_give(1, 0, 8);
		inject(60, seed_for(0)); /* to the queue without descriptors */
		inject(60, seed_for(1));
		inject(60, seed_for(1));
		step();
		assert_int_equal(rd(REG_N(RDH, 1)), drop ? 2 : 0);
		assert_int_equal(rd(REG_QPRDC), drop ? 1 : 0);
		rx_give(0, 0, 8);
		step();
		assert_int_equal(rd(REG_N(RDH, 0)), drop ? 0 : 1);
		assert_int_equal(rd(REG_N(RDH, 1)), 2);
		rig_close_clean();
	}
}

static void queue_counters_are_where_rqsmr_says(void **state) {
	(void)state;
	rig_open("");
	softnic_steer(rig.nic, by_last_byte, NULL);
	for (unsigned q = 0; q < 2; q++) {
		rx_start(q, 2, ADVANCED, true);
		rx_give(q, 0, 1);
	}
	for (unsigned i = 0; i < 5; i++)
		inject(60, seed_for(1));
	step();
	assert_int_equal(rd(REG_N(QPRC, 0)), 1); /* all on counter 0 after reset */
	assert_int_equal(rd(REG_N(QPRDC, 0)), 4);
	wr(0x2300, 0x03020F00);
	inject(60, seed_for(0));
	inject(60, seed_for(1));
	step();
	assert_int_equal(rd(REG_N(QPRC, 0)), 1);
	assert_int_equal(rd(REG_N(QPRDC, 15)), 1);
	rig_close_clean();
}

static void a_disabled_queue_loses_its_frames(void **state) {
	(void)state;
	rig_open("");
	softnic_steer(rig.nic, by_last_byte, NULL);
	rx_start(0, 2, ADVANCED, false);
	rx_start(1, 2, ADVANCED, false);
	rx_give(0, 0, 8);
	rx_give(1, 0, 8);
	wr(REG_N(RXDCTL, 1), 0);
	inject(60, seed_for(1));
	inject(60, seed_for(0));
	step();
	assert_int_equal(rd(REG_N(RDH, 1)), 0);
	assert_int_equal(rd(REG_N(RDH, 0)), 1);
	rig_close_clean();
}

/* Neighbours for the device may lie far from each other in memory. */
static void a_buffer_may_span_two_mappings(void **state) {
	static _Alignas(4096) uint8_t low[4096], high[4096];
	uint64_t iova = IOVA + (UINT64_C(1) << 40);

	(void)state;
	memset(low, 0xEE, sizeof(low));
	memset(high, 0xEE, sizeof(high));
	rig_open("");
	assert_int_equal(softnic_dma_map(rig.nic, high, 4096, iova + 4096), 0);
	assert_int_equal(softnic_dma_map(rig.nic, low, 4096, iova), 0);
	rx_start(0, 2, ADVANCED, true);
	rig.mem->rx[0][0] = (struct desc){htole64(iova + 4096 - 30), 0};
	ring_doorbell(REG_RDT, 1);
	inject(60, 3);
	step();
	assert_frame(low + 4096 - 30, 30, 3);
	assert_int_equal(low[4096 - 31], 0xEE);
	uint8_t frame[60];
	make_frame(frame, 60, 3);
	assert_memory_equal(high, frame + 30, 30);
	assert_int_equal(high[30], 0xEE);
	rig_close_clean();
}

static void without_bus_master_nothing_is_touched(void **state) {
	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, false);
	rx_give(0, 0, 8);
	softnic_bus_master(rig.nic, false);
	inject(60, 1);
	step();
	assert_int_equal(rx_status(0, 0), 0);
	assert_int_equal(rig.mem->rx_data[0][0][0], 0xEE);
	softnic_bus_master(rig.nic, true);
	wr(REG_CTRL, CTRL_MASTER_DISABLE);
	step();
	assert_int_equal(rx_status(0, 0), 0);
	wr(REG_CTRL, 0);
	step();
	assert_frame(rig.mem->rx_data[0][0], 60, 1);
	rig_close_clean();
}

/* Nothing is lost to a ring that is off, or full. */
static void a_generator_waits_for_descriptors(void **state) {
	struct ixdp_wire_stats stats;
	struct nic_memory *mem;

	(void)state;
	rig_open("");
	mem = rig.mem;
	softnic_close(rig.nic);
	if (softnic_open(&rig.nic, "t,peer=gen,count=20,size=60") != 0)
		fail_msg("%s", ixdp_error());
	softnic_dma_map(rig.nic, mem, sizeof(*mem), IOVA);
	softnic_bus_master(rig.nic, true);
	softnic_advance_ns(1000000);
	step();
	rx_prepare(0, 2, ADVANCED, true); /* even with DROP_EN */
	rx_on();
	step();
	assert_int_equal(rd(REG_TPR), 0);
	rx_enable(0);
	rx_give(0, 0, 5);
	for (unsigned i = 0; i < 10; i++) {
		softnic_advance_ns(1000000);
		step();
	}
	assert_int_equal(rd(REG_RDH), 5);
	assert_int_equal(softnic_wire_stats(rig.nic, &stats), 0);
	assert_int_equal(stats.to_port_packets, 5);
	assert_true(stats.source && stats.finite);
	assert_false(stats.exhausted || stats.drained);
	rx_give(0, 5, 40);
	for (unsigned i = 0; i < 10; i++) {
		softnic_advance_ns(1000000);
		step();
	}
	assert_int_equal(rd(REG_RDH), 20);
	assert_int_equal(softnic_wire_stats(rig.nic, &stats), 0);
	assert_true(stats.exhausted && stats.drained);
	assert_int_equal(rd(REG_QPRDC), 0);
	assert_int_equal(rd(REG_TPR), 20); /* waiting frames are not counted twice */
	rig_close_clean();
}

static unsigned in_turn(const uint8_t *frame, size_t len, void *arg) {
	unsigned *turn = arg;

	(void)frame, (void)len;
	return (*turn)++ % 2;
}

/* Also for frames that come while others wait, even to a queue that may drop. */
static void a_blocked_frame_blocks_what_arrives_later(void **state) {
	unsigned turn = 0;
	struct nic_memory *mem;

	(void)state;
	rig_open("");
	mem = rig.mem;
	softnic_close(rig.nic);
	assert_int_equal(softnic_open(&rig.nic, "t,peer=gen,drop=on,count=10"), 0);
	softnic_dma_map(rig.nic, mem, sizeof(*mem), IOVA);
	softnic_bus_master(rig.nic, true);
	softnic_steer(rig.nic, in_turn, &turn);
	rx_start(0, 2, ADVANCED, false);
	rx_start(1, 2, ADVANCED, true);
	rx_give(1, 0, 8);
	for (unsigned i = 0; i < 10; i++) {
		softnic_advance_ns(1000000);
		step();
	}
	assert_int_equal(rd(REG_N(RDH, 1)), 0);
	rx_give(0, 0, 8);
	step();
	assert_int_equal(rd(REG_N(RDH, 0)), 5);
	assert_int_equal(rd(REG_N(RDH, 1)), 5);
	assert_int_equal(rd(REG_QPRDC), 0);
	rig_close_clean();
}

static void what_waits_in_the_packet_buffer_is_not_drained(void **state) {
	struct ixdp_wire_stats stats;

	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, false);
	inject(60, 0);
	step();
	softnic_wire_stats(rig.nic, &stats);
	assert_false(stats.drained);
	assert_int_equal(stats.to_port_packets, 1);
	rx_give(0, 0, 1);
	step();
	softnic_wire_stats(rig.nic, &stats);
	assert_true(stats.drained);
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_frame_is_written_and_given_back),
	    cmocka_unit_test(legacy_descriptors_keep_their_address),
	    cmocka_unit_test(the_device_owns_head_to_tail_and_no_more),
	    cmocka_unit_test(a_long_frame_takes_several_descriptors),
	    cmocka_unit_test(a_frame_is_never_begun_without_room_for_its_end),
	    cmocka_unit_test(fcs_is_stripped_or_written),
	    cmocka_unit_test(without_drop_en_frames_wait_in_order),
	    cmocka_unit_test(a_full_packet_buffer_misses_frames),
	    cmocka_unit_test(packet_buffer_goes_round),
	    cmocka_unit_test(one_full_queue_stops_all_without_drop_en),
	    cmocka_unit_test(queue_counters_are_where_rqsmr_says),
	    cmocka_unit_test(a_disabled_queue_loses_its_frames),
	    cmocka_unit_test(a_buffer_may_span_two_mappings),
	    cmocka_unit_test(without_bus_master_nothing_is_touched),
	    cmocka_unit_test(a_generator_waits_for_descriptors),
	    cmocka_unit_test(a_blocked_frame_blocks_what_arrives_later),
	    cmocka_unit_test(what_waits_in_the_packet_buffer_is_not_drained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
