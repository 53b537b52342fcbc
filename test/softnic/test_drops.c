/* SPDX-License-Identifier: BSD-3-Clause */
/* Every frame that is lost has one reason, and a queue that nobody polls is named. */
#include "stats_rig.h"

static void make_damaged(uint8_t *frame, const uint8_t *mac) {
	memset(frame, 0x55, 1600);
	memcpy(frame, mac, 6);
}

/* More than the packet buffer holds; what is in it is then received without loss. */
static unsigned overflow(const uint8_t *frame, unsigned *delivered) {
	unsigned n = 1;

	while (softnic_inject(rig.nic, frame, 1500))
		n++;
	while (softnic_step(rig.nic, 32))
		receive(64, delivered);
	return n;
}

/* One frame more than there are descriptors. */
static unsigned fill_ring(const uint8_t *frame, unsigned *delivered) {
	unsigned n = 0;

	for (; rig_stats(&rig).rx_no_desc == 0; n++) {
		assert_true(n < 64 && softnic_inject(rig.nic, frame, 60));
		rig_run(&rig);
	}
	receive(64, delivered);
	return n;
}

static void every_loss_has_one_reason(void **state) {
	static const char *const reasons[] = {
	    "rx_missed", "rx_no_desc", "rx_crc",      "rx_undersize", "rx_fragments", "rx_oversize",
	    "rx_jabber", "rx_length",  "rx_filtered", "rx_len_zero",  "rx_errors"};
	struct ixdp_config cfg = rig_config(1, 0);
	unsigned injected = 0, delivered = 0;
	uint8_t frame[1600], mac[6];
	struct ixdp_stats stats;

	(void)state;
	cfg.promiscuous = false;
	cfg.rx_ring = 64;
	start("", &cfg);
	ixdp_mac_get(rig.port, mac);
	make_damaged(frame, mac);

	softnic_inject_bad_crc(rig.nic, frame, 60);
	softnic_inject(rig.nic, frame, 40);
	softnic_inject_bad_crc(rig.nic, frame, 40);
	softnic_inject(rig.nic, frame, 1600);
	softnic_inject_bad_crc(rig.nic, frame, 1600);
	frame[5] ^= 0xFF;
	softnic_inject(rig.nic, frame, 60); /* somebody else's */
	frame[5] ^= 0xFF;
	injected += 6;
	rig_run(&rig);
	receive(64, &delivered);
	assert_int_equal(delivered, 0);

	/* The software NIC does not compare the length field. */
	softnic_poke(rig.nic, REG_RLEC, 1);
	softnic_poke(rig.nic, REG_TPR, softnic_peek(rig.nic, REG_TPR) + 1);
	injected++;

	softnic_fault(rig.nic, "len-zero:1");
	softnic_inject(rig.nic, frame, 60);
	rig_run(&rig);
	softnic_fault(rig.nic, "none");
	receive(64, &delivered);
	softnic_inject(rig.nic, frame, 60);
	rig_run(&rig);
	const struct rx_ring *ring = &rig.port->rx[0];
	ring->desc[ring->next & ring->mask].qw1 |= htole64(RXD_ERR_LE);
	receive(64, &delivered);
	injected += 2;
	assert_int_equal(delivered, 0);

	injected += fill_ring(frame, &delivered);
	injected += overflow(frame, &delivered);

	stats = rig_stats(&rig);
	for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (value(&stats, reasons[i]) != 1)
			fail_msg("%s: %u", reasons[i], (unsigned)value(&stats, reasons[i]));
	assert_int_equal(stats.rx_dropped, 11);
	assert_int_equal(stats.rx_packets, delivered);
	assert_int_equal(injected, delivered + stats.rx_dropped);
	rig_close(&rig);
}

static unsigned to_queue_1(const uint8_t *frame, size_t len, void *arg) {
	(void)frame, (void)len, (void)arg;
	return 1;
}

/* n frames for queue 1, which has 64 descriptors. */
static void to_queue(unsigned n) {
	for (unsigned i = 0; i < n; i++) {
		rig_inject(&rig, 60);
		if (i % 32 == 31) rig_run(&rig);
	}
	rig_run(&rig);
}

static void two_queues(const char *options) {
	struct ixdp_config cfg = rig_config(2, 1);

	cfg.rx_ring = 64;
	start(options, &cfg);
	softnic_steer(rig.nic, to_queue_1, NULL);
}

