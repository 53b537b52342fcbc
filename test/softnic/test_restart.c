/* SPDX-License-Identifier: BSD-3-Clause */
/* Stopping and starting a port: what it holds goes back, what was set stays, what failed ends. */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/port.h"
#include "driver/regs.h"

static struct rig rig;

static unsigned buffers(void) {
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(rig.pool, &stats);
	return stats.buffers;
}

static void assert_stopped(void) {
	struct ixdp_rx_hash hash;
	struct ixdp_pkt pkt;

	assert_int_equal(rig_available(&rig), buffers());
	assert_int_equal(ixdp_rx(rig.port, 0, &pkt, 1), -ENETDOWN);
	assert_non_null(strstr(ixdp_error(), "soft:rig: port is stopped"));
	assert_int_equal(ixdp_rx_hashed(rig.port, 0, &pkt, &hash, 1), -ENETDOWN);
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
	assert_int_equal(rig_make(&rig, &pkt, 1, 60, 0), 1);
	assert_int_equal(ixdp_tx(rig.port, 0, &pkt, 1), -ENETDOWN);
	ixdp_free(rig.pool, &pkt, 1);
	/* A queue that is not there is not there. */
	assert_int_equal(ixdp_rx(rig.port, 99, &pkt, 1), -EINVAL);
	assert_int_equal(rig_available(&rig), buffers());
}

/* Sends and receives some frames, which must all come. */
static void assert_works(unsigned len) {
	struct ixdp_pkt pkts[64];
	uint64_t sent = rig.sent, seq = rig.next_in;

	for (unsigned i = 0; i < 64; i++)
		rig_inject(&rig, len);
	assert_int_equal(rig_make(&rig, pkts, 64, len, 0), 64);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 64), 64);
	rig_run(&rig);
	assert_int_equal(rig.sent, sent + 64);
	assert_int_equal(rig_receive(&rig, 0, 64, 32, &seq), 64);
}

/* A hundred times, with frames in both rings, some done, some not looked at, some not sent. */
static void a_port_is_stopped_in_full_traffic(void **state) {
	struct ixdp_config cfg = rig_config(2, 2);
	uint64_t received = 0, taken = 0;

	(void)state;
	cfg.rx_ring = 256;
	cfg.tx_ring = 128;
	rig_open(&rig, "", &cfg);
	for (unsigned round = 0; round < 100; round++) {
		struct ixdp_pkt pkts[100];
		unsigned n = 1 + round % 100;
		int got;

		for (unsigned i = 0; i < 3 * n; i++)
			rig_inject(&rig, 60 + i);
		softnic_step(rig.nic, n);
		got = ixdp_rx(rig.port, 0, pkts, n / 2);
		assert_true(got >= 0);
		received += got;
		ixdp_free(rig.pool, pkts, got);
		rig.hold = round % 3 == 0;
		for (unsigned q = 0; q < 2; q++) {
			assert_int_equal(rig_make(&rig, pkts, n, 60, round), n);
			assert_int_equal(ixdp_tx(rig.port, q, pkts, n), n);
			taken += n;
			softnic_step(rig.nic, n / 3);
		}
		assert_int_equal(ixdp_stop(rig.port), 0);
		assert_stopped();
		assert_int_equal(ixdp_stop(rig.port), 0);

		/* Totals go on where they were, and say what has left, and what has come. */
		struct ixdp_stats stats = rig_stats(&rig);

		assert_int_equal(stats.tx_packets, rig.sent);
		assert_int_equal(stats.tx_taken, taken);
		assert_int_equal(stats.rx_packets, received);
		assert_int_equal(ixdp_start(rig.port), 0);
		assert_int_equal(ixdp_start(rig.port), 0);
		rig.hold = false;
		if (round % 10) continue;
		assert_works(60);
		taken += 64;
		received += 64;
	}
	rig_close(&rig);
}

static void what_was_set_stays(void **state) {
	struct ixdp_config cfg = rig_config(4, 3), is;

	(void)state;
	cfg.mtu = 4000;
	cfg.promiscuous = false;
	cfg.pause = IXDP_PAUSE_RX;
	cfg.offloads = IXDP_OFFLOAD_VLAN_STRIP;
	rig_open(&rig, "", &cfg);
	for (unsigned i = 0; i < 3; i++) {
		ixdp_config_get(rig.port, &is);
		assert_int_equal(is.rx_queues, 4);
		assert_int_equal(is.tx_queues, 3);
		assert_int_equal(is.mtu, 4000);
		assert_int_equal(is.pause, IXDP_PAUSE_RX);
		assert_int_equal(is.offloads, IXDP_OFFLOAD_VLAN_STRIP);
		assert_false(is.promiscuous);
		if (i == 1)
			assert_int_equal(ixdp_start(rig.port), 0);
		else
			assert_int_equal(ixdp_stop(rig.port), 0);
	}
	rig_close(&rig);
}

