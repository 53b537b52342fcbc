/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control by PAUSE frames on the software NIC, in both directions. */
#include "nic_packets.h"
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED, HIGH = 64 * 1024, LOW = 16 * 1024 };

static void make_pause(uint8_t frame[60], unsigned quanta) {
	memset(frame, 0, 60);
	memcpy(frame, "\x01\x80\xC2\x00\x00\x01\x02\x66\x77\x88\x99\xaa\x88\x08\x00\x01", 16);
	put16(frame + 16, quanta);
}

static void inject_pause(unsigned quanta) {
	uint8_t frame[60];

	make_pause(frame, quanta);
	softnic_inject(rig.nic, frame, 60);
}

static void send_seed(unsigned i) {
	make_frame(rig.mem->tx_data[0][i], 60, i);
	tx_frame(0, i, 60);
	ring_doorbell(REG_TDT, i + 1);
}

/* Lets model time pass without work. */
static void wait_ns(uint64_t ns) { softnic_advance_ns(ns); }

static void start_paused(bool rfce) {
	rig_open("");
	tx_start(0);
	rx_start(0, 2, ADVANCED, true);
	rx_give(0, 0, RING - 1);
	if (rfce) wr(REG_MFLCN, MFLCN_RFCE);
}

/* 10,000 quanta of 512 bits are 512 us. */
static void xoff_holds_frames_for_its_time(void **state) {
	struct ixdp_wire_stats stats;

	(void)state;
	start_paused(true);
	assert_int_equal(rd(REG_TFCS), 0);
	inject_pause(10000);
	send_seed(0);
	assert_int_equal(rd(REG_TFCS), TFCS_TC_XOFF);
	wait_ns(510000);
	step();
	assert_int_equal(rig.sent, 0);
	assert_int_equal(rd(REG_TDH), 0);
	assert_false(tx_done(0, 0));
	softnic_wire_stats(rig.nic, &stats);
	assert_false(stats.drained);
	wait_ns(1000);
	step();
	assert_int_equal(rig.sent, 1);
	assert_true(tx_done(0, 0));
	assert_int_equal(rd(REG_TFCS), 0);
	/* It is the MAC's: seen by no queue, and no good packet. */
	assert_int_equal(rd(REG_LXOFFRXCNT), 1);
	assert_int_equal(rd(REG_LXONRXCNT), 0);
	assert_int_equal(rd(REG_TPR), 1);
	assert_int_equal(rd(REG_GPRC), 0);
	assert_int_equal(rd(REG_RDH), 0);
	rig_close_clean();
}

static void xon_ends_it(void **state) {
	(void)state;
	start_paused(true);
	inject_pause(0xFFFF);
	send_seed(0);
	step();
	assert_int_equal(rig.sent, 0);
	inject_pause(0);
	assert_int_equal(rd(REG_TFCS), 0);
	step();
	assert_int_equal(rig.sent, 1);
	assert_int_equal(rd(REG_LXOFFRXCNT), 1);
	assert_int_equal(rd(REG_LXONRXCNT), 1);
	rig_close_clean();
}

/* The last one counts, from when it came. */
static void another_xoff_begins_anew(void **state) {
	(void)state;
	start_paused(true);
	inject_pause(1000);
	wait_ns(50000);
	inject_pause(1000);
	send_seed(0);
	wait_ns(50000);
	step();
	assert_int_equal(rig.sent, 0);
	wait_ns(1200);
	step();
	assert_int_equal(rig.sent, 1);
	rig_close_clean();
}

static void without_rfce_a_pause_is_a_frame(void **state) {
	(void)state;
	start_paused(false);
	inject_pause(0xFFFF);
	send_seed(0);
	step();
	assert_int_equal(rig.sent, 1);
	assert_int_equal(rd(REG_RDH), 1);
	assert_int_equal(rd(REG_MPRC), 1);
	assert_int_equal(rd(REG_LXOFFRXCNT), 0);
	rig_close_clean();
}

/* Another opcode, address or type, or a wrong FCS: none of them stops the port. */
static void what_is_no_pause_does_not_pause(void **state) {
	static const struct {
		unsigned at;
		uint8_t by;
	} cases[] = {{15, 2}, {5, 3}, {13, 1}, {0, 0}};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		uint8_t frame[60];

		start_paused(true);
		make_pause(frame, 0xFFFF);
		frame[cases[i].at] ^= cases[i].by;
		if (cases[i].by)
			softnic_inject(rig.nic, frame, 60);
		else
			softnic_inject_bad_crc(rig.nic, frame, 60);
		send_seed(0);
		step();
		assert_int_equal(rig.sent, 1);
		assert_int_equal(rd(REG_LXOFFRXCNT), 0);
		rig_close_clean();
	}
}

