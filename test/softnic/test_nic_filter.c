/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames the software NIC takes off the wire: switches, lengths, FCS, addresses. */
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED, LEGACY = SRRCTL_DESCTYPE_LEGACY };

static void nothing_arrives_at_a_port_that_is_off(void **state) {
	(void)state;
	rig_open("");
	rx_prepare(0, 2, ADVANCED, true);
	inject(60, 0); /* RXEN is 0 */
	assert_int_equal(rd(REG_TPR), 0);
	rx_enable(0);
	rx_give(0, 0, 8);
	wr(REG_SECRXCTRL, rd(REG_SECRXCTRL) | SECRXCTRL_RX_DIS);
	rx_on();
	inject(60, 0);
	step();
	assert_int_equal(rd(REG_TPR), 0);
	wr(REG_SECRXCTRL, rd(REG_SECRXCTRL) & ~(uint32_t)SECRXCTRL_RX_DIS);
	inject(60, 0);
	step();
	assert_int_equal(rd(REG_RDH), 1);
	softnic_fault(rig.nic, "link-down");
	inject(60, 0);
	step();
	assert_int_equal(rd(REG_RDH), 1);
	assert_int_equal(rd(REG_TPR), 1);
	rig_close_clean();
}

static void lengths_are_limited(void **state) {
	static const struct {
		bool jumbo, tagged;
		unsigned mfs;
		size_t len;
		uint32_t counter; /* 0: accepted */
	} cases[] = {
	    {false, false, 9018, 60, 0},	  {false, false, 9018, 59, REG_RUC},
	    {false, false, 9018, 14, REG_RUC},	  {false, false, 9018, 1514, 0},
	    {false, false, 9018, 1515, REG_ROC},  {false, true, 9018, 1518, 0},
	    {false, true, 9018, 1519, REG_ROC},	  {true, false, 2000, 1996, 0},
	    {true, false, 2000, 1997, REG_ROC},	  {true, true, 2000, 2000, 0},
	    {true, true, 2000, 2001, REG_ROC},	  {true, false, 1000, 996, 0},
	    {true, false, 1000, 997, REG_ROC},	  {true, false, 65535, 15868, 0},
	    {true, false, 65535, 15869, REG_ROC},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t frame[ROOM * 4];

		rig_open("");
		if (cases[i].jumbo) wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_JUMBOEN);
		wr(REG_MAXFRS, FIELD(MAXFRS_MFS, cases[i].mfs));
		rx_start(0, 4, ADVANCED, true);
		rx_give(0, 0, 8);
		make_frame(frame, cases[i].len, 0);
		if (cases[i].tagged) memcpy(frame + 12, "\x81\x00", 2);
		assert_true(softnic_inject(rig.nic, frame, cases[i].len));
		step();
		if (!!rd(REG_RDH) != !cases[i].counter)
			fail_msg("case %u: head is %u", i, rd(REG_RDH));
		assert_int_equal(rd(REG_RUC), cases[i].counter == REG_RUC);
		assert_int_equal(rd(REG_ROC), cases[i].counter == REG_ROC);
		assert_int_equal(rd(REG_GPRC), !cases[i].counter);
		assert_int_equal(rd(REG_TPR), 1);
		rig_close_clean();
	}
}

static void bad_frames_come_only_when_asked_for(void **state) {
	uint8_t frame[60];

	(void)state;
	make_frame(frame, 60, 1);
	rig_open("");
	rx_start(0, 2, ADVANCED, true);
	rx_give(0, 0, 8);
	assert_true(softnic_inject_bad_crc(rig.nic, frame, 60));
	step();
	assert_int_equal(rd(REG_RDH), 0);
	assert_int_equal(rd(REG_CRCERRS), 1);
	assert_int_equal(rd(REG_GPRC), 0);
	/* Store bad packets: they come, with the reason. */
	wr(REG_RXCTRL, 0);
	wr(REG_FCTRL, rd(REG_FCTRL) | FCTRL_SBP);
	wr(REG_RXCTRL, RXCTRL_RXEN);
	softnic_inject_bad_crc(rig.nic, frame, 60);
	inject(40, 1);
	inject(60, 1);
	step();
	assert_int_equal(rd(REG_RDH), 3);
	assert_int_equal(rx_status(0, 0) & RXD_ERR_FRAME, RXD_ERR_CE);
	assert_int_equal(rx_status(0, 1) & RXD_ERR_FRAME, RXD_ERR_USE);
	assert_int_equal(rx_status(0, 2) & RXD_ERR_FRAME, 0);
	assert_int_equal(rd(REG_CRCERRS), 1);
	assert_int_equal(rd(REG_RUC), 1);
	assert_int_equal(rd(REG_GPRC), 1);
	rig_close_clean();

	rig_open("");
	rx_start(0, 2, LEGACY, true);
	wr(REG_RXCTRL, 0);
	wr(REG_FCTRL, rd(REG_FCTRL) | FCTRL_SBP);
	wr(REG_RXCTRL, RXCTRL_RXEN);
	rx_give(0, 0, 8);
	softnic_inject_bad_crc(rig.nic, frame, 60);
	step();
	assert_int_equal(rx_status(0, 0), (UINT64_C(0x183) << 32) | 60);
	rig_close_clean();
}