/* Each leaves a stopped port, which starts when the card is well again. */
static void a_card_that_fails_can_be_started_later(void **state) {
	static const struct {
		const char *fault, *text;
		int err;
	} cases[] = {
	    {"reset-stuck", "CTRL.RST", -ETIMEDOUT},
	    {"eeprom-stuck", "EEC.ARD", -ETIMEDOUT},
	    {"dmai-stuck", "RDRXCTL.DMAIDONE", -ETIMEDOUT},
	    {"enable-never", "XDCTL.ENABLE", -ETIMEDOUT},
	    {"secrx-stuck", "SECRXSTAT.RDY", -ETIMEDOUT},
	    {"all-ones", "does not answer", -ENODEV},
	    {"enable-never+master-stuck", "XDCTL.ENABLE", -ETIMEDOUT},
	};

	(void)state;
	rig_open(&rig, "", NULL);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(ixdp_stop(rig.port), 0);
		softnic_fault(rig.nic, cases[i].fault);
		for (unsigned twice = 0; twice < 2; twice++) {
			assert_int_equal(ixdp_start(rig.port), cases[i].err);
			if (!strstr(ixdp_error(), cases[i].text))
				fail_msg("%s: '%s'", cases[i].fault, ixdp_error());
			if (i != 5) assert_stopped(); /* a gone card answers nothing else */
			assert_int_equal(rig_available(&rig), buffers());
		}
		softnic_fault(rig.nic, "none");
		assert_int_equal(ixdp_start(rig.port), 0);
		assert_works(60);
	}
	rig_close(&rig);
}

/* What is slow, or never ends but by a reset, is no reason to fail. */
static void a_slow_card_is_stopped_and_started(void **state) {
	static const char *const faults[] = {"enable-late:3", "disable-late:3", "disable-never",
					     "master-stuck",  "semaphore-held", "link-late:100"};

	(void)state;
	rig_open(&rig, "", NULL);
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		softnic_fault(rig.nic, faults[i]);
		assert_int_equal(ixdp_stop(rig.port), 0);
		assert_stopped();
		assert_int_equal(ixdp_start(rig.port), 0);
		softnic_fault(rig.nic, "none");
		assert_works(60);
	}
	rig_close(&rig);
}

/* The pool is everybody's: buffers that others hold are missing in the rings. */
static void a_pool_that_ran_dry_is_no_end(void **state) {
	static struct ixdp_pkt all[8192];
	unsigned n;

	(void)state;
	rig_open(&rig, "", NULL);
	assert_int_equal(ixdp_stop(rig.port), 0);
	n = ixdp_alloc(rig.pool, all, 8192);
	assert_int_equal(n, buffers());
	ixdp_free(rig.pool, all, 100);
	assert_int_equal(ixdp_start(rig.port), -ENOBUFS);
	assert_int_equal(rig_available(&rig), 100);
	ixdp_free(rig.pool, all + 100, n - 100);
	assert_stopped();
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_works(60);
	rig_close(&rig);
}

/* Without a reset, taking the bus away must do: then its memory is free. */
static void a_card_that_cannot_be_reset_is_stopped_all_the_same(void **state) {
	(void)state;
	rig_open(&rig, "", NULL);
	softnic_fault(rig.nic, "reset-stuck");
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_stopped();
	assert_int_equal(ixdp_start(rig.port), -ETIMEDOUT);
	softnic_fault(rig.nic, "none");
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_works(60);
	rig_close(&rig);
}

static int no_way(struct ixdp_bus *bus, bool on) {
	return ixdp_fail(EIO, "%s: bus mastering cannot be switched %s", bus->name,
			 on ? "on" : "off");
}

/* When nothing stops it, it may still write: nothing that it knows of may be given away. */
static void a_card_that_nothing_stops_keeps_its_buffers(void **state) {
	struct ixdp_bus_ops ops;

	(void)state;
	rig_open(&rig, "", NULL);
	const struct ixdp_bus_ops *good = rig.port->bus->ops;
	unsigned available = rig_available(&rig);

	ops = *good;
	ops.dma_enable = no_way;
	rig.port->bus->ops = &ops;
	softnic_fault(rig.nic, "reset-stuck");
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ixdp_stop(rig.port), -EIO);
		assert_non_null(strstr(ixdp_error(), "cannot be stopped"));
		assert_int_equal(rig_available(&rig), available);
		assert_int_equal(ixdp_mtu_set(rig.port, 9000), -EIO);
	}
	struct ixdp_config cfg;

	ixdp_config_get(rig.port, &cfg);
	assert_int_equal(cfg.mtu, 1500);
	rig.port->bus->ops = good;
	softnic_fault(rig.nic, "none");
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_stopped();
	/* Nor does a start go on without it. */
	rig.port->bus->ops = &ops;
	assert_int_equal(ixdp_start(rig.port), -EIO);
	assert_stopped();
	rig.port->bus->ops = good;
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_works(60);
	rig_close(&rig);
}

