/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers of the software NIC: reset values, access kinds, aliases, side effects, counters. */
#include "nic_rig.h"

struct line {
	const char *name;
	uint32_t offset, stride, count, reset;
	enum { RW, RO, RC, W1S, W1C } access;
};

static const struct line lines[] = {
#define R(name, offset, stride, count, reset, access, section, what)                               \
	{#name, offset, stride, count, reset, access},
    IXDP_REGISTERS(R) NIC_REGISTERS(R)
#undef R
};
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

static uint32_t address(const struct line *line, unsigned n) {
	return line->offset + line->stride * n;
}

/* The first receive address is not the table's: it comes from the EEPROM. */
static bool is_rar0(uint32_t reg) { return reg == REG_RAL || reg == REG_RAH; }

/* What a driver must write, as a reset leaves junk in it. */
static bool is_undefined(const char *name) {
	static const char *const undefined[] = {"MTA",	 "UTA",	  "VFTA", "VLVF",
						"VLVFB", "MPSAR", "FTQF"};

	for (unsigned i = 0; i < sizeof(undefined) / sizeof(undefined[0]); i++)
		if (strcmp(name, undefined[i]) == 0) return true;
	return false;
}

static void assert_reset_values(bool semaphores) {
	for (unsigned i = 0; i < LINES; i++) {
		for (unsigned n = 0; n < lines[i].count; n++) {
			uint32_t reg = address(&lines[i], n);
			bool semaphore = reg == REG_SWSM || reg == REG_SW_FW_SYNC;

			if (!is_rar0(reg) && (semaphores || !semaphore) &&
			    (softnic_peek(rig.nic, reg) != lines[i].reset) !=
				is_undefined(lines[i].name))
				fail_msg("%s[%u] is 0x%08X", lines[i].name, n,
					 softnic_peek(rig.nic, reg));
		}
	}
}

static void every_register_has_its_reset_value(void **state) {
	(void)state;
	rig_open("");
	wr(REG_CTRL, CTRL_RST);
	assert_reset_values(true);
	rig_close();
}

static void either_reset_restores_everything(void **state) {
	static const uint32_t resets[] = {CTRL_RST, CTRL_LRST,
					  CTRL_RST | CTRL_LRST | CTRL_MASTER_DISABLE};

	(void)state;
	rig_open(",strict=off,mac=02:04:06:08:0a:0c");
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned j = 0; j < LINES; j++)
			for (unsigned n = 0; n < lines[j].count; n++)
				softnic_poke(rig.nic, address(&lines[j], n), 0x5A5A5A5A);
		wr(0x5F00, 7); /* no register */
		wr(REG_CTRL, resets[i]);
		assert_reset_values(false);
		assert_int_equal(rd(REG_CTRL), 0);
		assert_int_equal(rd(REG_RAL), 0x08060402);
		assert_int_equal(rd(REG_RAH), RAH_AV | 0x0C0A);
		assert_int_equal(rd(0x5F00), 0);
		assert_int_equal(rd(REG_RDT), 0);
		/* Shared with others, whom the reset is no business of. */
		assert_int_equal(softnic_peek(rig.nic, REG_SWSM), 0x5A5A5A5A);
		assert_int_equal(softnic_peek(rig.nic, REG_SW_FW_SYNC), 0x5A5A5A5A);
	}
	rig_close();
}

static void no_two_registers_share_an_address(void **state) {
	static uint8_t used[0x20000 / 4];

	(void)state;
	for (unsigned i = 0; i < LINES; i++)
		for (unsigned n = 0; n < lines[i].count; n++)
			if (used[address(&lines[i], n) / 4]++) fail_msg("%s[%u]", lines[i].name, n);
}

static void read_only_registers_keep_their_value(void **state) {
	(void)state;
	rig_open(",strict=off");
	for (unsigned i = 0; i < LINES; i++) {
		uint32_t before = rd(lines[i].offset);

		if (lines[i].access != RO) continue;
		wr(lines[i].offset, ~before);
		assert_int_equal(rd(lines[i].offset), before);
	}
	/* Nor do single read-only bits change. */
	wr(REG_EEC, 0);
	assert_true(rd(REG_EEC) & EEC_ARD && rd(REG_EEC) & EEC_PRES);
	wr(REG_RDRXCTL, 0);
	assert_int_equal(rd(REG_RDRXCTL), RDRXCTL_DMAIDONE);
	rig_close();
}

