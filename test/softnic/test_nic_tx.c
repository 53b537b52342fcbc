/* SPDX-License-Identifier: BSD-3-Clause */
/* The transmit side of the software NIC: gathering, padding, completion, stalls. */
#include "nic_rig.h"

static void fill(unsigned i, size_t len, unsigned seed) {
	make_frame(rig.mem->tx_data[0][i], len, seed);
}

static void a_frame_leaves_and_is_done(void **state) {
	(void)state;
	rig_open("");
	tx_start(0);
	fill(0, 100, 3);
	tx_frame(0, 0, 100);
	uint64_t before = rig.mem->tx[0][0].qw1;
	step();
	assert_int_equal(rig.sent, 0); /* the tail has not said so */
	ring_doorbell(REG_TDT, 1);
	assert_int_equal(step(), 1);
	assert_int_equal(rig.sent, 1);
	assert_int_equal(rig.len, 100);
	assert_frame(rig.frame, 100, 3);
	/* DD and nothing else, there and nowhere else. */
	assert_int_equal(rig.mem->tx[0][0].qw1, before | htole64(TXD_DD));
	assert_int_equal(rig.mem->tx[0][1].qw1, UINT64_C(0xEEEEEEEEEEEEEEEE));
	assert_int_equal(rd(REG_TDH), 1);
	step();
	assert_int_equal(rig.sent, 1);
	assert_int_equal(rd(REG_GPTC), 1);
	assert_int_equal(rd(REG_TPT), 1);
	assert_int_equal(rd(REG_GOTCL), 104);
	assert_int_equal(rd(REG_QPTC), 1);
	rig_close_clean();
}

static void legacy_descriptors_are_sent_too(void **state) {
	(void)state;
	rig_open("");
	tx_start(0);
	fill(0, 70, 1);
	rig.mem->tx[0][0] = (struct desc){htole64(iova_of(rig.mem->tx_data[0][0])),
					  htole64(70 | TXD_EOP | TXD_IFCS | TXD_RS)};
	ring_doorbell(REG_TDT, 1);
	step();
	assert_int_equal(rig.len, 70);
	assert_frame(rig.frame, 70, 1);
	assert_true(tx_done(0, 0));
	rig_close_clean();
}

static void done_is_only_what_asked_for_it(void **state) {
	(void)state;
	rig_open("");
	tx_start(0);
	for (unsigned i = 0; i < 8; i++) {
		fill(i, 60, i);
		tx_put(0, i, 60, 60, TX_EOP_IFCS | (i % 4 == 3 ? TXD_RS : 0));
	}
	ring_doorbell(REG_TDT, 8);
	step();
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(tx_done(0, i), i % 4 == 3);
	assert_int_equal(rig.sent, 8);
	rig_close_clean();
}

static void several_descriptors_make_one_frame(void **state) {
	uint8_t frame[300];

	(void)state;
	rig_open("");
	tx_start(0);
	make_frame(frame, 300, 9);
	memcpy(rig.mem->tx_data[0][0], frame, 1);
	memcpy(rig.mem->tx_data[0][1], frame + 1, 199);
	memcpy(rig.mem->tx_data[0][2], frame + 200, 100);
	tx_put(0, 0, 1, 300, TXD_IFCS);
	tx_put(0, 1, 199, 0, TXD_IFCS);
	ring_doorbell(REG_TDT, 2);
	step();
	assert_int_equal(rig.sent, 0); /* its end is missing */
	assert_int_equal(rd(REG_TDH), 0);
	tx_put(0, 2, 100, 0, TX_EOP_IFCS | TXD_RS);
	ring_doorbell(REG_TDT, 3);
	step();
	assert_int_equal(rig.sent, 1);
	assert_int_equal(rig.len, 300);
	assert_frame(rig.frame, 300, 9);
	assert_false(tx_done(0, 0) || tx_done(0, 1));
	assert_true(tx_done(0, 2));
	assert_int_equal(rd(REG_TDH), 3);
	assert_int_equal(rd(REG_QPTC), 1);
	rig_close_clean();
}

