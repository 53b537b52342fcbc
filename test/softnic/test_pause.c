/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control by PAUSE frames, IEEE 802.3x: who is asked to stop does, and then loses nothing. */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/regs.h"

static struct rig rig;

/* A quantum is the time of 512 bits: 51.2 ns. Stepping and looking take some of it. */
static void inject_pause(unsigned quanta) {
	uint8_t frame[60] = "\x01\x80\xC2\x00\x00\x01\x02\x66\x77\x88\x99\xaa\x88\x08\x00\x01";

	frame[16] = quanta >> 8;
	frame[17] = quanta;
	assert_true(softnic_inject(rig.nic, frame, sizeof(frame)));
}

static void open_with(unsigned pause, bool promiscuous) {
	struct ixdp_config cfg = rig_config(1, 1);

	cfg.pause = pause;
	cfg.promiscuous = promiscuous;
	cfg.rx_ring = 64;
	rig_open(&rig, "", &cfg);
}

static bool is_paused(void) {
	struct ixdp_link link;

	assert_int_equal(ixdp_link_get(rig.port, &link), 0);
	assert_true(link.up);
	return link.paused;
}

static void send_one(void) {
	struct ixdp_pkt pkt;

	assert_int_equal(rig_make(&rig, &pkt, 1, 60, rig.sent), 1);
	assert_int_equal(ixdp_tx(rig.port, 0, &pkt, 1), 1);
}

/* Off by default: then PAUSE is a frame for a group, like others. */
static void unless_asked_for_a_pause_is_a_frame(void **state) {
	struct ixdp_pkt pkts[4];

	(void)state;
	for (unsigned promiscuous = 0; promiscuous < 2; promiscuous++) {
		/* Asking is not obeying. */
		open_with(promiscuous ? IXDP_PAUSE_TX : 0, promiscuous);
		inject_pause(0xFFFF);
		send_one();
		rig_run(&rig);
		assert_false(is_paused());
		assert_int_equal(rig.sent, 1);
		assert_int_equal(ixdp_rx(rig.port, 0, pkts, 4), promiscuous);
		ixdp_free(rig.pool, pkts, promiscuous);
		rig_close(&rig);
	}
	assert_int_equal(rig_config(1, 1).pause, 0);
}

static void a_paused_port_says_so_and_waits(void **state) {
	struct ixdp_pkt pkts[4];

	(void)state;
	open_with(IXDP_PAUSE_RX, true);
	inject_pause(10000); /* 512 us */
	send_one();
	rig_run(&rig);
	assert_true(is_paused());
	softnic_advance_ns(400000);
	rig_run(&rig);
	assert_true(is_paused());
	assert_int_equal(rig.sent, 0);
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
	/* Its time is over. */
	softnic_advance_ns(112000);
	assert_false(is_paused());
	rig_run(&rig);
	assert_int_equal(rig.sent, 1);
	/* XON ends a longer one. */
	inject_pause(0xFFFF);
	send_one();
	rig_run(&rig);
	assert_true(is_paused());
	inject_pause(0);
	rig_run(&rig);
	assert_false(is_paused());
	assert_int_equal(rig.sent, 2);
	/* They are the MAC's business, and it receives meanwhile. */
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 4), 0);
	rig_close(&rig);
}

/* A full ring of a paused port takes no more, and all of it goes out afterwards. */
static void what_waits_is_sent_after_the_pause(void **state) {
	struct ixdp_pkt pkts[512];

	(void)state;
	open_with(IXDP_PAUSE_RX, true);
	inject_pause(0xFFFF);
	assert_int_equal(rig_make(&rig, pkts, 512, 60, 0), 512);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 512), 511);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts + 511, 1), 0);
	rig_run(&rig);
	assert_int_equal(rig.sent, 0);
	inject_pause(0);
	for (unsigned i = 0; i < 32; i++)
		rig_run(&rig);
	assert_int_equal(rig.sent, 511);
	for (unsigned i = 0; i < 511; i++)
		assert_int_equal(rig.sent_seq[i], i);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts + 511, 1), 1);
	rig_close(&rig);
}