static void counters_clear_when_read_and_ignore_writes(void **state) {
	(void)state;
	rig_open("");
	for (unsigned i = 0; i < LINES; i++) {
		/* The high halves of octet counters have a test of their own. */
		if (lines[i].access != RC || lines[i].offset == REG_EICR ||
		    lines[i].name[strlen(lines[i].name) - 1] == 'H')
			continue;
		for (unsigned n = 0; n < lines[i].count; n++) {
			uint32_t reg = address(&lines[i], n);

			softnic_poke(rig.nic, reg, 500 + n);
			wr(reg, 3);
			assert_int_equal(softnic_peek(rig.nic, reg), 500 + n);
			assert_int_equal(rd(reg), 500 + n);
			assert_int_equal(rd(reg), 0);
		}
	}
	rig_close_clean();
}

static void octets_are_read_low_then_high(void **state) {
	static const struct {
		uint32_t low, high, stride, count;
	} pairs[] = {
	    {REG_GORCL, REG_GORCH, 0, 1},  {REG_GOTCL, REG_GOTCH, 0, 1},
	    {REG_TORL, REG_TORH, 0, 1},	   {REG_QBRCL, REG_QBRCH, 0x40, 16},
	    {REG_QBTCL, REG_QBTCH, 8, 16},
	};

	(void)state;
	rig_open("");
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned n = 0; n < pairs[i].count; n++) {
			uint32_t low = pairs[i].low + n * pairs[i].stride;
			uint32_t high = pairs[i].high + n * pairs[i].stride;

			softnic_poke(rig.nic, low, 0xFFFFFFF0 + n);
			softnic_poke(rig.nic, high, 0xA);
			assert_int_equal(rd(low), 0xFFFFFFF0 + n);
			assert_int_equal(rd(high), 0xA); /* was not lost with the low part */
			assert_int_equal(rd(high), 0);
			assert_int_equal(rd(low), 0);
			assert_int_equal(rd(high), 0);

			/* The wrong way round: the high part is not there yet. */
			softnic_poke(rig.nic, high, 0xB);
			assert_int_equal(rd(high), 0);
			assert_int_equal(rd(low), 0);
		}
	}
	/* None of them took another one's high part meanwhile. */
	for (unsigned i = 0; i < 5; i++)
		for (unsigned n = 0; n < pairs[i].count; n++)
			assert_int_equal(rd(pairs[i].high + n * pairs[i].stride), 0xB);
	rig_close_clean();
}

static void frames_between_the_two_reads_count_later(void **state) {
	(void)state;
	rig_open("");
	rx_on();
	softnic_poke(rig.nic, REG_GORCL, 0xFFFFFFFF);
	assert_int_equal(rd(REG_GORCL), 0xFFFFFFFF);
	inject(60, 0);
	assert_int_equal(rd(REG_GORCH), 0);
	assert_int_equal(rd(REG_GORCL), 64);
	assert_int_equal(rd(REG_GORCH), 0);
	rig_close_clean();
}

static void counters_stick_at_their_maximum(void **state) {
	(void)state;
	rig_open("");
	rx_on();
	softnic_poke(rig.nic, REG_GPRC, 0xFFFFFFFE);
	softnic_poke(rig.nic, REG_GORCL, 0xFFFFFFFF);
	inject(60, 0);
	/* Octets carry over into the high register ... */
	assert_int_equal(softnic_peek(rig.nic, REG_GORCL), 63);
	assert_int_equal(softnic_peek(rig.nic, REG_GORCH), 1);
	softnic_poke(rig.nic, REG_GORCL, 0xFFFFFFC0);
	softnic_poke(rig.nic, REG_GORCH, 0xF);
	inject(60, 0);
	inject(60, 0);
	/* ... and end at 36 bits, all others at 32. */
	assert_int_equal(rd(REG_GPRC), 0xFFFFFFFF);
	assert_int_equal(rd(REG_GORCL), 0xFFFFFFFF);
	assert_int_equal(rd(REG_GORCH), 0xF);
	rig_close_clean();
}