static void short_frames_are_padded_if_so_set(void **state) {
	static const uint8_t zeros[43];

	(void)state;
	rig_open("");
	tx_start(1);
	for (unsigned i = 0; i < 2;
	     i++) /* what the NIC copied before must not show in the padding */
		tx_put(1, i, 50, i ? 0 : 100, TXD_IFCS | (i ? TXD_EOP : 0));
	ring_doorbell(REG_N(TDT, 1), 2);
	step();
	assert_int_equal(rig.len, 100);
	rd(REG_GOTCL);
	tx_start(0);
	for (unsigned i = 0; i < 3; i++) {
		fill(i, 60, i);
		tx_frame(0, i, i == 1 ? 60 : 17);
	}
	ring_doorbell(REG_TDT, 1);
	step();
	assert_int_equal(rig.len, 60);
	assert_frame(rig.frame, 17, 0);
	assert_memory_equal(rig.frame + 17, zeros, 43);
	assert_int_equal(rd(REG_GOTCL), 64);
	ring_doorbell(REG_TDT, 2);
	step();
	assert_frame(rig.frame, 60, 1); /* long enough as it is */
	wr(REG_HLREG0, rd(REG_HLREG0) & ~(uint32_t)HLREG0_TXPADEN);
	rd(REG_GOTCL);
	ring_doorbell(REG_TDT, 3);
	step();
	assert_int_equal(rig.len, 17);
	assert_int_equal(rd(REG_GOTCL), 21);
	rig_close_clean();
}

static void a_queue_runs_only_with_both_switches_on(void **state) {
	(void)state;
	rig_open("");
	tx_prepare(0);
	wr(REG_TXDCTL, TXDCTL_ENABLE);
	fill(0, 60, 0);
	tx_frame(0, 0, 60);
	ring_doorbell(REG_TDT, 1);
	step();
	assert_int_equal(rig.sent, 0);
	wr(REG_DMATXCTL, rd(REG_DMATXCTL) | DMATXCTL_TE);
	step();
	assert_int_equal(rig.sent, 1);
	wr(REG_TXDCTL, 0);
	tx_frame(0, 1, 60);
	ring_doorbell(REG_TDT, 2);
	step();
	assert_int_equal(rig.sent, 1);
	assert_int_equal(rd(REG_TDH), 1);
	rig_close_clean();
}

static void a_held_frame_leaves_once(void **state) {
	(void)state;
	rig_open("");
	tx_start(0);
	for (unsigned i = 0; i < 3; i++) {
		fill(i, 60, i);
		tx_frame(0, i, 60);
	}
	ring_doorbell(REG_TDT, 3);
	rig.hold = true;
	for (unsigned i = 0; i < 5; i++)
		step();
	assert_int_equal(rd(REG_TDH), 0);
	assert_false(tx_done(0, 0));
	assert_int_equal(rd(REG_GPTC), 0);
	rig.hold = false;
	step();
	assert_int_equal(rig.sent, 3);
	assert_frame(rig.frame, 60, 2);
	assert_int_equal(rd(REG_GPTC), 3);
	rig_close_clean();
}

static void without_link_frames_wait(void **state) {
	struct ixdp_wire_stats stats;

	(void)state;
	rig_open("");
	tx_start(0);
	fill(0, 60, 0);
	tx_frame(0, 0, 60);
	softnic_fault(rig.nic, "link-down");
	ring_doorbell(REG_TDT, 1);
	step();
	assert_int_equal(rig.sent, 0);
	assert_false(tx_done(0, 0));
	softnic_wire_stats(rig.nic, &stats);
	assert_false(stats.drained);
	softnic_fault(rig.nic, "none");
	step();
	assert_int_equal(rig.sent, 1);
	softnic_wire_stats(rig.nic, &stats);
	assert_true(stats.drained);
	assert_int_equal(stats.from_port_packets, 1);
	assert_int_equal(stats.from_port_bytes, 60);
	rig_close_clean();
}

static void context_descriptors_are_used_up(void **state) {
	(void)state;
	rig_open("");
	tx_start(0);
	for (unsigned i = 0; i < 2; i++)
		rig.mem->tx[0][i] =
		    (struct desc){0, htole64(TXD_DEXT | TXD_DTYP_CONTEXT | (i ? TXD_RS : 0))};
	fill(2, 60, 2);
	tx_frame(0, 2, 60);
	ring_doorbell(REG_TDT, 3);
	step();
	assert_int_equal(rig.sent, 1);
	assert_false(tx_done(0, 0));
	assert_true(tx_done(0, 1));
	assert_int_equal(rd(REG_TDH), 3);
	rig_close_clean();
}

