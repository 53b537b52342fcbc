/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults of the software NIC: each does what its name says, and nothing does it without. */
#include "nic_rig.h"

#include <errno.h>

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED };

static void bits_that_stay(void **state) {
	static const struct {
		const char *fault;
		uint32_t reg, mask, value;
	} cases[] = {
	    {"eeprom-stuck", REG_EEC, EEC_ARD, 0},
	    {"dmai-stuck", REG_RDRXCTL, RDRXCTL_DMAIDONE, 0},
	    {"secrx-stuck", REG_SECRXSTAT, SECRXSTAT_RDY, 0},
	    {"link-down", REG_LINKS, LINKS_UP | (uint32_t)LINKS_SPEED, 0},
	    {"link-down", REG_STATUS, STATUS_LINK_UP, 0},
	    {"semaphore-held", REG_SWSM, SWSM_SMBI, SWSM_SMBI},
	    {"all-ones", REG_STATUS, 0xFFFFFFFF, 0xFFFFFFFF},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_open("");
		assert_int_not_equal(rd(cases[i].reg) & cases[i].mask, cases[i].value);
		wr(REG_SWSM, 0);
		assert_int_equal(softnic_fault(rig.nic, cases[i].fault), 0);
		for (unsigned poll = 0; poll < 3; poll++) {
			assert_int_equal(rd(cases[i].reg) & cases[i].mask, cases[i].value);
			wr(REG_SWSM, 0);
			softnic_delay_us(rig.nic, 1000000);
		}
		assert_int_equal(softnic_fault(rig.nic, "none"), 0);
		wr(REG_SWSM, 0);
		assert_int_not_equal(rd(cases[i].reg) & cases[i].mask, cases[i].value);
		rig_close_clean();
	}
}

static void reset_stuck_resets_nothing(void **state) {
	(void)state;
	rig_open(",fault=reset-stuck");
	wr(REG_EIMS, 1);
	wr(REG_CTRL, CTRL_RST);
	assert_int_equal(rd(REG_CTRL), CTRL_RST);
	assert_int_equal(rd(REG_EIMS), 1);
	rig_close_clean();
}

static void queues_go_on_late_or_never(void **state) {
	(void)state;
	rig_open(",fault=enable-late:3");
	rx_prepare(0, 2, ADVANCED, true);
	tx_prepare(1);
	wr(REG_RXDCTL, RXDCTL_ENABLE);
	wr(REG_N(TXDCTL, 1), TXDCTL_ENABLE | 5);
	for (unsigned poll = 0; poll < 3; poll++) {
		assert_int_equal(rd(REG_RXDCTL), 0);
		assert_int_equal(rd(REG_N(TXDCTL, 1)), 5);
	}
	assert_int_equal(rd(REG_RXDCTL), RXDCTL_ENABLE);
	assert_int_equal(rd(REG_N(TXDCTL, 1)), TXDCTL_ENABLE | 5);
	assert_int_equal(rd(REG_RXDCTL), RXDCTL_ENABLE);
	rig_close_clean();

	rig_open(",fault=enable-never");
	rx_prepare(0, 2, ADVANCED, true);
	rx_on();
	wr(REG_RXDCTL, RXDCTL_ENABLE);
	for (unsigned poll = 0; poll < 100; poll++)
		assert_int_equal(rd(REG_RXDCTL), 0);
	rx_give(0, 0, 4);
	inject(60, 0);
	step();
	assert_int_equal(rx_status(0, 0), 0);
	rig_close_clean();
}

static void queues_go_off_late_or_never(void **state) {
	static const char *const faults[] = {"disable-late:4", "disable-never"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		rig_open("");
		rx_start(0, 2, ADVANCED, true);
		rx_give(0, 0, 8);
		softnic_fault(rig.nic, faults[i]);
		wr(REG_RXDCTL, 0);
		for (unsigned poll = 0; poll < 4; poll++)
			assert_int_equal(rd(REG_RXDCTL), RXDCTL_ENABLE);
		inject(60, 0); /* until then it works on */
		step();
		assert_int_equal(rd(REG_RDH), 1);
		assert_int_equal(rd(REG_RXDCTL), i ? RXDCTL_ENABLE : 0);
		inject(60, 0);
		step();
		assert_int_equal(rd(REG_RDH), i ? 2 : 1);
		wr(REG_CTRL, CTRL_RST);
		assert_int_equal(rd(REG_RXDCTL), 0);
		rig_close_clean();
	}
}

