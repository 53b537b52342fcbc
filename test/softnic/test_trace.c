/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace of register accesses: an open reads like the datasheet's section on initialisation. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/port.h"

enum { MAX_LINES = 4096 };

static struct rig rig;
static char lines[MAX_LINES][400];
static unsigned n_lines;

static void keep_line(enum ixdp_log_level level, const char *line, void *arg) {
	(void)arg;
	if (level == IXDP_LOG_DEBUG && n_lines < MAX_LINES)
		snprintf(lines[n_lines++], sizeof(lines[0]), "%s", line);
}

static int setup(void **state) {
	(void)state;
	softnic_set_stepped(true);
	return 0;
}

static void trace(bool on) {
	n_lines = 0;
	ixdp_log_set(keep_line, NULL, on ? IXDP_LOG_DEBUG : IXDP_LOG_INFO);
}

/* The first line from `from` on that has the text; fails if there is none. */
static unsigned line_of(const char *text, unsigned from) {
	for (unsigned i = from; i < n_lines; i++)
		if (strstr(lines[i], text)) return i;
	for (unsigned i = 0; i < n_lines; i++)
		fprintf(stderr, "%s\n", lines[i]);
	fail_msg("no line has '%s' from line %u on", text, from);
	return 0;
}

static void an_open_is_in_the_datasheets_order(void **state) {
	/* Each one is found behind the one before it. */
	static const char *const order[] = {
	    "write EIMC 0x7fffffff ALL=0x7fffffff (8.2.3.5.4)",
	    "read RXDCTL[0..63] 0x00000000",
	    "write CTRL 0x00000004 MASTER_DISABLE=1 (8.2.3.1.1)",
	    "read STATUS",
	    "write CTRL 0x04000004 MASTER_DISABLE=1 RST=1 (8.2.3.1.1)",
	    "read CTRL 0x00000000 MASTER_DISABLE=0 RST=0",
	    "write EIMC",
	    "read EEC 0x00001730 PRES=1 ARD=1 (8.2.3.2.1)",
	    "read RDRXCTL",
	    "read RAL[0]",
	    "write RQSMR[0] 0x03020100 MAP1=1 MAP2=2 MAP3=3 (8.2.3.23)",
	    "write MTA[0..127] 0x00000000 (8.2.3.7.7) (x 128)",
	    "write FCTRL",
	    "write RDBAL[0]",
	    "write RDLEN[0]",
	    "write RXDCTL[0] 0x02000000 ENABLE=1 (8.2.3.8.6)",
	    "read RXDCTL[0] 0x02000000 ENABLE=1",
	    "write RXCTRL 0x00000001 RXEN=1 (8.2.3.8.10)",
	    "write RTTDCS",
	    "ARBDIS=1",
	    "write DMATXCTL",
	    "write TDBAL[0]",
	    "write TXDCTL[0]",
	    "write CTRL_EXT",
	    "DRV_LOAD=1",
	};
	unsigned at = 0;

	(void)state;
	trace(true);
	rig_open(&rig, "", NULL);
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		at = line_of(order[i], at);
	/* Nothing is held back once it is open. */
	assert_int_equal(at, n_lines - 1);
	assert_true(line_of("write RXDCTL[0]", 0) < line_of("write RXCTRL 0x00000001", 0));
	rig_close(&rig);
}

/* "soft:rig: read NAME[1] 0x00000000 FIELD=1 (8.2.3.1.1) (x 2)" */
static void assert_well_formed(const char *line) {
	char verb[8], name[32], section[16];
	const char *open = strchr(line, '(');
	unsigned value;

	if (sscanf(line, "soft:rig: %7s %31s 0x%8x", verb, name, &value) != 3 || !open ||
	    sscanf(open, "(%15[0-9.])", section) != 1)
		fail_msg("'%s'", line);
	assert_true(strcmp(verb, "read") == 0 || strcmp(verb, "write") == 0);
	name[strcspn(name, "[")] = 0;
	for (const char *c = name; *c; c++)
		assert_true((*c >= 'A' && *c <= 'Z') || *c == '_' || (*c >= '0' && *c <= '9'));
	assert_true(strncmp(section, "8.2.3.", 6) == 0);
}

static void every_register_has_a_name_and_a_section(void **state) {
	struct ixdp_config cfg = rig_config(4, 4);
	struct ixdp_link link;

	(void)state;
	trace(true);
	rig_open(&rig, "", &cfg);
	rig_stats(&rig);
	ixdp_link_get(rig.port, &link);
	ixdp_promiscuous_set(rig.port, false);
	softnic_fault(rig.nic, "master-stuck");
	rig_close_dirty(&rig);
	assert_true(n_lines > 100 && n_lines < MAX_LINES);
	for (unsigned i = 0; i < n_lines; i++)
		assert_well_formed(lines[i]);
}

static unsigned accesses;

static void count_access(struct softnic *nic, bool write, uint32_t reg, uint32_t value, void *arg) {
	(void)nic, (void)write, (void)reg, (void)value, (void)arg;
	accesses++;
}

/* Lines hold as many accesses as there were. */
static void no_access_is_left_out(void **state) {
	struct softnic_hooks hooks = {.access = count_access};
	unsigned traced = 0;

	(void)state;
	trace(false);
	rig_open(&rig, ",fault=enable-late:5", NULL);
	assert_int_equal(n_lines, 0);
	trace(true);
	accesses = 0;
	softnic_set_hooks(rig.nic, &hooks);
	rig_stats(&rig);
	assert_int_equal(ixdp_promiscuous_set(rig.port, false), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
	rig_close(&rig);
	for (unsigned i = 0; i < n_lines; i++) {
		const char *times = strstr(lines[i], " (x ");

		traced += times ? strtoul(times + 4, NULL, 10) : 1;
	}
	assert_true(traced > 50);
	assert_int_equal(traced, accesses);
	line_of("read TDH[0] 0x00000000 (8.2.3.9.8) (x 3)", 0);
}

static void a_wait_is_one_line(void **state) {
	(void)state;
	trace(true);
	rig_open(&rig, ",fault=enable-late:17", NULL);
	unsigned at = line_of("write RXDCTL[0] 0x02000000 ENABLE=1", 0);
	line_of("read RXDCTL[0] 0x00000000 ENABLE=0 (8.2.3.8.6) (x 17)", at);
	assert_int_equal(line_of("read RXDCTL[0] 0x02000000 ENABLE=1", at), at + 2);
	rig_close(&rig);
}

/* One array ends where the next begins: VLVF and VLVFB are neighbours. */
static void arrays_are_told_apart(void **state) {
	(void)state;
	trace(true);
	rig_open(&rig, "", NULL);
	line_of("write VLVF[0..63] 0x00000000 (8.2.3.27.15) (x 64)", 0);
	line_of("write VLVFB[0..127] 0x00000000 (8.2.3.27.16) (x 128)", 0);
	line_of("read RXDCTL_HIGH[0..63]", 0);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_open_is_in_the_datasheets_order),
	    cmocka_unit_test(every_register_has_a_name_and_a_section),
	    cmocka_unit_test(no_access_is_left_out),
	    cmocka_unit_test(a_wait_is_one_line),
	    cmocka_unit_test(arrays_are_told_apart),
	};

	return cmocka_run_group_tests_name("trace", tests, setup, NULL);
}