static void reset_ends_a_pause(void **state) {
	(void)state;
	start_paused(true);
	inject_pause(0xFFFF);
	wr(REG_CTRL, CTRL_RST);
	assert_int_equal(rd(REG_TFCS), 0);
	tx_start(0);
	send_seed(0);
	step();
	assert_int_equal(rig.sent, 1);
	rig_close_clean();
}

/* --- asking for it -----------------------------------------------------------------------------
 */

/* A port whose packet buffer fills, since it has no descriptors and may not drop. */
static void start_asking(uint32_t xone) {
	rig_open(",mac=02:04:06:08:0a:0c");
	wr(REG_FCRTH, FCRTH_FCEN | FIELD(FCRTH_RTH, HIGH >> 5));
	wr(REG_FCRTL, xone | FIELD(FCRTL_RTL, LOW >> 5));
	wr(REG_FCTTV, FIELD(FCTTV_TTV0, 2000) | FIELD(FCTTV_TTV1, 0xFFFF));
	wr(REG_FCRTV, FIELD(FCRTV_REFRESH, 1000));
	wr(REG_FCCFG, FIELD(FCCFG_TFCE, 1));
	rx_start(0, 2, ADVANCED, false);
}

static void fill(unsigned bytes) {
	for (unsigned at = 0; at < bytes; at += 1024)
		inject(1024, 0);
}

static void drain(void) {
	unsigned head = rd(REG_RDH);

	rx_give(0, head, (head + RING - 1) % RING);
	step();
}

static void assert_pause_sent(unsigned sent, unsigned quanta) {
	uint8_t expected[60];

	assert_int_equal(rig.sent, sent);
	make_pause(expected, quanta);
	memcpy(expected + 6, "\x02\x04\x06\x08\x0a\x0c", 6);
	assert_int_equal(rig.len, 60);
	assert_memory_equal(rig.frame, expected, 60);
}

static void xoff_leaves_above_high_and_xon_below_low(void **state) {
	(void)state;
	start_asking(FCRTL_XONE);
	fill(HIGH * 3 / 4);
	step();
	assert_int_equal(rig.sent, 0);
	fill(HIGH / 2);
	step();
	assert_pause_sent(1, 2000);
	assert_int_equal(rd(REG_LXOFFTXC), 1);
	assert_int_equal(rd(REG_LXONTXC), 0);
	step(); /* once is enough */
	assert_int_equal(rig.sent, 1);
	while (rd(REG_RDH) < 20) /* some room, but more than the lower threshold is left */
		drain();
	assert_int_equal(rig.sent, 1);
	drain();
	assert_pause_sent(2, 0);
	assert_int_equal(rd(REG_LXONTXC), 1);
	step();
	assert_int_equal(rig.sent, 2);
	/* They are counted as frames that left, by no queue. */
	assert_int_equal(rd(REG_GPTC), 2);
	assert_int_equal(rd(REG_MPTC), 2);
	assert_int_equal(rd(REG_PTC), 2);
	assert_int_equal(rd(REG_GOTCL), 128);
	assert_int_equal(rd(REG_QPTC), 0);
	rig_close_clean();
}

/* FCTTV less FCRTV: 1,000 quanta, 51.2 us. Before the other end may go on, it is asked again. */
static void xoff_is_refreshed_in_time(void **state) {
	(void)state;
	start_asking(FCRTL_XONE);
	fill(HIGH * 3 / 2);
	step();
	assert_int_equal(rig.sent, 1);
	for (unsigned round = 2; round < 5; round++) {
		wait_ns(49000);
		step();
		assert_int_equal(rig.sent, round - 1);
		wait_ns(1200);
		step();
		assert_pause_sent(round, 2000);
	}
	assert_int_equal(rd(REG_LXOFFTXC), 4);
	rig_close_clean();
}

static void without_xone_no_xon_leaves(void **state) {
	(void)state;
	start_asking(0);
	fill(HIGH * 5 / 4);
	step();
	assert_int_equal(rig.sent, 1);
	drain();
	drain();
	assert_int_equal(rig.sent, 1);
	/* It may fill again, beyond what the ring still has room for. */
	fill(HIGH * 5 / 2);
	step();
	assert_int_equal(rig.sent, 2);
	rig_close_clean();
}