static void assert_mtu(unsigned mtu) {
	struct ixdp_config cfg;

	ixdp_config_get(rig.port, &cfg);
	assert_int_equal(cfg.mtu, mtu);
	assert_int_equal(FIELD_GET(MAXFRS_MFS, softnic_peek(rig.nic, REG_MAXFRS)), mtu + 18);
}

static void the_mtu_can_be_changed(void **state) {
	static const unsigned mtus[] = {68, 1500, 2030, 2031, 9000, 1500};

	(void)state;
	rig_open(&rig, "", NULL);
	for (unsigned i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		uint64_t oversize = rig_stats(&rig).rx_oversize;
		struct ixdp_pkt pkts[16];
		uint8_t frame[IXDP_MAX_MTU + 15] = {2};
		unsigned len = 0;
		int got;

		assert_int_equal(ixdp_mtu_set(rig.port, mtus[i]), 0);
		assert_mtu(mtus[i]);
		assert_int_equal(ixdp_mtu_set(rig.port, IXDP_MIN_MTU - 1), -EINVAL);
		assert_non_null(strstr(ixdp_error(), "MTU 67: must be 68 to 9000"));
		assert_int_equal(ixdp_mtu_set(rig.port, IXDP_MAX_MTU + 1), -EINVAL);
		assert_mtu(mtus[i]);
		/* So long and no longer. */
		assert_true(softnic_inject(rig.nic, frame, mtus[i] + 15));
		assert_true(softnic_inject(rig.nic, frame, mtus[i] + 14));
		rig_run(&rig);
		got = ixdp_rx(rig.port, 0, pkts, 16);
		assert_true(got > 0);
		for (int k = 0; k < got; k++)
			len += pkts[k].len;
		ixdp_free(rig.pool, pkts, got);
		assert_int_equal(len, mtus[i] + 14);
		assert_int_equal(rig_stats(&rig).rx_oversize, oversize + 1);
	}
	/* Of a stopped port: from its start on. */
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(ixdp_mtu_set(rig.port, 3000), 0);
	assert_stopped();
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_mtu(3000);
	rig_close(&rig);
}

/* A port that does not come back says so, and has what it was told when it does. */
static void a_change_that_fails_leaves_a_stopped_port(void **state) {
	(void)state;
	rig_open(&rig, "", NULL);
	softnic_fault(rig.nic, "enable-never");
	assert_int_equal(ixdp_mtu_set(rig.port, 2000), -ETIMEDOUT);
	assert_stopped();
	assert_int_equal(ixdp_pause_set(rig.port, IXDP_PAUSE_RX), 0);
	softnic_fault(rig.nic, "none");
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_mtu(2000);
	assert_true(softnic_peek(rig.nic, REG_MFLCN) & MFLCN_RFCE);
	assert_works(1400);
	rig_close(&rig);
}

static void a_stopped_port_can_be_closed(void **state) {
	(void)state;
	rig_open(&rig, "", NULL);
	assert_works(60);
	assert_int_equal(ixdp_stop(rig.port), 0);
	rig_close(&rig);
	rig_open(&rig, "", NULL);
	assert_int_equal(ixdp_stop(rig.port), 0);
	softnic_fault(rig.nic, "reset-stuck");
	assert_int_equal(ixdp_start(rig.port), -ETIMEDOUT);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_port_is_stopped_in_full_traffic),
	    cmocka_unit_test(what_was_set_stays),
	    cmocka_unit_test(a_card_that_fails_can_be_started_later),
	    cmocka_unit_test(a_slow_card_is_stopped_and_started),
	    cmocka_unit_test(a_pool_that_ran_dry_is_no_end),
	    cmocka_unit_test(a_card_that_cannot_be_reset_is_stopped_all_the_same),
	    cmocka_unit_test(a_card_that_nothing_stops_keeps_its_buffers),
	    cmocka_unit_test(the_mtu_can_be_changed),
	    cmocka_unit_test(a_change_that_fails_leaves_a_stopped_port),
	    cmocka_unit_test(a_stopped_port_can_be_closed),
	};

	return cmocka_run_group_tests_name("restart", tests, rig_group_setup, NULL);
}
