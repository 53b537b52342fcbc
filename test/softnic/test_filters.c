/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames a port takes: addresses, groups, VLANs; and how that changes while frames come. */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/regs.h"

static struct rig rig;

#define OWN "\x02\x11\x22\x33\x44\x55"
#define BROADCAST "\xFF\xFF\xFF\xFF\xFF\xFF"
#define GROUP "\x01\x00\x5E\x01\x02\x03"
#define STRANGER "\x02\x99\x00\x00\x00\x01"

static const struct ixdp_filters nothing;

/* FCTRL and what goes with it may only change while nothing is received, section 8.2.3.7.1. */
static void on_access(struct softnic *nic, bool write, uint32_t reg, uint32_t value, void *arg) {
	unsigned *writes = arg;

	(void)value;
	if (!write || (reg != REG_FCTRL && reg != REG_VLNCTRL && reg != REG_MCSTCTRL &&
		       (reg < REG_MTA || reg > REG_N(MTA, REG_MTA_COUNT - 1)) &&
		       (reg < REG_VFTA || reg > REG_N(VFTA, REG_VFTA_COUNT - 1))))
		return;
	if (softnic_peek(nic, REG_RXCTRL) & RXCTRL_RXEN)
		fail_msg("register 0x%05x is written while the NIC receives", reg);
	++*writes;
}

static unsigned writes;

static void open_with(const struct ixdp_filters *filters) {
	static const struct softnic_hooks hooks = {.access = on_access, .arg = &writes};
	struct ixdp_config cfg = rig_config(1, 1);

	cfg.promiscuous = false;
	rig_open(&rig, ",mac=02:11:22:33:44:55", &cfg);
	softnic_set_hooks(rig.nic, &hooks);
	writes = 0;
	if (ixdp_filters_set(rig.port, filters) != 0) fail_msg("%s", ixdp_error());
	assert_int_equal(writes, 3 + REG_MTA_COUNT + REG_VFTA_COUNT);
}

/* Whether a frame for dst comes through; vlan: -1: without a tag. */
static bool passes_in(const void *dst, int vlan) {
	uint8_t frame[64] = {0};
	struct ixdp_pkt pkts[2];
	int got;

	memcpy(frame, dst, 6);
	memcpy(frame + 6, STRANGER, 6);
	if (vlan >= 0) memcpy(frame + 12, (uint8_t[]){0x81, 0, 0xE0 | vlan >> 8, vlan}, 4);
	assert_true(softnic_inject(rig.nic, frame, 64));
	rig_run(&rig);
	got = ixdp_rx(rig.port, 0, pkts, 2);
	if (got > 0) {
		assert_memory_equal(pkts[0].data, dst, 6);
		ixdp_free(rig.pool, pkts, got);
	}
	assert_in_range(got, 0, 1);
	return got;
}

static bool passes(const void *dst) { return passes_in(dst, -1); }

static void only_what_is_wanted_comes(void **state) {
	static const struct {
		struct ixdp_filters filters;
		bool own, broadcast, group, stranger;
	} cases[] = {
	    {{0}, true, true, false, false},
	    {{.no_broadcast = true}, true, false, false, false},
	    {{.all_multicast = true}, true, true, true, false},
	    {{.all_multicast = true, .no_broadcast = true}, true, false, true, false},
	    {{.promiscuous = true}, true, true, true, true},
	    {{.promiscuous = true, .no_broadcast = true}, true, true, true, true},
	    {{.promiscuous = true, .all_multicast = true}, true, true, true, true},
	    {{.vlan_filter = true}, true, true, false, false},
	    {{.promiscuous = true, .vlan_filter = true}, true, true, true, true},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_with(&cases[i].filters);
		if (passes(OWN) != cases[i].own || passes(BROADCAST) != cases[i].broadcast ||
		    passes(GROUP) != cases[i].group || passes(STRANGER) != cases[i].stranger)
			fail_msg("case %u", i);
		rig_close(&rig);
	}
}

/* ixdp_promiscuous_set() must leave the others as they were. */
static void the_end_of_promiscuous_brings_the_others_back(void **state) {
	struct ixdp_filters filters = {.all_multicast = true, .no_broadcast = true};
	struct ixdp_config cfg;

	(void)state;
	open_with(&filters);
	assert_int_equal(ixdp_promiscuous_set(rig.port, true), 0);
	ixdp_config_get(rig.port, &cfg);
	assert_true(cfg.promiscuous);
	assert_true(passes(STRANGER) && passes(GROUP) && passes(BROADCAST));
	assert_int_equal(ixdp_promiscuous_set(rig.port, false), 0);
	assert_true(!passes(STRANGER) && passes(GROUP) && !passes(BROADCAST) && passes(OWN));
	ixdp_config_get(rig.port, &cfg);
	assert_false(cfg.promiscuous);
	rig_close(&rig);
}