static void nothing_is_asked_unless_all_is_set(void **state) {
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		start_asking(FCRTL_XONE);
		if (i == 0)
			wr(REG_FCRTH, FIELD(FCRTH_RTH, HIGH >> 5));
		else if (i == 1)
			wr(REG_FCCFG, 0);
		else if (i == 2)
			wr(REG_FCCFG, FIELD(FCCFG_TFCE, 2)); /* by priority: not modelled */
		else if (i == 3)
			wr(REG_FCTTV, 0);
		fill(HIGH * 5 / 4);
		if (i == 4) softnic_fault(rig.nic, "link-down");
		step();
		assert_int_equal(rig.sent, 0);
		rig_close_clean();
	}
}

/* A PAUSE frame passes frames that are held, and a wire that is full holds it, too. */
static void asking_is_not_held_up_by_a_pause(void **state) {
	(void)state;
	start_asking(FCRTL_XONE);
	wr(REG_MFLCN, MFLCN_RFCE);
	tx_start(0);
	inject_pause(0xFFFF);
	send_seed(0);
	rig.hold = true;
	fill(HIGH * 5 / 4);
	step();
	assert_int_equal(rd(REG_LXOFFTXC), 0);
	rig.hold = false;
	step();
	assert_pause_sent(1, 2000);
	assert_int_equal(rd(REG_TDH), 0);
	rig_close_clean();
}

/* Over a cable, with flow control at both ends nothing is lost, however slow the receiver. */
static void a_slow_receiver_loses_nothing(void **state) {
	struct softnic *peer;
	struct nic_memory *mem;
	unsigned tail = 0, received = 0;

	(void)state;
	rig_open("");
	mem = rig.mem;
	softnic_close(rig.nic);
	assert_int_equal(softnic_open(&rig.nic, "t,peer=u"), 0);
	assert_int_equal(softnic_open(&peer, "u"), 0);
	softnic_dma_map(rig.nic, mem, sizeof(*mem), IOVA);
	softnic_bus_master(rig.nic, true);
	softnic_dma_map(peer, mem, sizeof(*mem), IOVA);
	softnic_bus_master(peer, true);
	/* t sends and obeys; u receives and asks. */
	tx_start(0);
	wr(REG_MFLCN, MFLCN_RFCE);
	rx_on();
	for (unsigned i = 0; i < RING; i++) {
		make_frame(mem->tx_data[0][i], 1024, i);
		tx_frame(0, i, 1024);
	}
	struct softnic *sender = rig.nic;
	rig.nic = peer;
	wr(REG_FCRTH, FCRTH_FCEN | FIELD(FCRTH_RTH, (256 * 1024) >> 5));
	wr(REG_FCRTL, FCRTL_XONE | FIELD(FCRTL_RTL, LOW >> 5));
	wr(REG_FCTTV, 0xFFFF);
	wr(REG_FCCFG, FIELD(FCCFG_TFCE, 1));
	rx_start(0, 2, ADVANCED, false);
	rx_give(0, 0, RING - 1);
	for (unsigned i = 0; i < 8000; i++) {
		unsigned head;

		rig.nic = sender;
		tail = (rd(REG_TDH) + RING - 1) % RING;
		ring_doorbell(REG_TDT, tail);
		step();
		rig.nic = peer;
		step();
		head = rd(REG_RDH);
		if (i % 64 == 0) /* at most 63 frames in 64 steps */
			rx_give(0, head, (head + RING - 1) % RING);
	}
	received = rd(REG_QPRC);
	assert_true(rd(REG_LXOFFTXC) > 1 && rd(REG_LXONTXC) > 1);
	assert_int_equal(rd(REG_MPC), 0);
	assert_true(received > 5000);
	assert_true(rd(REG_GPRC) >= received);
	rig.nic = sender;
	assert_true(rd(REG_LXOFFRXCNT) > 1 && rd(REG_LXONRXCNT) > 1);
	softnic_close(peer);
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(xoff_holds_frames_for_its_time),
	    cmocka_unit_test(xon_ends_it),
	    cmocka_unit_test(another_xoff_begins_anew),
	    cmocka_unit_test(without_rfce_a_pause_is_a_frame),
	    cmocka_unit_test(what_is_no_pause_does_not_pause),
	    cmocka_unit_test(reset_ends_a_pause),
	    cmocka_unit_test(xoff_leaves_above_high_and_xon_below_low),
	    cmocka_unit_test(xoff_is_refreshed_in_time),
	    cmocka_unit_test(without_xone_no_xon_leaves),
	    cmocka_unit_test(nothing_is_asked_unless_all_is_set),
	    cmocka_unit_test(asking_is_not_held_up_by_a_pause),
	    cmocka_unit_test(a_slow_receiver_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