/* SU clarification 9: such a card needs two resets, more than 1 us apart. */
static void master_stuck_takes_two_resets(void **state) {
	static const struct {
		unsigned resets, apart_us;
		bool works;
	} cases[] = {{1, 0, false}, {2, 0, false}, {2, 1, true}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		rig_open(",fault=master-stuck");
		wr(REG_CTRL, CTRL_MASTER_DISABLE);
		assert_true(rd(REG_STATUS) & STATUS_MASTER_ENABLE);
		for (unsigned n = 0; n < cases[i].resets; n++) {
			wr(REG_CTRL, CTRL_RST);
			softnic_advance_ns(cases[i].apart_us * 1000);
		}
		rx_start(0, 2, ADVANCED, true);
		rx_give(0, 0, 4);
		inject(60, 0);
		step();
		assert_int_equal(!!rx_status(0, 0), cases[i].works);
		rig_close_clean();
	}
}

static void a_card_that_is_gone_does_nothing(void **state) {
	(void)state;
	rig_open("");
	rx_start(0, 2, ADVANCED, true);
	tx_start(0);
	rx_give(0, 0, 4);
	make_frame(rig.mem->tx_data[0][0], 60, 0);
	tx_frame(0, 0, 60);
	softnic_fault(rig.nic, "all-ones");
	ring_doorbell(REG_TDT, 1);
	inject(60, 0);
	wr(REG_RXDCTL, 0);
	step();
	assert_int_equal(rx_status(0, 0), 0);
	assert_int_equal(rig.sent, 0);
	assert_int_equal(rd(REG_RDH), UINT32_MAX);
	softnic_fault(rig.nic, "none");
	assert_int_equal(rd(REG_RXDCTL), RXDCTL_ENABLE);
	step();
	assert_int_equal(rig.sent, 1);
	rig_close_clean();
}

struct torn {
	unsigned calls, queue, index;
	uint64_t qw1;
	uint8_t first;
};

static void on_torn(struct softnic *nic, unsigned queue, unsigned index, void *arg) {
	struct torn *torn = arg;

	(void)nic;
	torn->calls++;
	torn->queue = queue;
	torn->index = index;
	torn->qw1 = rx_status(queue, index);
	torn->first = rig.mem->rx_data[queue][index][0];
}

static void torn_shows_the_flags_before_the_length(void **state) {
	struct torn torn = {0};
	struct softnic_hooks hooks = {.torn = on_torn, .arg = &torn};

	(void)state;
	rig_open(",fault=torn");
	softnic_set_hooks(rig.nic, &hooks);
	rx_start(0, 2, ADVANCED, true);
	rx_give(0, 0, 4);
	inject(60, 0);
	inject(60, 0);
	step();
	assert_int_equal(torn.calls, 2);
	assert_int_equal(torn.queue, 0);
	assert_int_equal(torn.index, 1);
	assert_int_equal(torn.qw1 & ~(UINT64_C(1) << 7), RXD_DD | RXD_EOP);
	assert_int_equal(torn.first, 0x02);
	assert_int_equal(rx_len(0, 1), 60);
	softnic_fault(rig.nic, "none");
	inject(60, 0);
	step();
	assert_int_equal(torn.calls, 2);
	rig_close_clean();
}

static void every_third_has_length_zero(void **state) {
	(void)state;
	rig_open(",fault=len-zero:3");
	rx_start(0, 1, ADVANCED, true);
	rx_give(0, 0, 20);
	for (unsigned i = 0; i < 9; i++)
		inject(i == 2 ? 1500 : 60, i); /* instead of two descriptors: one */
	step();
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(rx_len(0, i), i % 3 == 2 ? 0 : 60);
		assert_true(rx_status(0, i) & RXD_DD && rx_status(0, i) & RXD_EOP);
	}
	assert_int_equal(rd(REG_RDH), 9);
	rig_close_clean();
}

static void every_second_comes_damaged(void **state) {
	(void)state;
	rig_open(",fault=bad-crc:2");
	rx_start(0, 2, ADVANCED, true);
	rx_give(0, 0, 20);
	for (unsigned i = 0; i < 10; i++)
		inject(60, i);
	step();
	assert_int_equal(rd(REG_RDH), 5);
	for (unsigned i = 0; i < 5; i++)
		assert_frame(rig.mem->rx_data[0][i], 60, 2 * i);
	assert_int_equal(rd(REG_CRCERRS), 5);
	rig_close_clean();
}