static void a_paused_port_can_be_stopped(void **state) {
	struct ixdp_pkt pkts[100];

	(void)state;
	open_with(IXDP_PAUSE_RX, true);
	inject_pause(0xFFFF);
	assert_int_equal(rig_make(&rig, pkts, 100, 60, 0), 100);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 100), 100);
	rig_run(&rig);
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_false(is_paused());
	send_one();
	rig_run(&rig);
	assert_int_equal(rig.sent, 1);
	rig_close(&rig);
}

/* Of the PAUSE frames that the port sent: how many, and what the latest asked for. */
struct asked {
	unsigned xoffs, xons;
	uint8_t source[6];
};

static bool on_pause(const uint8_t *frame, size_t len, void *arg) {
	struct asked *asked = arg;

	if (len != 60 || memcmp(frame, "\x01\x80\xC2\x00\x00\x01", 6) != 0) return true;
	memcpy(asked->source, frame + 6, 6);
	++*(frame[16] || frame[17] ? &asked->xoffs : &asked->xons);
	return true;
}

static void a_full_packet_buffer_asks_for_a_pause(void **state) {
	struct asked asked = {0};
	uint64_t seq = 0;
	uint8_t mac[6];

	(void)state;
	open_with(IXDP_PAUSE_TX, true);
	softnic_tap(rig.nic, on_pause, &asked);
	assert_int_equal(softnic_peek(rig.nic, REG_SRRCTL) & SRRCTL_DROP_EN, 0);
	/* 63 fit the ring, the rest of 512 KB waits. */
	while (asked.xoffs == 0) {
		rig_inject(&rig, 1514);
		softnic_step(rig.nic, 64);
		assert_true(rig.next_in < 512 * 1024 / 1514 + 63);
	}
	assert_true(rig.next_in > 256 * 1024 / 1514);
	ixdp_mac_get(rig.port, mac);
	assert_memory_equal(asked.source, mac, 6);
	/* Section 3.7.7.3.3: there must be room for what is under way then. */
	for (unsigned i = 0; i < 12; i++)
		rig_inject(&rig, 1514);
	assert_int_equal(asked.xons, 0);
	while (seq < rig.next_in) {
		assert_true(rig_receive(&rig, 0, 32, 32, &seq) > 0);
		softnic_step(rig.nic, 64);
	}
	assert_int_equal(asked.xons, 1);
	assert_int_equal(rig_stats(&rig).rx_dropped, 0);
	assert_int_equal(rig_stats(&rig).rx_packets, rig.next_in);
	rig_close(&rig);
}

/* Before the peer's time is over it is asked again: no gap lets frames slip through. */
static void as_long_as_it_is_full_it_asks_again(void **state) {
	struct asked asked = {0};
	uint64_t seq = 0;

	(void)state;
	open_with(IXDP_PAUSE_TX, true);
	softnic_tap(rig.nic, on_pause, &asked);
	while (asked.xoffs == 0) {
		rig_inject(&rig, 1514);
		softnic_step(rig.nic, 64);
	}
	/* 0xFFFF quanta are 3.36 ms. */
	for (unsigned ms = 0; ms < 33; ms++) {
		softnic_advance_ns(1000000);
		softnic_step(rig.nic, 64);
	}
	assert_in_range(asked.xoffs, 11, 33);
	assert_int_equal(asked.xons, 0);
	while (rig_receive(&rig, 0, 32, 32, &seq) > 0)
		softnic_step(rig.nic, 64);
	rig_run(&rig);
	assert_int_equal(asked.xons, 1);
	rig_close(&rig);
}

static void without_it_frames_are_dropped_and_counted(void **state) {
	struct asked asked = {0};
	uint64_t seq = 0;

	(void)state;
	open_with(IXDP_PAUSE_RX, true);
	softnic_tap(rig.nic, on_pause, &asked);
	for (unsigned i = 0; i < 1000; i++) {
		rig_inject(&rig, 1514);
		softnic_step(rig.nic, 64);
	}
	assert_int_equal(rig_receive(&rig, 0, 1000, 32, &seq), 63);
	assert_int_equal(rig_stats(&rig).rx_no_desc, 1000 - 63);
	assert_int_equal(asked.xoffs, 0);
	rig_close(&rig);
}

