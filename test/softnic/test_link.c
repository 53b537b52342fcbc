/* SPDX-License-Identifier: BSD-3-Clause */
/* The link: its changes are told once each, and nothing is lost by them but what is counted. */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/regs.h"

static struct rig rig;

/* What ixdp_link_changed() says now: -1 for no change, else whether it is up. */
static int change(void) {
	struct ixdp_link link;
	int changed = ixdp_link_changed(rig.port, &link);

	assert_in_range(changed, 0, 1);
	assert_int_equal(link.mbps, link.up ? 10000 : 0);
	return changed ? link.up : -1;
}

static void link_goes(bool up) { softnic_fault(rig.nic, up ? "none" : "link-down"); }

static void open_up(void) {
	rig_open(&rig, "", NULL);
	assert_int_equal(change(), 1);
	assert_int_equal(change(), -1);
}

static void each_change_is_told_once(void **state) {
	(void)state;
	open_up();
	for (unsigned i = 0; i < 20; i++) {
		link_goes(false);
		assert_int_equal(change(), 0);
		assert_int_equal(change(), -1);
		link_goes(true);
		assert_int_equal(change(), 1);
		assert_int_equal(change(), -1);
	}
	rig_close(&rig);
}

/* It was down between two looks: whoever has state of the peer must know. */
static void a_flap_between_two_looks_is_told(void **state) {
	(void)state;
	open_up();
	for (unsigned i = 0; i < 3; i++) {
		link_goes(false);
		rig_run(&rig);
		link_goes(true);
		rig_run(&rig);
		assert_int_equal(change(), 1);
		assert_int_equal(change(), -1);
	}
	/* And one that ends as it began, from below. */
	link_goes(false);
	assert_int_equal(change(), 0);
	link_goes(true);
	rig_run(&rig);
	link_goes(false);
	rig_run(&rig);
	assert_int_equal(change(), 0);
	assert_int_equal(change(), -1);
	rig_close(&rig);
}

/* It changes each time right after it was looked at. */
struct flips {
	unsigned left;
	bool up;
};

static void on_links_read(struct softnic *nic, bool write, uint32_t reg, uint32_t value,
			  void *arg) {
	struct flips *flips = arg;

	(void)value;
	if (write || reg != REG_LINKS || flips->left == 0) return;
	flips->left--;
	flips->up = !flips->up;
	link_goes(flips->up);
	softnic_read32(nic, REG_STATUS); /* it notices */
}

static void changes_while_it_is_looked_at_are_not_lost(void **state) {
	struct flips flips = {0, true};
	struct softnic_hooks hooks = {.access = on_links_read, .arg = &flips};

	(void)state;
	open_up();
	softnic_set_hooks(rig.nic, &hooks);
	for (unsigned flip = 1; flip < 8; flip++) {
		int last = -1;
		unsigned told = 0;

		flips.left = flip;
		for (unsigned looks = 0; looks < 10; looks++) {
			int now = change();

			told += now >= 0;
			if (now >= 0) last = now;
		}
		assert_int_equal(flips.left, 0);
		assert_int_equal(last, flips.up);
		/* Two in one look are one. */
		assert_in_range(told, 1, flip);
		assert_int_equal(change(), -1);
		/* As long as it settles in time, it is told once, and right. */
		if (flip <= 2) assert_int_equal(told, 1);
	}
	rig_close(&rig);
}

/* DPDK ff8162cb95: down and up, twenty times, while it sends. */
static void it_goes_on_after_twenty_flaps(void **state) {
	struct ixdp_pkt pkts[32];
	uint64_t made = 0, taken = 0;
	unsigned downs = 0, ups = 0;

	(void)state;
	open_up();
	assert_int_equal(softnic_fault(rig.nic, "link-flap:20:1"), 0);
	/* 1 ms each way, in steps of 20 us. */
	for (unsigned round = 0; round < 20 * 2 * 50 + 200; round++) {
		int told = change(), sent;

		downs += told == 0;
		ups += told == 1;
		softnic_advance_ns(19000);
		softnic_step(rig.nic, 64);
		assert_int_equal(rig_make(&rig, pkts, 32, 60, made), 32);
		sent = ixdp_tx(rig.port, 0, pkts, 32);
		assert_true(sent >= 0);
		ixdp_free(rig.pool, pkts + sent, 32 - sent);
		made += sent;
		taken += sent;
	}
	assert_int_equal(downs, 20);
	assert_int_equal(ups, 20);
	rig_run(&rig);
	rig_run(&rig);
	/* A link that is down holds frames; all that were taken have left, in order. */
	assert_int_equal(rig.sent, taken);
	assert_true(taken > 20 * 511);
	for (unsigned i = 0; i < taken && i < RIG_MAX_SENT; i++)
		assert_int_equal(rig.sent_seq[i], i);
	struct ixdp_stats stats = rig_stats(&rig);

	assert_int_equal(stats.tx_packets, taken);
	assert_int_equal(stats.tx_taken, taken);
	assert_int_equal(stats.rx_dropped, 0);
	rig_close(&rig);
}

