/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that is looped back hears itself and nothing else, and needs no link. */
#include "rig.h"

#include "driver/regs.h"

static struct rig rig;

static struct ixdp_config looped(void) {
	struct ixdp_config cfg = rig_config(1, 1);

	cfg.loopback = true;
	return cfg;
}

/* Sends n frames, which must come back in order. */
static void send_and_receive(unsigned n, unsigned len) {
	struct ixdp_pkt pkts[64];
	uint64_t seq = 0;

	assert_int_equal(rig_make(&rig, pkts, n, len, 0), n);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, n), n);
	rig_run(&rig);
	assert_int_equal(rig_receive(&rig, 0, n, 32, &seq), n);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 8), 0);
}

static void what_is_sent_comes_back(void **state) {
	struct ixdp_config cfg = looped();
	struct ixdp_stats stats;

	(void)state;
	rig_open(&rig, ",fault=link-down", &cfg);
	for (unsigned round = 0; round < 50; round++) {
		rig_inject(&rig, 60); /* from the wire: not heard */
		send_and_receive(64, 60 + round);
	}
	assert_int_equal(rig.sent, 0);
	stats = rig_stats(&rig);
	assert_int_equal(stats.tx_packets, 50 * 64);
	assert_int_equal(stats.rx_packets, 50 * 64);
	assert_int_equal(stats.rx_bytes, stats.tx_bytes);
	assert_int_equal(stats.rx_dropped, 0);
	rig_close(&rig);
}

static void it_stays_so_and_ends_with_the_port(void **state) {
	struct ixdp_config cfg = looped();

	(void)state;
	rig_open(&rig, ",fault=link-down", &cfg);
	assert_int_equal(ixdp_stop(rig.port), 0);
	/* The reset has undone it: who comes next finds an ordinary NIC. */
	assert_int_equal(softnic_peek(rig.nic, REG_HLREG0) & HLREG0_LPBK, 0);
	assert_int_equal(softnic_peek(rig.nic, REG_AUTOC) & AUTOC_FLU, 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_true(softnic_peek(rig.nic, REG_HLREG0) & HLREG0_LPBK);
	/* A card's MAC needs a link to loop back, be it one without a peer. */
	assert_true(softnic_peek(rig.nic, REG_AUTOC) & AUTOC_FLU);
	send_and_receive(64, 60);
	rig_close(&rig);
	rig_open(&rig, "", NULL);
	assert_int_equal(softnic_peek(rig.nic, REG_HLREG0) & HLREG0_LPBK, 0);
	rig_close(&rig);
}

static void filters_hold_there_too(void **state) {
	struct ixdp_config cfg = looped();
	struct ixdp_pkt pkt;

	(void)state;
	cfg.promiscuous = false;
	rig_open(&rig, "", &cfg);
	assert_int_equal(rig_make(&rig, &pkt, 1, 60, 0), 1);
	assert_int_equal(ixdp_tx(rig.port, 0, &pkt, 1), 1);
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, &pkt, 1), 0);
	ixdp_mac_set(rig.port, (const uint8_t[]){2, 0, 0, 0, 0, 1}); /* where test frames go */
	send_and_receive(1, 60);
	rig_close(&rig);
}

static void jumbo_frames_come_back_whole(void **state) {
	struct ixdp_config cfg = looped();
	struct ixdp_pkt pkt, pkts[8];
	int got, at = 0;

	(void)state;
	cfg.mtu = 9000;
	rig_open(&rig, ",fault=link-down", &cfg);
	assert_int_equal(rig_make(&rig, &pkt, 1, 1500, 0), 1);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(ixdp_alloc(rig.pool, &pkts[i], 1), 1);
		for (pkts[i].len = 0; pkts[i].len < 1500; pkts[i].len++)
			pkts[i].data[pkts[i].len] = i == 0 && pkts[i].len < 6 ? 2 : at++ * 7;
		pkts[i].flags = i < 5 ? IXDP_PKT_CONTD : 0;
	}
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 6), 6);
	assert_int_equal(ixdp_tx(rig.port, 0, &pkt, 1), 1);
	rig_run(&rig);
	got = ixdp_rx(rig.port, 0, pkts, 8);
	assert_int_equal(got, 5 + 1);
	at = 0;
	for (int i = 0; i < 5; i++)
		for (unsigned k = i == 0 ? 6 : 0; k < pkts[i].len; k++)
			assert_int_equal(pkts[i].data[k], (uint8_t)(at++ * 7));
	assert_int_equal(at, 9000 - 6);
	assert_int_equal(rig_seq(&pkts[5]), 0);
	ixdp_free(rig.pool, pkts, got);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_sent_comes_back),
	    cmocka_unit_test(it_stays_so_and_ends_with_the_port),
	    cmocka_unit_test(filters_hold_there_too),
	    cmocka_unit_test(jumbo_frames_come_back_whole),
	};

	return cmocka_run_group_tests_name("loopback", tests, rig_group_setup, NULL);
}
