/* SPDX-License-Identifier: BSD-3-Clause */
/* MAC loopback of the software NIC: what a card's self-test relies on. */
#include "nic_packets.h"
#include "nic_rig.h"

static void start(void) {
	rig_open("");
	tx_start(0);
	rx_start(0, 2, SRRCTL_DESCTYPE_ADVANCED, false);
	rx_give(0, 0, RING - 1);
	wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_LPBK);
}

static void send_seed(unsigned i, size_t len, unsigned seed) {
	make_frame(rig.mem->tx_data[0][i], len, seed);
	tx_frame(0, i, len);
	ring_doorbell(REG_TDT, i + 1);
	step();
	step();
}

static void what_is_sent_comes_back_and_nowhere_else(void **state) {
	(void)state;
	start();
	for (unsigned i = 0; i < 10; i++)
		send_seed(i, 1024, i);
	assert_int_equal(rig.sent, 0);
	assert_int_equal(rd(REG_RDH), 10);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(rx_len(0, i), 1024);
		assert_frame(rig.mem->rx_data[0][i], 1024, i);
		assert_true(tx_done(0, i));
	}
	assert_int_equal(rd(REG_GPTC), 10);
	assert_int_equal(rd(REG_GPRC), 10);
	/* Off again: out on the wire. */
	wr(REG_HLREG0, rd(REG_HLREG0) & ~(uint32_t)HLREG0_LPBK);
	send_seed(10, 60, 0);
	assert_int_equal(rig.sent, 1);
	assert_int_equal(rd(REG_RDH), 10);
	rig_close_clean();
}

/* How a stuck card is flushed, and tested without a cable. */
static void no_link_is_needed(void **state) {
	(void)state;
	start();
	softnic_fault(rig.nic, "link-down");
	send_seed(0, 60, 7);
	assert_true(tx_done(0, 0));
	assert_int_equal(rd(REG_RDH), 1);
	assert_frame(rig.mem->rx_data[0][0], 60, 7);
	rig_close_clean();
}

static void short_frames_come_back_padded(void **state) {
	static const uint8_t zeros[43];

	(void)state;
	start();
	send_seed(0, 17, 7);
	assert_int_equal(rx_len(0, 0), 60);
	assert_frame(rig.mem->rx_data[0][0], 17, 7);
	assert_memory_equal(rig.mem->rx_data[0][0] + 17, zeros, 43);
	rig_close_clean();
}

/* Addresses, sizes and checksums are looked at as with any other frame. */
static void filters_are_passed(void **state) {
	struct packet p = {.ip = 4, .protocol = UDP, .payload = 40};

	(void)state;
	start();
	make_packet(rig.mem->tx_data[0][0], &p);
	tx_frame(0, 0, p.len);
	ring_doorbell(REG_TDT, 1);
	step();
	step();
	assert_int_equal(rx_status(0, 0) & (1 << 5 | 1 << 6 | 1 << 30 | UINT64_C(1) << 31),
			 1 << 5 | 1 << 6);
	wr(REG_RXCTRL, 0);
	wr(REG_FCTRL, 0); /* to another address, and not promiscuous */
	wr(REG_RXCTRL, RXCTRL_RXEN);
	send_seed(1, 60, 1);
	send_seed(2, 1600, 1); /* too long */
	assert_int_equal(rd(REG_RDH), 1);
	assert_int_equal(rd(REG_TPR), 3);
	assert_int_equal(rd(REG_ROC), 1);
	rig_close_clean();
}

static void a_closed_receiver_loses_what_comes_back(void **state) {
	(void)state;
	start();
	wr(REG_RXCTRL, 0);
	send_seed(0, 60, 1);
	assert_true(tx_done(0, 0));
	assert_int_equal(rd(REG_TPR), 0);
	assert_int_equal(rd(REG_RDH), 0);
	rig_close_clean();
}

/* What comes from outside meanwhile waits, or is lost unnoticed. */
static void the_wire_is_not_heard(void **state) {
	struct nic_memory *mem;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		rig_open("");
		mem = rig.mem;
		softnic_close(rig.nic);
		assert_int_equal(softnic_open(&rig.nic, i ? "t,peer=gen,drop=on" : "t,peer=gen"),
				 0);
		softnic_dma_map(rig.nic, mem, sizeof(*mem), IOVA);
		softnic_bus_master(rig.nic, true);
		wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_LPBK);
		rx_start(0, 2, SRRCTL_DESCTYPE_ADVANCED, true);
		rx_give(0, 0, RING - 1);
		softnic_advance_ns(1000000);
		step();
		assert_int_equal(rd(REG_TPR), 0);
		assert_int_equal(rd(REG_RDH), 0);
		wr(REG_HLREG0, rd(REG_HLREG0) & ~(uint32_t)HLREG0_LPBK);
		step();
		assert_int_equal(rd(REG_RDH), RING - 1);
		rig_close_clean();
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_sent_comes_back_and_nowhere_else),
	    cmocka_unit_test(no_link_is_needed),
	    cmocka_unit_test(short_frames_come_back_padded),
	    cmocka_unit_test(filters_are_passed),
	    cmocka_unit_test(a_closed_receiver_loses_what_comes_back),
	    cmocka_unit_test(the_wire_is_not_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