/* --- two ports and a cable ---------------------------------------------------------------------
 */

struct ends {
	struct ixdp_pool *pool;
	struct ixdp_port *from, *to;
	uint64_t sent, received;
	unsigned looks; /* that found the sender paused */
};

static void open_ends(struct ends *ends, unsigned pause_from, unsigned pause_to) {
	struct ixdp_pool_config pool = {.buffers = 4096, .numa_node = -1, .ordinary_pages = true};
	struct ixdp_config cfg = rig_config(1, 1);

	*ends = (struct ends){0};
	assert_int_equal(ixdp_pool_create(&ends->pool, &pool), 0);
	cfg.pool = rig.pool = ends->pool;
	cfg.rx_ring = cfg.tx_ring = 64;
	cfg.pause = pause_from;
	assert_int_equal(ixdp_open(&ends->from, "soft:from,peer=to", &cfg), 0);
	cfg.pause = pause_to;
	assert_int_equal(ixdp_open(&ends->to, "soft:to", &cfg), 0);
}

static void run_ends(struct ends *ends, unsigned rounds, unsigned take_every) {
	struct softnic *from = softnic_find("from"), *to = softnic_find("to");
	struct ixdp_pkt pkts[32];
	struct ixdp_link link;

	for (unsigned round = 0; round < rounds; round++) {
		unsigned n = rig_make(&rig, pkts, 32, 1024, ends->sent);
		int sent = ixdp_tx(ends->from, 0, pkts, n);

		assert_true(sent >= 0);
		ixdp_free(ends->pool, pkts + sent, n - sent);
		ends->sent += sent;
		softnic_step(from, 32);
		softnic_step(to, 32);
		assert_int_equal(ixdp_link_get(ends->from, &link), 0);
		ends->looks += link.paused;
		if (round % take_every) continue;

		/* Now more, now less, so that its buffer fills up from all sorts of levels. */
		int got = ixdp_rx(ends->to, 0, pkts, 1 + round / take_every % 32);

		for (int i = 0; i < got; i++) {
			uint64_t seq = rig_seq(&pkts[i]);

			assert_true(seq >= ends->received);
			ends->received = seq + 1;
		}
		ixdp_free(ends->pool, pkts, got);
	}
}

static void close_ends(struct ends *ends) {
	struct ixdp_pool_stats pool;

	assert_int_equal(softnic_violations(softnic_find("from")), 0);
	assert_int_equal(softnic_violations(softnic_find("to")), 0);
	ixdp_close(ends->from);
	ixdp_close(ends->to);
	ixdp_pool_get_stats(ends->pool, &pool);
	assert_int_equal(pool.available, pool.buffers);
	assert_int_equal(ixdp_pool_destroy(ends->pool), 0);
}

static void drain_ends(struct ends *ends) {
	struct softnic *from = softnic_find("from"), *to = softnic_find("to");
	struct ixdp_pkt pkts[32];
	unsigned idle = 0;

	while (idle < 5000) { /* us; no pause is longer */
		int got = ixdp_rx(ends->to, 0, pkts, 32);

		for (int i = 0; i < got; i++)
			assert_int_equal(rig_seq(&pkts[i]), ends->received++);
		ixdp_free(ends->pool, pkts, got);
		softnic_step(from, 32);
		softnic_step(to, 32);
		idle = got ? 0 : idle + 1;
	}
}

static void a_slow_receiver_loses_nothing(void **state) {
	struct ixdp_stats stats;
	struct ends ends;

	(void)state;
	open_ends(&ends, IXDP_PAUSE_RX | IXDP_PAUSE_TX, IXDP_PAUSE_RX | IXDP_PAUSE_TX);
	run_ends(&ends, 30000, 64);
	assert_true(ends.looks > 100);
	drain_ends(&ends);
	assert_int_equal(ends.received, ends.sent);
	assert_true(ends.sent > 7000);
	assert_int_equal(ixdp_stats_get(ends.to, &stats), 0);
	assert_int_equal(stats.rx_packets, ends.sent);
	assert_int_equal(stats.rx_dropped, 0);
	/* The sender is not paused for good: now that all are taken it goes on. */
	run_ends(&ends, 100, 1);
	drain_ends(&ends);
	assert_int_equal(ends.received, ends.sent);
	close_ends(&ends);
}

