/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults of the software NIC's link: late, and now and then. */
#include "nic_rig.h"

static void link_comes_late(void **state) {
	(void)state;
	rig_open(",fault=link-late:20");
	assert_false(rd(REG_LINKS) & LINKS_UP);
	softnic_delay_us(rig.nic, 19999);
	assert_false(rd(REG_LINKS) & LINKS_UP);
	softnic_delay_us(rig.nic, 1);
	assert_true(rd(REG_LINKS) & LINKS_UP);
	wr(REG_AUTOC, rd(REG_AUTOC) | AUTOC_RESTART_AN);
	assert_false(rd(REG_LINKS) & LINKS_UP);
	softnic_delay_us(rig.nic, 20000);
	assert_true(rd(REG_LINKS) & LINKS_UP);
	wr(REG_CTRL, CTRL_RST);
	assert_false(rd(REG_STATUS) & STATUS_LINK_UP);
	softnic_delay_us(rig.nic, 20000);
	assert_true(rd(REG_STATUS) & STATUS_LINK_UP);
	/* From now on, when set by hand. */
	softnic_fault(rig.nic, "link-late:5");
	softnic_delay_us(rig.nic, 4999);
	assert_false(rd(REG_LINKS) & LINKS_UP);
	softnic_fault(rig.nic, "none");
	assert_true(rd(REG_LINKS) & LINKS_UP);
	rig_close_clean();
}

/* N times down for MS milliseconds each, with as long between, counted from when it is up. */
static void link_flaps_so_many_times(void **state) {
	(void)state;
	rig_open(",fault=link-flap:2:5");
	softnic_advance_ns(123456);
	wr(REG_AUTOC, rd(REG_AUTOC) | AUTOC_RESTART_AN);
	softnic_poke(rig.nic, REG_EICR, 0);
	for (unsigned phase = 0; phase < 8; phase++) {
		bool down = phase == 1 || phase == 3;

		assert_int_equal(!(rd(REG_LINKS) & LINKS_UP), down);
		assert_int_equal(rd(REG_EICR) & EICR_LSC, phase > 0 && phase <= 4 ? EICR_LSC : 0);
		softnic_advance_ns(4999999);
		assert_int_equal(!(rd(REG_LINKS) & LINKS_UP), down);
		softnic_advance_ns(1);
	}
	/* Without MS it is 10; and it starts when it is set. */
	assert_int_equal(softnic_fault(rig.nic, "link-flap:1"), 0);
	assert_true(rd(REG_LINKS) & LINKS_UP);
	softnic_advance_ns(10000000);
	assert_false(rd(REG_LINKS) & LINKS_UP);
	/* Frames wait meanwhile. */
	tx_start(0);
	make_frame(rig.mem->tx_data[0][0], 60, 0);
	tx_frame(0, 0, 60);
	ring_doorbell(REG_TDT, 1);
	step();
	assert_int_equal(rig.sent, 0);
	softnic_advance_ns(10000000);
	step();
	assert_int_equal(rig.sent, 1);
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(link_comes_late),
	    cmocka_unit_test(link_flaps_so_many_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
