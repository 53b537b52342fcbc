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

/* Receive queues 64 to 127 are at 0xD000, and stored nowhere else. */
static void upper_rx_queues_have_registers_of_their_own(void **state) {
	static const struct {
		uint32_t low, high, writable;
	} regs[] = {{REG_RDBAL, 0xD000, 0xFFFFFF80}, {REG_RDBAH, 0xD004, 0xFFFFFFFF},
		    {REG_RDLEN, 0xD008, 0xFFF80},    {REG_DCA_RXCTRL, 0xD00C, 0xA200},
		    {REG_RDH, 0xD010, 0xFFFF},	     {REG_SRRCTL, 0xD014, 0x0402},
		    {REG_RDT, 0xD018, 0xFFFF},	     {REG_RXDCTL, 0xD028, RXDCTL_VME}};

	(void)state;
	rig_open("");
	for (unsigned n = 0; n < 64; n++) {
		assert_int_equal(rd(0xD00C + 0x40 * n), 0xB200);
		assert_int_equal(rd(0xD014 + 0x40 * n), 0x402);
	}
	for (unsigned i = 0; i < 8; i++) {
		for (unsigned n = 0; n < 64; n++) {
			uint32_t low = regs[i].low + 0x40 * n, high = regs[i].high + 0x40 * n;
			uint32_t before = rd(low);

			wr(high, regs[i].writable);
			assert_int_equal(rd(high), regs[i].writable);
			assert_int_equal(softnic_peek(rig.nic, high), regs[i].writable);
			assert_int_equal(rd(low), before);
		}
	}
	assert_int_equal(rd(0x2000), 0); /* where queue 64 would be if all were in a row */
	wr(REG_CTRL, CTRL_RST);
	for (unsigned n = 0; n < 64; n++) {
		assert_int_equal(rd(0xD000 + 0x40 * n), 0);
		assert_int_equal(rd(0xD018 + 0x40 * n), 0);
		assert_int_equal(rd(0xD028 + 0x40 * n), 0);
	}
	for (unsigned n = 64; n < 128; n++) {
		ring_doorbell(0xD018 + 0x40 * (n - 64), 1000 + n);
		assert_int_equal(rd(NIC_RXQ_REG(RDT, n)), 1000 + n);
	}
	rig_close_clean();
}

static unsigned wanted;

static unsigned to_wanted(const uint8_t *frame, size_t len, void *arg) {
	(void)frame, (void)len, (void)arg;
	return wanted;
}

static void all_128_rx_queues_receive(void **state) {
	(void)state;
	rig_open("");
	softnic_steer(rig.nic, to_wanted, NULL);
	for (wanted = 0; wanted < 128; wanted++) {
		rx_start(wanted, 2, SRRCTL_DESCTYPE_ADVANCED, true);
		rx_give(wanted, 0, 4);
		inject(60, wanted);
		step();
		assert_int_equal(rd(NIC_RXQ_REG(RDH, wanted)), 1);
		assert_frame(rig.mem->rx_data[wanted % QUEUES][0], 60, wanted);
		wr(NIC_RXQ_REG(RXDCTL, wanted), 0);
		inject(60, wanted);
		step();
		assert_int_equal(rd(NIC_RXQ_REG(RDH, wanted)), 1);
	}
	rig_close_clean();
}

static void violations_name_the_upper_queues(void **state) {
	(void)state;
	rig_open("");
	wr(NIC_RXQ_REG(RDLEN, 127), 5);
	assert_non_null(strstr(softnic_last_violation(rig.nic), "RDLEN[127]"));
	rx_start(64, 2, SRRCTL_DESCTYPE_ADVANCED, true);
	wr(NIC_RXQ_REG(RDH, 64), 0);
	assert_non_null(strstr(softnic_last_violation(rig.nic), "RDH[64]"));
	rig_close();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tx_queues_above_63_stall_without_mtqc),
	    cmocka_unit_test(all_128_tx_queues_run_in_four_classes),
	    cmocka_unit_test(upper_rx_queues_have_registers_of_their_own),
	    cmocka_unit_test(all_128_rx_queues_receive),
	    cmocka_unit_test(violations_name_the_upper_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