static void without_flow_control_it_would(void **state) {
	struct ixdp_stats stats;
	struct ends ends;

	(void)state;
	open_ends(&ends, 0, 0);
	run_ends(&ends, 5000, 64);
	assert_int_equal(ends.looks, 0);
	assert_int_equal(ixdp_stats_get(ends.to, &stats), 0);
	assert_true(stats.rx_no_desc > 2000);
	close_ends(&ends);
}

/* --- changing it --------------------------------------------------------------------------------
 */

static void assert_pause(unsigned pause) {
	struct ixdp_config cfg;
	bool rx = pause & IXDP_PAUSE_RX, tx = pause & IXDP_PAUSE_TX;

	ixdp_config_get(rig.port, &cfg);
	assert_int_equal(cfg.pause, pause);
	assert_int_equal(!!(softnic_peek(rig.nic, REG_MFLCN) & MFLCN_RFCE), rx);
	assert_int_equal(FIELD_GET(FCCFG_TFCE, softnic_peek(rig.nic, REG_FCCFG)), tx);
	assert_int_equal(!!(softnic_peek(rig.nic, REG_FCRTH) & FCRTH_FCEN), tx);
	assert_int_equal(!!(softnic_peek(rig.nic, REG_FCRTL) & FCRTL_XONE), tx);
	assert_int_equal(!(softnic_peek(rig.nic, REG_SRRCTL) & SRRCTL_DROP_EN), tx);
	/* The threshold must be right in any case, section 4.6.3.2. */
	assert_int_equal(softnic_peek(rig.nic, REG_FCRTH) & FCRTH_RTH, 512 * 1024 - 0x6000);
}

static void it_can_be_changed_while_the_port_runs(void **state) {
	static const unsigned pauses[] = {IXDP_PAUSE_RX, IXDP_PAUSE_RX | IXDP_PAUSE_TX,
					  IXDP_PAUSE_TX, 0};

	(void)state;
	open_with(0, true);
	assert_pause(0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(ixdp_pause_set(rig.port, pauses[i]), 0);
		assert_pause(pauses[i]);
		assert_int_equal(ixdp_pause_set(rig.port, 4), -EINVAL);
		assert_non_null(strstr(ixdp_error(), "flow control 4: must be 0 to 3"));
		assert_pause(pauses[i]);
		inject_pause(0xFFFF);
		rig_run(&rig);
		assert_int_equal(is_paused(), pauses[i] & IXDP_PAUSE_RX);
		inject_pause(0);
		rig_run(&rig);
	}
	/* Of a stopped port: from its start on. */
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(ixdp_pause_set(rig.port, IXDP_PAUSE_RX), 0);
	assert_int_equal(softnic_peek(rig.nic, REG_MFLCN) & MFLCN_RFCE, 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_pause(IXDP_PAUSE_RX);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(unless_asked_for_a_pause_is_a_frame),
	    cmocka_unit_test(a_paused_port_says_so_and_waits),
	    cmocka_unit_test(what_waits_is_sent_after_the_pause),
	    cmocka_unit_test(a_paused_port_can_be_stopped),
	    cmocka_unit_test(a_full_packet_buffer_asks_for_a_pause),
	    cmocka_unit_test(as_long_as_it_is_full_it_asks_again),
	    cmocka_unit_test(without_it_frames_are_dropped_and_counted),
	    cmocka_unit_test(a_slow_receiver_loses_nothing),
	    cmocka_unit_test(without_flow_control_it_would),
	    cmocka_unit_test(it_can_be_changed_while_the_port_runs),
	};

	return cmocka_run_group_tests_name("pause", tests, rig_group_setup, NULL);
}