/* Frames wait for the link; a full ring takes no more; none is lost, whatever becomes of the link.
 */
static void frames_wait_for_the_link(void **state) {
	struct ixdp_pkt pkts[512];

	(void)state;
	for (unsigned comes_back = 0; comes_back < 2; comes_back++) {
		open_up();
		link_goes(false);
		assert_int_equal(rig_make(&rig, pkts, 512, 60, 0), 512);
		assert_int_equal(ixdp_tx(rig.port, 0, pkts, 512), 511);
		softnic_advance_ns(10000000000);
		rig_run(&rig);
		assert_int_equal(ixdp_tx(rig.port, 0, pkts + 511, 1), 0);
		assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
		struct ixdp_stats stats = rig_stats(&rig);

		/* DPDK 3f07cc4906: bytes without FCS fell below zero. */
		assert_int_equal(stats.tx_packets, 0);
		assert_int_equal(stats.tx_bytes, 0);
		assert_int_equal(stats.tx_taken, 511);
		if (comes_back) {
			link_goes(true);
			rig_run(&rig);
			rig_run(&rig);
			assert_int_equal(rig.sent, 511);
			assert_int_equal(rig_stats(&rig).tx_packets, 511);
			assert_int_equal(rig_stats(&rig).tx_bytes, 511 * 60);
			assert_int_equal(ixdp_tx_clean(rig.port, 0), 511);
		}
		ixdp_free(rig.pool, pkts + 511, 1);
		rig_close(&rig);
	}
}

/* What comes while it is down does not come; what came before is not lost. */
static void receiving_goes_on_as_well(void **state) {
	uint64_t seq = 0;

	(void)state;
	open_up();
	for (unsigned i = 0; i < 20; i++) {
		rig_inject(&rig, 60);
		rig_run(&rig);
		link_goes(false);
		rig_run(&rig);
		link_goes(true);
	}
	assert_int_equal(rig_receive(&rig, 0, 64, 8, &seq), 20);
	rig_close(&rig);
}

/* A reset takes the link down, and it comes up by itself. */
static void a_stop_and_a_start_are_a_change(void **state) {
	struct ixdp_link link;

	(void)state;
	rig_open(&rig, ",fault=link-late:50", NULL);
	assert_int_equal(ixdp_link_wait(rig.port, 100, &link), 0);
	assert_int_equal(change(), 1);
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(change(), 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_int_equal(change(), -1);
	assert_int_equal(ixdp_link_wait(rig.port, 100, &link), 0);
	assert_int_equal(change(), 1);
	rig_close(&rig);
}

static void a_link_that_comes_late_is_told(void **state) {
	(void)state;
	rig_open(&rig, ",fault=link-late:3000", NULL);
	assert_int_equal(change(), -1);
	softnic_advance_ns(2900000000);
	assert_int_equal(change(), -1);
	softnic_advance_ns(200000000);
	assert_int_equal(change(), 1);
	assert_int_equal(change(), -1);
	rig_close(&rig);
}

static void a_nic_that_is_gone_has_no_link(void **state) {
	struct ixdp_link link;

	(void)state;
	open_up();
	softnic_fault(rig.nic, "all-ones");
	assert_int_equal(ixdp_link_changed(rig.port, &link), -ENODEV);
	assert_non_null(strstr(ixdp_error(), "soft:rig: device has gone"));
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_change_is_told_once),
	    cmocka_unit_test(a_flap_between_two_looks_is_told),
	    cmocka_unit_test(changes_while_it_is_looked_at_are_not_lost),
	    cmocka_unit_test(it_goes_on_after_twenty_flaps),
	    cmocka_unit_test(frames_wait_for_the_link),
	    cmocka_unit_test(receiving_goes_on_as_well),
	    cmocka_unit_test(a_stop_and_a_start_are_a_change),
	    cmocka_unit_test(a_link_that_comes_late_is_told),
	    cmocka_unit_test(a_nic_that_is_gone_has_no_link),
	};

	return cmocka_run_group_tests_name("link", tests, rig_group_setup, NULL);
}