static void make_addresses(uint8_t (*macs)[6], unsigned n) {
	for (unsigned i = 0; i < n; i++)
		memcpy(macs[i], (uint8_t[]){0x06, i, 0x80, i * 3, 0xFF, i}, 6);
}

static void the_list_of_addresses_is_as_long_as_the_nic(void **state) {
	static const unsigned counts[] = {0, 1, 2, IXDP_MAX_UNICAST};
	uint8_t macs[IXDP_MAX_UNICAST + 1][6];
	struct ixdp_filters filters = {.unicast = (const uint8_t(*)[6])macs};

	(void)state;
	make_addresses(macs, IXDP_MAX_UNICAST + 1);
	open_with(&nothing);
	/* The list shrinks again, too. */
	for (unsigned i = 0; i < 2 * 4 - 1; i++) {
		filters.n_unicast = counts[i < 4 ? i : 6 - i];
		assert_int_equal(ixdp_filters_set(rig.port, &filters), 0);
		for (unsigned n = 0; n <= IXDP_MAX_UNICAST; n++)
			if (passes(macs[n]) != (n < filters.n_unicast))
				fail_msg("address %u of %u", n, filters.n_unicast);
		assert_true(passes(OWN) && !passes(STRANGER));
	}
	filters.n_unicast = IXDP_MAX_UNICAST + 1;
	assert_int_equal(ixdp_filters_set(rig.port, &filters), -ENOSPC);
	assert_non_null(strstr(ixdp_error(), "128 unicast addresses: there is room for 127"));
	rig_close(&rig);
}

/* The NIC has a bit for 12 of the address's bits: with MO = 0 these are the last 12. */
static void groups_are_let_through_by_their_hash(void **state) {
	static const uint8_t groups[][6] = {{0x01, 0, 0x5E, 1, 2, 3}, {0x33, 0x33, 0, 0, 0, 0xFB}};
	struct ixdp_filters filters = {.multicast = groups, .n_multicast = 2};

	(void)state;
	open_with(&filters);
	assert_true(passes(groups[0]) && passes(groups[1]));
	/* What collides with the first comes too: only the end of the address counts. */
	assert_true(passes("\x01\x00\x5E\x01\x0E\x03") && passes("\x33\x33\xFF\xFF\x02\x03"));
	/* Each of these has another bit, by one. */
	assert_false(passes("\x01\x00\x5E\x01\x12\x03") || passes("\x01\x00\x5E\x01\x02\x02"));
	assert_false(passes("\x01\x00\x5E\x01\x82\x03") || passes("\x01\x00\x5E\x01\x02\x83"));
	assert_false(passes(STRANGER));
	/* Gone when it is no longer wanted. */
	filters.n_multicast = 1;
	assert_int_equal(ixdp_filters_set(rig.port, &filters), 0);
	assert_true(passes(groups[0]) && !passes(groups[1]));
	assert_int_equal(ixdp_filters_set(rig.port, &nothing), 0);
	assert_false(passes(groups[0]));
	rig_close(&rig);
}