static void l2_filter(void **state) {
	static const struct {
		const char *what, *mac;
		uint32_t fctrl, mcstctrl, table;
		unsigned bit;
		bool passes, exact;
	} cases[] = {
	    {"own", "\x02\x00\x00\x00\x00\x01", 0, 0, 0, 0, true, true},
	    {"second", "\x02\x00\x00\x00\x00\x02", 0, 0, 0, 0, true, true},
	    {"not valid", "\x02\x00\x00\x00\x00\x03", 0, 0, 0, 0, false, false},
	    {"other", "\x02\x00\x00\x00\x01\x01", 0, 0, 0, 0, false, false},
	    {"other high", "\x02\x00\x00\x01\x00\x01", 0, 0, 0, 0, false, false},
	    {"UPE", "\x02\x00\x00\x00\x01\x01", FCTRL_UPE, 0, 0, 0, true, false},
	    {"own, UPE", "\x02\x00\x00\x00\x00\x01", FCTRL_UPE, 0, 0, 0, true, true},
	    {"not MPE", "\x02\x00\x00\x00\x01\x01", FCTRL_MPE, 0, 0, 0, false, false},
	    {"UTA", "\x02\x00\x00\x00\x10\x32", 0, 0, REG_UTA, 0x321, true, false},
	    {"UTA, no", "\x02\x00\x00\x00\x20\x32", 0, 0, REG_UTA, 0x321, false, false},
	    {"broadcast", "\xff\xff\xff\xff\xff\xff", 0, 0, 0, 0, false, false},
	    {"broadcast, MPE", "\xff\xff\xff\xff\xff\xff", FCTRL_MPE, 0, 0, 0, false, false},
	    {"BAM", "\xff\xff\xff\xff\xff\xff", FCTRL_BAM, 0, 0, 0, true, true},
	    {"multicast", "\x01\x00\x5e\x00\x00\x01", 0, 0, 0, 0, false, false},
	    {"not BAM", "\x01\x00\x5e\x00\x00\x01", FCTRL_BAM, 0, 0, 0, false, false},
	    {"not UPE", "\x01\x00\x5e\x00\x00\x01", FCTRL_UPE, 0, 0, 0, false, false},
	    {"MPE", "\x01\x00\x5e\x00\x00\x01", FCTRL_MPE, 0, 0, 0, true, false},
	    {"multicast RAR", "\x01\x00\x5e\x00\x00\x09", 0, 0, 0, 0, true, true},
	    {"MTA off", "\x01\x00\x5e\x00\x10\x32", 0, 0, REG_MTA, 0x321, false, false},
	    {"MTA, MO 0", "\x01\x00\x5e\x00\x10\x32", 0, 4, REG_MTA, 0x321, true, false},
	    {"MTA, no", "\x01\x00\x5e\x00\x00\x32", 0, 4, REG_MTA, 0x321, false, false},
	    {"MTA, MO 1", "\x01\x00\x5e\x00\x08\x19", 0, 5, REG_MTA, 0x321, true, false},
	    {"MTA, MO 2", "\x01\x00\x5e\x00\x84\x0c", 0, 6, REG_MTA, 0x321, true, false},
	    {"MTA, MO 3", "\x01\x00\x5e\x00\x21\x03", 0, 7, REG_MTA, 0x321, true, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t frame[60];

		rig_open(",mac=02:00:00:00:00:01");
		wr(REG_N(RAL, 127), 0x00000002);
		wr(REG_N(RAH, 127), RAH_AV | 0x0200);
		wr(REG_N(RAL, 5), 0x00000002);
		wr(REG_N(RAH, 5), 0x0300);
		wr(REG_N(RAL, 6), 0x005E0001);
		wr(REG_N(RAH, 6), RAH_AV | 0x0900);
		if (cases[i].table)
			wr(cases[i].table + cases[i].bit / 32 * 4, 1u << cases[i].bit % 32);
		wr(0x5090, cases[i].mcstctrl);
		wr(REG_FCTRL, cases[i].fctrl);
		rx_prepare(0, 2, ADVANCED, true);
		rx_enable(0);
		wr(REG_RXCTRL, RXCTRL_RXEN);
		rx_give(0, 0, 4);
		make_frame(frame, 60, 0);
		memcpy(frame, cases[i].mac, 6);
		softnic_inject(rig.nic, frame, 60);
		step();
		if (rd(REG_RDH) != cases[i].passes ||
		    (cases[i].passes && !(rx_status(0, 0) & 1 << 7) != cases[i].exact))
			fail_msg("%s", cases[i].what);
		assert_int_equal(rd(REG_GPRC), cases[i].passes);
		assert_int_equal(rd(REG_BPRC), cases[i].passes && frame[1] == 0xFF);
		assert_int_equal(rd(REG_MPRC), cases[i].passes && frame[0] == 1);
		assert_int_equal(rd(REG_TPR), 1);
		rig_close_clean();
	}
}

static void the_address_of_the_eeprom_is_received(void **state) {
	uint8_t frame[60];

	(void)state;
	rig_open(",mac=02:11:22:33:44:55"); /* that of make_frame() */
	make_frame(frame, 60, 0);
	for (unsigned reset = 0; reset < 2; reset++) {
		rx_prepare(0, 2, ADVANCED, true);
		rx_enable(0);
		wr(REG_RXCTRL, RXCTRL_RXEN);
		rx_give(0, 0, 4);
		assert_true(softnic_inject(rig.nic, frame, 60));
		step();
		assert_int_equal(rx_status(0, 0), RXD_DD | RXD_EOP | UINT64_C(60) << RXD_LEN_LOW);
		wr(REG_CTRL, CTRL_RST);
	}
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nothing_arrives_at_a_port_that_is_off),
	    cmocka_unit_test(lengths_are_limited),
	    cmocka_unit_test(bad_frames_come_only_when_asked_for),
	    cmocka_unit_test(l2_filter),
	    cmocka_unit_test(the_address_of_the_eeprom_is_received),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