static void write_backs_come_late_in_order(void **state) {
	(void)state;
	rig_open(",fault=dd-late:3");
	rx_start(0, 2, ADVANCED, true);
	tx_start(0);
	rx_give(0, 0, 8);
	for (unsigned i = 0; i < 2; i++) {
		make_frame(rig.mem->tx_data[0][i], 60, i);
		tx_frame(0, i, 60);
	}
	ring_doorbell(REG_TDT, 1);
	inject(60, 0);
	step();
	assert_int_equal(rig.sent, 1); /* it has left, only nobody is told */
	assert_int_equal(rd(REG_TDH), 1);
	ring_doorbell(REG_TDT, 2);
	inject(60, 1);
	step();
	step();
	assert_false(tx_done(0, 0) || rx_status(0, 0));
	step();
	assert_true(tx_done(0, 0) && rx_status(0, 0));
	assert_false(tx_done(0, 1) || rx_status(0, 1));
	/* Before a queue is off, it has given everything back. */
	wr(REG_TXDCTL, 0);
	assert_true(tx_done(0, 1) && rx_status(0, 1));
	inject(60, 2);
	step();
	assert_int_equal(rx_status(0, 2), 0);
	wr(REG_RXDCTL, 0);
	assert_int_equal(rx_len(0, 2), 60);
	/* And at once when the fault is over. */
	wr(REG_RDH, 0);
	wr(REG_RDT, 0);
	rx_enable(0);
	rx_give(0, 0, 1);
	inject(60, 3);
	step();
	assert_int_equal(rx_status(0, 0), 0);
	softnic_fault(rig.nic, "none");
	assert_int_equal(rx_len(0, 0), 60);
	rig_close_clean();
}

static void more_late_ones_than_there_is_room_for(void **state) {
	unsigned at = 0;

	(void)state;
	rig_open(",fault=dd-late:1000000");
	rx_start(0, 2, ADVANCED, true);
	for (unsigned i = 0; i < 1024; i++, at = (at + 1) % RING) {
		rx_give(0, at, (at + 1) % RING);
		inject(60, i);
		step();
	}
	for (unsigned i = 0; i < RING; i++)
		assert_int_equal(rx_status(0, i), 0);
	rx_give(0, at, (at + 1) % RING);
	inject(60, 0);
	step();
	assert_true(rx_status(0, at)); /* the oldest, of the same place in the ring */
	rig_close_clean();
}

static void engines_stop_and_go(void **state) {
	(void)state;
	rig_open(",fault=tx-stop+rx-stop");
	rx_start(0, 2, ADVANCED, false);
	tx_start(0);
	rx_give(0, 0, 8);
	make_frame(rig.mem->tx_data[0][0], 60, 0);
	tx_frame(0, 0, 60);
	ring_doorbell(REG_TDT, 1);
	inject(60, 0);
	step();
	assert_int_equal(rd(REG_RDH), 0);
	assert_int_equal(rd(REG_TDH), 0);
	softnic_fault(rig.nic, "none");
	softnic_fault(rig.nic, "tx-stop");
	step();
	assert_int_equal(rd(REG_RDH), 1);
	assert_int_equal(rd(REG_TDH), 0);
	softnic_fault(rig.nic, "none");
	step();
	assert_int_equal(rd(REG_TDH), 1);
	rig_close_clean();
}

static void arguments_must_make_sense(void **state) {
	static const char *const wrong[] = {"link-flap",    "link-flap:",    "link-flap:0",
					    "link-flap:1:", "link-flap:1:0", "link-flap:1:2:3",
					    "link-flap::5", "link-flap:x",   "iommu",
					    "iommu:1:2",    "rs-hang:",	     "wrong-mac:1"};

	(void)state;
	rig_open("");
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (softnic_fault(rig.nic, wrong[i]) != -EINVAL) fail_msg("%s", wrong[i]);
	rig_close_clean();
}

/* A reset loads it, as from the EEPROM of a card that was never given one. */
static void wrong_mac_is_no_ports_address(void **state) {
	(void)state;
	rig_open(",mac=02:04:06:08:0a:0c,fault=wrong-mac");
	assert_int_equal(rd(REG_RAL), 0x08060403);
	softnic_fault(rig.nic, "none");
	wr(REG_CTRL, CTRL_RST);
	assert_int_equal(rd(REG_RAL), 0x08060402);
	rig_close_clean();
}