static void vlans_are_let_through_by_number(void **state) {
	static const uint16_t vlans[] = {0, 1, 31, 32, 4095};
	static const int strangers[] = {2, 30, 33, 63, 64, 100, 2048, 4094, 4064};
	struct ixdp_filters filters = {.vlan_filter = true, .vlans = vlans, .n_vlans = 5};

	(void)state;
	open_with(&filters);
	for (unsigned promiscuous = 0; promiscuous < 2; promiscuous++) {
		filters.promiscuous = promiscuous;
		assert_int_equal(ixdp_filters_set(rig.port, &filters), 0);
		for (unsigned i = 0; i < 5; i++)
			if (!passes_in(OWN, vlans[i])) fail_msg("VLAN %u is kept out", vlans[i]);
		for (unsigned i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
			if (passes_in(OWN, strangers[i]))
				fail_msg("VLAN %d comes through", strangers[i]);
		assert_true(passes(OWN));
		/* It must be for us, too. */
		assert_int_equal(passes_in(STRANGER, 31), promiscuous);
	}
	/* The filter and the list are two things. */
	filters.vlan_filter = false;
	assert_int_equal(ixdp_filters_set(rig.port, &filters), 0);
	assert_true(passes_in(OWN, 100));
	filters.vlan_filter = true;
	filters.n_vlans = 1;
	assert_int_equal(ixdp_filters_set(rig.port, &filters), 0);
	assert_true(passes_in(OWN, 0) && !passes_in(OWN, 1) && !passes_in(OWN, 4095));
	rig_close(&rig);
}

/* Each of them: any address of the wrong kind, VLAN or number. */
static void what_is_refused_changes_nothing(void **state) {
	static const uint8_t good[][6] = {{2, 0, 0, 0, 0, 7}};
	static const uint8_t groups[][6] = {{0x01, 0, 0x5E, 0, 0, 1}, {3, 0, 0, 0, 0, 1}};
	static const uint8_t mixed[][6] = {{2, 0, 0, 0, 0, 8}, {3, 0, 0, 0, 0, 1}};
	static const uint8_t zero[][6] = {{2, 0, 0, 0, 0, 8}, {0}};
	static const uint8_t many[IXDP_MAX_UNICAST + 1][6];
	static const uint16_t vlans[] = {5, 4095}, bad_vlans[] = {6, 4096};
	const struct ixdp_filters kept = {.unicast = good,
					  .n_unicast = 1,
					  .multicast = groups,
					  .n_multicast = 1,
					  .vlan_filter = true,
					  .vlans = vlans,
					  .n_vlans = 2};
	const struct {
		struct ixdp_filters filters;
		int err;
		const char *says;
	} cases[] = {
	    {{.unicast = mixed, .n_unicast = 2}, -EINVAL, "03:00:00:00:00:01 is not a unicast"},
	    {{.unicast = zero, .n_unicast = 2}, -EINVAL, "00:00:00:00:00:00 is not a unicast"},
	    {{.unicast = many, .n_unicast = 128}, -ENOSPC, "there is room for 127"},
	    {{.multicast = mixed, .n_multicast = 2}, -EINVAL, "multicast address 0"},
	    {{.vlans = bad_vlans, .n_vlans = 2}, -EINVAL, "VLAN 4096: 0 to 4095"},
	};

	(void)state;
	open_with(&kept);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ixdp_filters bad = cases[i].filters;

		bad.promiscuous = bad.all_multicast = true;
		writes = 0;
		assert_int_equal(ixdp_filters_set(rig.port, &bad), cases[i].err);
		if (!strstr(ixdp_error(), cases[i].says)) fail_msg("case %u: %s", i, ixdp_error());
		assert_int_equal(writes, 0);
	}
	assert_int_equal(ixdp_mac_set(rig.port, (const uint8_t *)GROUP), -EINVAL);
	/* Not even later. */
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_true(passes_in(OWN, 5) && passes_in(good[0], 4095) && passes_in(groups[0], 5));
	assert_true(!passes_in(OWN, 6) && !passes(mixed[0]) && !passes(STRANGER) && !passes(GROUP));
	rig_close(&rig);
}

/* A reset makes the NIC forget all of it, the driver does not. */
static void filters_and_address_outlive_a_stop(void **state) {
	static const uint8_t own[] = {2, 0, 0, 0, 0xAA, 0xBB}, more[][6] = {{2, 0, 0, 0, 0, 7}};
	static const uint8_t groups[][6] = {{0x01, 0, 0x5E, 0, 0, 1}};
	static const uint16_t vlans[] = {77};
	const struct ixdp_filters filters = {.no_broadcast = true,
					     .unicast = more,
					     .n_unicast = 1,
					     .multicast = groups,
					     .n_multicast = 1,
					     .vlan_filter = true,
					     .vlans = vlans,
					     .n_vlans = 1};
	uint8_t mac[6];

	(void)state;
	/* Set while it runs, or while it is stopped. */
	for (unsigned stopped = 0; stopped < 2; stopped++) {
		open_with(&nothing);
		if (stopped) assert_int_equal(ixdp_stop(rig.port), 0);
		assert_int_equal(ixdp_filters_set(rig.port, &filters), 0);
		assert_int_equal(ixdp_mac_set(rig.port, own), 0);
		if (!stopped) assert_int_equal(ixdp_stop(rig.port), 0);
		/* Once stopped it has its permanent address back, as after it is closed. */
		assert_int_equal(softnic_peek(rig.nic, REG_RAL), 0x33221102);
		assert_int_equal(softnic_peek(rig.nic, REG_RAH), RAH_AV | 0x5544);
		assert_int_equal(ixdp_start(rig.port), 0);
		ixdp_mac_get(rig.port, mac);
		assert_memory_equal(mac, own, 6);
		assert_true(passes(own) && passes(more[0]) && passes(groups[0]));
		assert_true(passes_in(own, 77) && !passes_in(own, 78));
		assert_true(!passes(OWN) && !passes(STRANGER) && !passes(GROUP));
		assert_false(passes(BROADCAST));
		rig_close(&rig);
	}
}