static void interrupt_mask_is_set_and_cleared_by_ones(void **state) {
	(void)state;
	rig_open("");
	wr(REG_EIMS, 0x00300003);
	wr(REG_EIMS, 0x00000030);
	assert_int_equal(rd(REG_EIMS), 0x00300033);
	wr(REG_EIMS, 0);
	assert_int_equal(rd(REG_EIMS), 0x00300033);
	wr(REG_EIMC, 0x00100001);
	assert_int_equal(rd(REG_EIMS), 0x00200032);
	wr(REG_EIMC_EX, 0xFFFFFFFF); /* bits 15:0 are those of EIMC, the others vectors 16 to 31 */
	wr(REG_N(EIMC_EX, 1), 0xFFFFFFFF);
	assert_int_equal(rd(REG_EIMS), 0x00200000);
	rig_close_clean();
}

static void interrupt_causes_clear_by_ones_and_by_reading(void **state) {
	(void)state;
	rig_open("");
	softnic_poke(rig.nic, REG_EICR, 0x31);
	wr(REG_EICR, 0x11);
	assert_int_equal(rd(REG_EICR), 0x20);
	assert_int_equal(rd(REG_EICR), 0);
	/* Set even while masked. */
	softnic_fault(rig.nic, "link-down");
	step();
	rd(REG_LINKS);
	assert_int_equal(rd(REG_EICR), 1 << 20);
	assert_int_equal(rd(REG_EICR), 0);
	softnic_fault(rig.nic, "none");
	rd(REG_LINKS);
	assert_int_equal(rd(REG_EICR), 1 << 20);
	rig_close_clean();
}

static void commands_clear_themselves(void **state) {
	(void)state;
	rig_open("");
	wr(REG_CTRL, CTRL_RST);
	assert_int_equal(rd(REG_CTRL), 0);
	wr(REG_CTRL, CTRL_LRST);
	assert_int_equal(rd(REG_CTRL), 0);
	wr(REG_TXDCTL, TXDCTL_SWFLSH | FIELD(TXDCTL_PTHRESH, 5));
	assert_int_equal(rd(REG_TXDCTL), 5);
	wr(REG_AUTOC, rd(REG_AUTOC) | AUTOC_RESTART_AN);
	assert_int_equal(rd(REG_AUTOC), 0xC09C6004);
	rig_close_clean();
}

static void link_is_up_at_10_gigabit(void **state) {
	(void)state;
	rig_open("");
	assert_int_equal(rd(REG_LINKS), LINKS_UP | FIELD(LINKS_SPEED, LINKS_SPEED_10G));
	assert_true(rd(REG_STATUS) & STATUS_LINK_UP);
	rig_close_clean();
}

static void master_disable_shows_in_status(void **state) {
	(void)state;
	rig_open("");
	assert_true(rd(REG_STATUS) & STATUS_MASTER_ENABLE);
	wr(REG_CTRL, CTRL_MASTER_DISABLE);
	assert_int_equal(rd(REG_CTRL), CTRL_MASTER_DISABLE);
	assert_false(rd(REG_STATUS) & STATUS_MASTER_ENABLE);
	wr(REG_CTRL, CTRL_MASTER_DISABLE | CTRL_RST);
	assert_true(rd(REG_STATUS) & STATUS_MASTER_ENABLE);
	rig_close_clean();
}

static void reading_the_semaphore_takes_it(void **state) {
	(void)state;
	rig_open("");
	assert_false(rd(REG_SWSM) & SWSM_SMBI);
	assert_true(rd(REG_SWSM) & SWSM_SMBI);
	wr(REG_SWSM, 0);
	assert_false(rd(REG_SWSM) & SWSM_SMBI);
	wr(REG_SWSM, SWSM_SMBI | SWSM_SWESMBI);
	assert_true(rd(REG_SWSM) & SWSM_SWESMBI);
	rig_close_clean();
}