static void rs_hang_shortens_the_distance(void **state) {
	(void)state;
	for (unsigned rs = 8; rs <= 9; rs++) {
		rig_open(",fault=rs-hang:8");
		tx_start(0);
		for (unsigned i = 0; i <= rs; i++) {
			make_frame(rig.mem->tx_data[0][i], 60, i);
			tx_put(0, i, 60, 60, TX_EOP_IFCS | (i == rs ? TXD_RS : 0));
		}
		ring_doorbell(REG_TDT, rs + 1);
		step();
		step();
		assert_int_equal(rig.sent, rs == 8 ? 9 : 8);
		assert_int_equal(softnic_violations(rig.nic), rs == 8 ? 0 : 1);
		if (rs == 9) assert_non_null(strstr(softnic_last_violation(rig.nic), "rs-hang"));
		rig_close();
	}
}

/* Each frame takes two DMAs, of its descriptor and of its data. */
static void every_nth_dma_is_refused(void **state) {
	(void)state;
	rig_open(",fault=iommu:6");
	rx_start(0, 2, ADVANCED, true);
	rx_give(0, 0, 8);
	for (unsigned i = 0; i < 4; i++)
		inject(60, i);
	step();
	assert_int_equal(rd(REG_RDH), 4);
	for (unsigned i = 0; i < 4; i++) {
		if (i == 2)
			assert_int_equal(rig.mem->rx_data[0][i][0], 0xEE);
		else
			assert_frame(rig.mem->rx_data[0][i], 60, i);
	}
	assert_int_equal(softnic_violations(rig.nic), 1);
	assert_non_null(strstr(softnic_last_violation(rig.nic), "refused by the IOMMU"));
	rig_close();

	/* A descriptor: the queue hangs until it is enabled again. */
	rig_open(",fault=iommu:3");
	tx_start(0);
	for (unsigned i = 0; i < 3; i++) {
		make_frame(rig.mem->tx_data[0][i], 60, i);
		tx_frame(0, i, 60);
	}
	ring_doorbell(REG_TDT, 3);
	step();
	step();
	assert_int_equal(rig.sent, 1);
	assert_int_equal(rd(REG_TDH), 1);
	assert_int_equal(softnic_violations(rig.nic), 1);
	softnic_fault(rig.nic, "none");
	wr(REG_TXDCTL, 0);
	wr(REG_TXDCTL, TXDCTL_ENABLE);
	step();
	assert_int_equal(rig.sent, 3);
	rig_close();

	/* Data: it does not leave. */
	rig_open(",fault=iommu:2");
	tx_start(0);
	make_frame(rig.mem->tx_data[0][0], 60, 0);
	tx_frame(0, 0, 60);
	ring_doorbell(REG_TDT, 1);
	step();
	step();
	assert_int_equal(rig.sent, 0);
	assert_int_equal(rd(REG_TDH), 0);
	assert_int_equal(softnic_violations(rig.nic), 1);
	rig_close();
}

static void faults_add_up_until_none(void **state) {
	(void)state;
	rig_open("");
	assert_int_equal(softnic_fault(rig.nic, "eeprom-stuck"), 0);
	assert_int_equal(softnic_fault(rig.nic, "dmai-stuck+enable-late:2"), 0);
	assert_int_equal(softnic_fault(rig.nic, "no-such-thing"), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "dd-late:STEPS")); /* what there is */
	assert_non_null(strstr(ixdp_error(), "iommu:N"));
	assert_false(rd(REG_EEC) & EEC_ARD);
	assert_false(rd(REG_RDRXCTL) & RDRXCTL_DMAIDONE);
	assert_int_equal(softnic_fault(rig.nic, "none"), 0);
	assert_true(rd(REG_EEC) & EEC_ARD);
	assert_true(rd(REG_RDRXCTL) & RDRXCTL_DMAIDONE);
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bits_that_stay),
	    cmocka_unit_test(reset_stuck_resets_nothing),
	    cmocka_unit_test(queues_go_on_late_or_never),
	    cmocka_unit_test(queues_go_off_late_or_never),
	    cmocka_unit_test(master_stuck_takes_two_resets),
	    cmocka_unit_test(a_card_that_is_gone_does_nothing),
	    cmocka_unit_test(torn_shows_the_flags_before_the_length),
	    cmocka_unit_test(every_third_has_length_zero),
	    cmocka_unit_test(every_second_comes_damaged),
	    cmocka_unit_test(write_backs_come_late_in_order),
	    cmocka_unit_test(more_late_ones_than_there_is_room_for),
	    cmocka_unit_test(engines_stop_and_go),
	    cmocka_unit_test(arguments_must_make_sense),
	    cmocka_unit_test(wrong_mac_is_no_ports_address),
	    cmocka_unit_test(rs_hang_shortens_the_distance),
	    cmocka_unit_test(every_nth_dma_is_refused),
	    cmocka_unit_test(faults_add_up_until_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