static void the_ring_goes_round(void **state) {
	unsigned at = 0;

	(void)state;
	rig_open("");
	tx_start(0);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < RING - 1; i++, at = (at + 1) % RING) {
			fill(at, 64, round + i);
			tx_frame(0, at, 64);
		}
		ring_doorbell(REG_TDT, at);
		step();
		assert_int_equal(rd(REG_TDH), at);
		assert_frame(rig.frame, 64, round + RING - 2);
	}
	assert_int_equal(rig.sent, 20 * (RING - 1));
	rig_close_clean();
}

/* DPDK 71f39b07b6: without WTHRESH, 40 descriptors without RS are all that the card stands. */
static void rs_farther_than_40_hangs_the_queue(void **state) {
	static const struct {
		unsigned distance, wthresh;
		bool hangs;
	} cases[] = {{41, 0, false}, {42, 0, true}, {60, 1, false}};

	(void)state;
	for (unsigned c = 0; c < 3; c++) {
		rig_open("");
		tx_prepare(0);
		wr(REG_DMATXCTL, rd(REG_DMATXCTL) | DMATXCTL_TE);
		wr(REG_TXDCTL, TXDCTL_ENABLE | FIELD(TXDCTL_WTHRESH, cases[c].wthresh));
		for (unsigned i = 0; i < cases[c].distance; i++) {
			fill(i, 60, i);
			tx_put(0, i, 60, 60,
			       TX_EOP_IFCS | (i + 1 == cases[c].distance ? TXD_RS : 0));
		}
		ring_doorbell(REG_TDT, cases[c].distance);
		/* In two goes: the count goes on. */
		softnic_step(rig.nic, 20);
		step();
		assert_int_equal(tx_done(0, cases[c].distance - 1), !cases[c].hangs);
		assert_int_equal(rig.sent, cases[c].hangs ? 40 : cases[c].distance);
		assert_int_equal(softnic_violations(rig.nic), cases[c].hangs);
		if (cases[c].hangs) assert_non_null(strstr(softnic_last_violation(rig.nic), "RS"));
		rig_close();
	}
}

static void every_queue_gets_its_share(void **state) {
	(void)state;
	rig_open("");
	for (unsigned q = 0; q < QUEUES; q++) {
		tx_start(q);
		for (unsigned i = 0; i < RING - 1; i++) {
			make_frame(rig.mem->tx_data[q][i], 60, 0);
			tx_frame(q, i, 60);
		}
		ring_doorbell(REG_N(TDT, q), RING - 1);
	}
	assert_int_equal(softnic_step(rig.nic, 40), 40);
	for (unsigned q = 0; q < QUEUES; q++)
		assert_int_equal(rd(REG_N(TDH, q)), 10);
	/* Fewer frames than queues: in turn. */
	for (unsigned i = 0; i < QUEUES; i++)
		assert_int_equal(softnic_step(rig.nic, 1), 1);
	for (unsigned q = 0; q < QUEUES; q++)
		assert_int_equal(rd(REG_N(TDH, q)), 11);
	rig_close_clean();
}

static void queue_counters_are_where_tqsm_says(void **state) {
	(void)state;
	rig_open("");
	tx_start(2);
	for (unsigned i = 0; i < 2; i++) {
		make_frame(rig.mem->tx_data[2][i], 60, 0);
		tx_frame(2, i, 60);
	}
	ring_doorbell(REG_N(TDT, 2), 1);
	step();
	assert_int_equal(rd(REG_N(QPTC, 0)), 1);
	wr(0x8600, 0x000E0000);
	ring_doorbell(REG_N(TDT, 2), 2);
	step();
	assert_int_equal(rd(REG_N(QPTC, 0)), 0);
	assert_int_equal(rd(REG_N(QPTC, 14)), 1);
	rig_close_clean();
}

static void a_frame_may_span_two_mappings(void **state) {
	static _Alignas(4096) uint8_t low[4096], high[4096];
	uint64_t iova = IOVA + (UINT64_C(1) << 40);
	uint8_t frame[100];

	(void)state;
	rig_open("");
	make_frame(frame, 100, 7);
	memcpy(low + 4096 - 10, frame, 10);
	memcpy(high, frame + 10, 90);
	assert_int_equal(softnic_dma_map(rig.nic, low, 4096, iova), 0);
	assert_int_equal(softnic_dma_map(rig.nic, high, 4096, iova + 4096), 0);
	tx_start(0);
	tx_frame(0, 0, 100);
	rig.mem->tx[0][0].qw0 = htole64(iova + 4096 - 10);
	ring_doorbell(REG_TDT, 1);
	step();
	assert_int_equal(rig.len, 100);
	assert_frame(rig.frame, 100, 7);
	rig_close_clean();
}