static void a_queue_that_nobody_polls_is_named_once(void **state) {
	struct ixdp_rx_queue_stats queue;

	(void)state;
	two_queues("");
	to_queue(100);
	rig_stats(&rig);
	assert_int_equal(n_lines, 0); /* too early to say */
	softnic_advance_ns(1100 * 1000 * 1000);
	for (unsigned i = 0; i < 3; i++) {
		to_queue(10);
		rig_stats(&rig);
		softnic_advance_ns(1100 * 1000 * 1000);
	}
	assert_int_equal(n_lines, 1);
	assert_non_null(strstr(lines[0], "soft:rig: nobody polls RX queue 1"));
	assert_non_null(strstr(lines[0], " 47 frames were dropped"));
	assert_int_equal(ixdp_rx_queue_stats_get(rig.port, 1, &queue), 0);
	assert_int_equal(queue.no_desc, 130 - 63);
	assert_int_equal(ixdp_rx_queue_stats_get(rig.port, 0, &queue), 0);
	assert_int_equal(queue.no_desc, 0);
	assert_int_equal(rig_stats(&rig).rx_no_desc, 130 - 63);
	assert_int_equal(ixdp_rx_queue_stats_get(rig.port, 2, &queue), -EINVAL);
	rig_close(&rig);
}

static void slow_idle_and_hung_queues_are_not_accused(void **state) {
	uint64_t seq;

	(void)state;
	/* Slow: loses most of what comes, but takes some. */
	two_queues("");
	for (unsigned i = 0; i < 10; i++) {
		struct ixdp_pkt pkts[8];

		to_queue(100);
		rig_stats(&rig);
		softnic_advance_ns(900 * 1000 * 1000);
		ixdp_free(rig.pool, pkts, ixdp_rx(rig.port, 1, pkts, 8));
	}
	assert_true(rig_stats(&rig).rx_no_desc > 0);
	rig_close(&rig);
	assert_int_equal(n_lines, 0);

	/* Idle: nobody polls it, and nothing is lost. */
	two_queues("");
	to_queue(63);
	for (unsigned i = 0; i < 3; i++) {
		rig_stats(&rig);
		softnic_advance_ns(2000 * 1000 * 1000);
	}
	rig_close(&rig);
	assert_int_equal(n_lines, 0);

	/* Hung: polled all the time, but the NIC fills nothing. */
	two_queues(",fault=rx-stop");
	for (unsigned i = 0; i < 3; i++) {
		to_queue(10);
		assert_int_equal(rig_receive(&rig, 1, 64, 8, &seq), 0);
		rig_stats(&rig);
		softnic_advance_ns(2000 * 1000 * 1000);
	}
	assert_true(rig_stats(&rig).rx_no_desc > 0);
	rig_close(&rig);
	assert_int_equal(n_lines, 0);
}

/* PAUSE frames are the MAC's own, whichever way they go. */
static void pause_frames_are_counted_apart(void **state) {
	static const uint8_t pause[60] = {0x01, 0x80, 0xC2, 0,	  0,	1, 2, 0,    0,
					  0,	0,    2,    0x88, 0x08, 0, 1, 0xFF, 0xFF};
	struct ixdp_stats stats;

	(void)state;
	start("", NULL);
	softnic_poke(rig.nic, REG_GPTC, 10);
	softnic_poke(rig.nic, REG_GOTCL, 10 * 64);
	softnic_poke(rig.nic, REG_MPTC, 5);
	softnic_poke(rig.nic, REG_PTC, 10);
	softnic_poke(rig.nic, REG_LXOFFTXC, 2);
	softnic_poke(rig.nic, REG_LXONTXC, 1);
	stats = rig_stats(&rig);
	assert_int_equal(stats.tx_packets, 7);
	assert_int_equal(stats.tx_bytes, 7 * 60);
	assert_int_equal(stats.tx_multicast, 2);
	assert_int_equal(stats.tx_64, 7);
	assert_int_equal(stats.tx_xoff, 2);
	assert_int_equal(stats.tx_xon, 1);
	assert_int_equal(stats.tx_paused, 0);

	softnic_write32(rig.nic, REG_MFLCN, MFLCN_RFCE);
	softnic_inject(rig.nic, pause, sizeof(pause));
	stats = rig_stats(&rig);
	assert_int_equal(stats.rx_xoff, 1);
	assert_int_equal(stats.tx_paused, 1);
	assert_int_equal(stats.rx_dropped, 0);
	softnic_advance_ns(10 * 1000 * 1000);
	assert_int_equal(rig_stats(&rig).tx_paused, 0);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_loss_has_one_reason),
	    cmocka_unit_test(a_queue_that_nobody_polls_is_named_once),
	    cmocka_unit_test(slow_idle_and_hung_queues_are_not_accused),
	    cmocka_unit_test(pause_frames_are_counted_apart),
	};

	return cmocka_run_group_tests_name("drops", tests, setup, NULL);
}