static void aliases_are_the_same_register(void **state) {
	static const struct {
		uint32_t alias, alias_stride, reg, stride, count;
	} aliases[] = {
	    {0x00004, 0, REG_CTRL, 0, 1},
	    {0x02100, 4, REG_SRRCTL, REG_SRRCTL_STRIDE, 16},
	    {0x02200, 4, REG_DCA_RXCTRL, REG_DCA_RXCTRL_STRIDE, 16},
	    {0x05400, 8, REG_RAL, REG_RAL_STRIDE, 16},
	    {0x05404, 8, REG_RAH, REG_RAH_STRIDE, 16},
	    {0x05818, 0, REG_MRQC, 0, 1},
	    {0x05C00, 4, REG_RETA, REG_RETA_STRIDE, 32},
	    {0x05C80, 4, REG_RSSRK, REG_RSSRK_STRIDE, 10},
	};

	(void)state;
	rig_open(",strict=off");
	for (unsigned i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		for (unsigned n = 0; n < aliases[i].count; n++) {
			uint32_t alias = aliases[i].alias + aliases[i].alias_stride * n;
			uint32_t reg = aliases[i].reg + aliases[i].stride * n;

			wr(alias, 0x101 + n);
			assert_int_equal(rd(reg), 0x101 + n);
			wr(reg, 0x202 + n);
			assert_int_equal(rd(alias), 0x202 + n);
			assert_int_equal(softnic_peek(rig.nic, alias), 0x202 + n);
		}
	}
	for (unsigned n = 0; n < 16; n++) { /* a counter: read by one, cleared by the other */
		softnic_poke(rig.nic, REG_N(QPTC, n), 9);
		assert_int_equal(rd(0x6030 + 0x40 * n), 9);
		assert_int_equal(rd(REG_N(QPTC, n)), 0);
	}
	rig_close();
}

static void rings_are_aligned_whatever_is_written(void **state) {
	(void)state;
	rig_open(",strict=off");
	wr(REG_N(RDBAL, 63), 0xFFFFFFFF);
	wr(REG_N(TDBAL, 127), 0xFFFFFFFF);
	wr(REG_N(RDLEN, 63), 0xFFFFFFFF);
	wr(REG_N(TDLEN, 127), 0xFFFFFFFF);
	wr(REG_N(RDH, 63), 0xFFFFFFFF);
	wr(REG_N(TDH, 127), 0xFFFFFFFF);
	wr(REG_N(RDT, 63), 0xFFFFFFFF);
	wr(REG_N(TDT, 127), 0xFFFFFFFF);
	assert_int_equal(rd(REG_N(RDBAL, 63)), 0xFFFFFF80);
	assert_int_equal(rd(REG_N(TDBAL, 127)), 0xFFFFFF80);
	assert_int_equal(rd(REG_N(RDLEN, 63)), 0xFFF80);
	assert_int_equal(rd(REG_N(TDLEN, 127)), 0xFFF80);
	assert_int_equal(rd(REG_N(RDH, 63)), 0xFFFF);
	assert_int_equal(rd(REG_N(TDH, 127)), 0xFFFF);
	assert_int_equal(rd(REG_N(RDT, 63)), 0xFFFF);
	assert_int_equal(rd(REG_N(TDT, 127)), 0xFFFF);
	rig_close();
}

static void every_tail_has_a_doorbell_of_its_own(void **state) {
	(void)state;
	rig_open("");
	for (unsigned n = 0; n < REG_RDT_COUNT; n++)
		ring_doorbell(REG_N(RDT, n), 1000 + n);
	for (unsigned n = 0; n < REG_TDT_COUNT; n++)
		ring_doorbell(REG_N(TDT, n), 2000 + n);
	for (unsigned n = 0; n < REG_RDT_COUNT; n++)
		assert_int_equal(rd(REG_N(RDT, n)), 1000 + n);
	for (unsigned n = 0; n < REG_TDT_COUNT; n++)
		assert_int_equal(rd(REG_N(TDT, n)), 2000 + n);
	wr(REG_N(TDT, 5), 7);
	assert_int_equal(*softnic_doorbell(rig.nic, REG_N(TDT, 5)), 7);
	softnic_poke(rig.nic, REG_N(RDT, 5), 8);
	assert_int_equal(*softnic_doorbell(rig.nic, REG_N(RDT, 5)), 8);
	assert_int_equal(softnic_peek(rig.nic, REG_N(RDT, 5)), 8);
	assert_null((void *)softnic_doorbell(rig.nic, REG_RDH));
	assert_null((void *)softnic_doorbell(rig.nic, REG_CTRL));
	/* No two of them share a cache line: they belong to different threads. */
	for (unsigned n = 1; n < REG_RDT_COUNT; n++)
		assert_true((uintptr_t)softnic_doorbell(rig.nic, REG_N(RDT, n)) / 64 !=
			    (uintptr_t)softnic_doorbell(rig.nic, REG_N(RDT, n - 1)) / 64);
	rig_close_clean();
}