static void mappings_come_and_go(void **state) {
	static _Alignas(4096) uint8_t page[4096];
	uint64_t iova = IOVA + (UINT64_C(1) << 40);

	(void)state;
	rig_open("");
	assert_int_equal(softnic_dma_map(rig.nic, page, 4096, iova), 0);
	assert_int_not_equal(softnic_dma_map(rig.nic, page, 4096, iova + 4095), 0);
	assert_int_not_equal(softnic_dma_map(rig.nic, page, 4096, iova - 4095), 0);
	assert_int_not_equal(softnic_dma_map(rig.nic, page, 0, iova + 8192), 0);
	assert_int_not_equal(softnic_dma_map(rig.nic, page, 4096, UINT64_MAX - 100), 0);
	softnic_dma_unmap(rig.nic, iova, 4096);
	/* 200 pages, backwards, in reverse order of memory or not: each is found. */
	for (unsigned i = 200; i-- > 0;)
		assert_int_equal(softnic_dma_map(rig.nic, page + i, 1, iova + 2 * i), 0);
	assert_int_equal(softnic_violations(rig.nic), 0);
	tx_start(0);
	for (unsigned i = 0; i < 200; i += 20) {
		page[i] = (uint8_t)i;
		tx_put(0, i / 20, 1, i ? 0 : 10, TXD_IFCS | (i == 180 ? TXD_EOP : 0));
		rig.mem->tx[0][i / 20].qw0 = htole64(iova + 2 * i);
	}
	ring_doorbell(REG_TDT, 10);
	step();
	assert_int_equal(rig.sent, 1);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(rig.frame[i], i * 20);
	softnic_dma_unmap(rig.nic, iova, 400); /* all of them */
	tx_frame(0, 10, 1);
	rig.mem->tx[0][10].qw0 = htole64(iova);
	ring_doorbell(REG_TDT, 11);
	step();
	assert_int_equal(rig.sent, 1);
	assert_int_equal(softnic_violations(rig.nic), 1);
	rig_close();
}

static void reset_empties_everything(void **state) {
	(void)state;
	rig_open("");
	tx_start(0);
	rx_start(0, 2, SRRCTL_DESCTYPE_ADVANCED, false);
	fill(0, 60, 0);
	tx_frame(0, 0, 60);
	inject(60, 0);
	rig.hold = true;
	ring_doorbell(REG_TDT, 1);
	step();
	wr(REG_CTRL, CTRL_RST);
	rig.hold = false;
	assert_int_equal(rd(REG_TDT), 0);
	tx_prepare(0); /* but not enabled */
	wr(REG_DMATXCTL, rd(REG_DMATXCTL) | DMATXCTL_TE);
	ring_doorbell(REG_TDT, 1);
	step();
	assert_int_equal(rig.sent, 0);
	tx_start(0);
	rx_start(0, 2, SRRCTL_DESCTYPE_ADVANCED, false);
	rx_give(0, 0, 8);
	step();
	assert_int_equal(rig.sent, 0);
	assert_int_equal(rd(REG_RDH), 0);
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_frame_leaves_and_is_done),
	    cmocka_unit_test(legacy_descriptors_are_sent_too),
	    cmocka_unit_test(done_is_only_what_asked_for_it),
	    cmocka_unit_test(several_descriptors_make_one_frame),
	    cmocka_unit_test(short_frames_are_padded_if_so_set),
	    cmocka_unit_test(a_queue_runs_only_with_both_switches_on),
	    cmocka_unit_test(a_held_frame_leaves_once),
	    cmocka_unit_test(without_link_frames_wait),
	    cmocka_unit_test(context_descriptors_are_used_up),
	    cmocka_unit_test(the_ring_goes_round),
	    cmocka_unit_test(rs_farther_than_40_hangs_the_queue),
	    cmocka_unit_test(every_queue_gets_its_share),
	    cmocka_unit_test(queue_counters_are_where_tqsm_says),
	    cmocka_unit_test(a_frame_may_span_two_mappings),
	    cmocka_unit_test(mappings_come_and_go),
	    cmocka_unit_test(reset_empties_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
