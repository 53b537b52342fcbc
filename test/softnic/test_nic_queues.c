/* SPDX-License-Identifier: BSD-3-Clause */
/* The upper half of the software NIC's queues: which of them run, and when. */
#include "nic_rig.h"

static void set_mtqc(uint32_t value) {
	wr(REG_RTTDCS, rd(REG_RTTDCS) | RTTDCS_ARBDIS);
	wr(REG_MTQC, value);
	wr(REG_RTTDCS, rd(REG_RTTDCS) & ~(uint32_t)RTTDCS_ARBDIS);
}

/* Queue q has the ring of queue q % QUEUES, with a frame in it. */
static void put_frame(unsigned q, unsigned i, unsigned seed) {
	make_frame(rig.mem->tx_data[q % QUEUES][i], 60, seed);
	tx_frame(q % QUEUES, i, 60);
	ring_doorbell(REG_N(TDT, q), i + 1);
}

/* Linux 8d7179b1e2d6: without MTQC's mode for it, a queue above 63 stalls. */
static void tx_queues_above_63_stall_without_mtqc(void **state) {
	static const uint32_t modes[] = {0, MTQC_RT_ENA | FIELD(MTQC_NUM_TC_OR_Q, 3),
					 MTQC_VT_ENA | FIELD(MTQC_NUM_TC_OR_Q, 1)};

	(void)state;
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		rig_open(",strict=off");
		set_mtqc(modes[i]);
		tx_start(64);
		put_frame(64, 0, 1);
		tx_start(63);
		put_frame(63, 0, 1);
		step();
		assert_int_equal(rig.sent, 1);
		assert_int_equal(rd(REG_N(TDH, 64)), 0);
		assert_int_equal(rd(REG_N(TDH, 63)), 1);
		set_mtqc(NIC_MTQC_128_QUEUES);
		step();
		assert_int_equal(rig.sent, 2);
		rig_close();
	}
}

static void all_128_tx_queues_run_in_four_classes(void **state) {
	(void)state;
	rig_open("");
	set_mtqc(0x9);
	for (unsigned q = 0; q < 128; q += 4) { /* one at a time, since four share a ring */
		for (unsigned n = q; n < q + 4; n++) {
			tx_start(n);
			put_frame(n, 0, n);
		}
		step();
		assert_int_equal(rig.sent, q + 4);
		for (unsigned n = q; n < q + 4; n++) {
			assert_true(tx_done(n % QUEUES, 0));
			wr(REG_N(TXDCTL, n), 0);
		}
	}
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tx_queues_above_63_stall_without_mtqc),
	    cmocka_unit_test(all_128_tx_queues_run_in_four_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