struct log {
	unsigned lines;
	char last[256];
};

static void on_log(enum ixdp_log_level level, const char *line, void *arg) {
	struct log *log = arg;

	(void)level;
	log->lines++;
	snprintf(log->last, sizeof(log->last), "%s", line);
}

static void unknown_registers_store_and_are_logged_once(void **state) {
	struct log log = {0};

	(void)state;
	ixdp_log_set(on_log, &log, IXDP_LOG_INFO);
	rig_open("");
	wr(0x05F00, 0x12345678);
	assert_int_equal(rd(0x05F00), 0x12345678);
	assert_int_equal(log.lines, 1);
	assert_non_null(strstr(log.last, "0x05F00"));
	assert_int_equal(rd(0x05F04), 0);
	assert_int_equal(log.lines, 2);
	assert_int_equal(rd(0x1FFFC), 0); /* the last one of the BAR */
	ixdp_log_set(NULL, NULL, IXDP_LOG_INFO);
	rig_close_clean();
}

static void peek_and_poke_have_no_side_effects(void **state) {
	(void)state;
	rig_open("");
	assert_int_equal(softnic_peek(rig.nic, REG_SWSM), 0);
	assert_int_equal(softnic_peek(rig.nic, REG_SWSM), 0);
	softnic_poke(rig.nic, REG_GPRC, 4);
	assert_int_equal(softnic_peek(rig.nic, REG_GPRC), 4);
	assert_int_equal(softnic_peek(rig.nic, REG_GPRC), 4);
	softnic_poke(rig.nic, REG_CTRL, CTRL_RST);
	assert_int_equal(softnic_peek(rig.nic, REG_CTRL), CTRL_RST);
	assert_int_equal(softnic_peek(rig.nic, REG_GPRC), 4);
	rig_close_clean();
}

struct seen {
	unsigned reads, writes;
	uint32_t reg, value;
};

static void on_access(struct softnic *nic, bool write, uint32_t reg, uint32_t value, void *arg) {
	struct seen *seen = arg;

	*(write ? &seen->writes : &seen->reads) += 1;
	seen->reg = reg;
	seen->value = value;
	softnic_peek(nic, REG_CTRL); /* it may use the NIC */
}

static void hook_sees_every_access(void **state) {
	struct seen seen = {0};
	struct softnic_hooks hooks = {.access = on_access, .arg = &seen};

	(void)state;
	rig_open("");
	softnic_set_hooks(rig.nic, &hooks);
	wr(REG_EIMS, 5);
	assert_int_equal(seen.writes, 1);
	assert_int_equal(seen.reg, REG_EIMS);
	assert_int_equal(seen.value, 5);
	rd(REG_LINKS);
	assert_int_equal(seen.reads, 1);
	assert_int_equal(seen.value, 0x70000000);
	softnic_set_hooks(rig.nic, NULL);
	rd(REG_LINKS);
	assert_int_equal(seen.reads, 1);
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_register_has_its_reset_value),
	    cmocka_unit_test(either_reset_restores_everything),
	    cmocka_unit_test(no_two_registers_share_an_address),
	    cmocka_unit_test(read_only_registers_keep_their_value),
	    cmocka_unit_test(counters_clear_when_read_and_ignore_writes),
	    cmocka_unit_test(octets_are_read_low_then_high),
	    cmocka_unit_test(frames_between_the_two_reads_count_later),
	    cmocka_unit_test(counters_stick_at_their_maximum),
	    cmocka_unit_test(interrupt_mask_is_set_and_cleared_by_ones),
	    cmocka_unit_test(interrupt_causes_clear_by_ones_and_by_reading),
	    cmocka_unit_test(commands_clear_themselves),
	    cmocka_unit_test(link_is_up_at_10_gigabit),
	    cmocka_unit_test(master_disable_shows_in_status),
	    cmocka_unit_test(reading_the_semaphore_takes_it),
	    cmocka_unit_test(aliases_are_the_same_register),
	    cmocka_unit_test(rings_are_aligned_whatever_is_written),
	    cmocka_unit_test(every_tail_has_a_doorbell_of_its_own),
	    cmocka_unit_test(unknown_registers_store_and_are_logged_once),
	    cmocka_unit_test(peek_and_poke_have_no_side_effects),
	    cmocka_unit_test(hook_sees_every_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