/* As long as an address is half written it must not be valid, section 8.2.3.7.9. */
static void on_address(struct softnic *nic, bool write, uint32_t reg, uint32_t value, void *arg) {
	(void)value;
	if (!write || reg != REG_RAL) return;
	if (softnic_peek(nic, REG_RAH) & RAH_AV) fail_msg("half an address is valid");
	*(bool *)arg = true;
}

static void no_half_address_is_valid(void **state) {
	static const uint8_t other[] = {0x0A, 1, 2, 3, 4, 5};
	bool written = false;
	struct softnic_hooks hooks = {.access = on_address, .arg = &written};

	(void)state;
	open_with(&nothing);
	softnic_set_hooks(rig.nic, &hooks);
	assert_int_equal(ixdp_mac_set(rig.port, other), 0);
	assert_true(written);
	assert_true(passes(other) && !passes(OWN));
	rig_close(&rig);
}

/* Frames come all the time: what is not for us never does, what is comes in order. */
static void filters_change_while_frames_come(void **state) {
	struct ixdp_filters filters = {0};
	struct ixdp_pkt pkts[64];
	uint64_t last = 0;
	unsigned total = 0;

	(void)state;
	open_with(&nothing);
	ixdp_mac_set(rig.port, (const uint8_t[]){2, 0, 0, 0, 0, 1}); /* as test frames have it */
	for (unsigned round = 0; round < 200; round++) {
		int got;

		for (unsigned i = 0; i < 8; i++)
			rig_inject(&rig, 60 + round);
		filters.vlan_filter = round % 3;
		filters.all_multicast = round % 2;
		assert_int_equal(ixdp_filters_set(rig.port, &filters), 0);
		rig_run(&rig);
		got = ixdp_rx(rig.port, 0, pkts, 64);
		assert_true(got >= 0);
		for (int i = 0; i < got; i++) {
			assert_true(total == 0 || rig_seq(&pkts[i]) > last);
			last = rig_seq(&pkts[i]);
			total++;
		}
		ixdp_free(rig.pool, pkts, got);
	}
	assert_int_equal(total, 200 * 8);
	assert_int_equal(rig_stats(&rig).rx_packets, total);
	rig_close(&rig);
}

/* Nothing is changed under a receive path that does not stop; it is made up for later. */
static void reception_that_does_not_pause_is_an_error(void **state) {
	struct ixdp_filters filters = {.all_multicast = true};
	struct ixdp_rss rss;

	(void)state;
	open_with(&nothing);
	writes = 0;
	softnic_fault(rig.nic, "secrx-stuck");
	assert_int_equal(ixdp_filters_set(rig.port, &filters), -ETIMEDOUT);
	assert_non_null(strstr(ixdp_error(), "SECRXSTAT.RDY"));
	ixdp_rss_get(rig.port, &rss);
	assert_int_equal(ixdp_rss_set(rig.port, &rss), -ETIMEDOUT);
	assert_int_equal(writes, 0);
	assert_true(passes(OWN) && !passes(GROUP));
	softnic_fault(rig.nic, "none");
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_true(passes(OWN) && passes(GROUP));
	rig_close(&rig);
}

/* Without RX queues there is nothing to receive: filters are kept, RXEN stays off. */
static void a_port_that_only_sends_stays_deaf(void **state) {
	struct ixdp_config cfg = rig_config(0, 1);

	(void)state;
	rig_open(&rig, "", &cfg);
	assert_int_equal(softnic_peek(rig.nic, REG_RXCTRL) & RXCTRL_RXEN, 0);
	assert_int_equal(ixdp_promiscuous_set(rig.port, true), 0);
	assert_int_equal(ixdp_filters_set(rig.port, &nothing), 0);
	assert_int_equal(softnic_peek(rig.nic, REG_RXCTRL) & RXCTRL_RXEN, 0);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_what_is_wanted_comes),
	    cmocka_unit_test(the_end_of_promiscuous_brings_the_others_back),
	    cmocka_unit_test(the_list_of_addresses_is_as_long_as_the_nic),
	    cmocka_unit_test(groups_are_let_through_by_their_hash),
	    cmocka_unit_test(vlans_are_let_through_by_number),
	    cmocka_unit_test(what_is_refused_changes_nothing),
	    cmocka_unit_test(filters_and_address_outlive_a_stop),
	    cmocka_unit_test(no_half_address_is_valid),
	    cmocka_unit_test(filters_change_while_frames_come),
	    cmocka_unit_test(reception_that_does_not_pause_is_an_error),
	    cmocka_unit_test(a_port_that_only_sends_stays_deaf),
	};

	return cmocka_run_group_tests_name("filters", tests, rig_group_setup, NULL);
}
