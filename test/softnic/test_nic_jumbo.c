/* SPDX-License-Identifier: BSD-3-Clause */
/* Jumbo frames through the software NIC, from its wire to memory and back. */
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED, KB = 2, BUFFER = KB * 1024 };

/* Opens the NIC with that wire, for frames of an MTU of 9,000. */
static void start(const char *options) {
	char name[128];
	struct nic_memory *mem;

	rig_open("");
	mem = rig.mem;
	softnic_close(rig.nic);
	snprintf(name, sizeof(name), "t,%s", options);
	if (softnic_open(&rig.nic, name) != 0) fail_msg("%s: %s", name, ixdp_error());
	softnic_dma_map(rig.nic, mem, sizeof(*mem), IOVA);
	softnic_bus_master(rig.nic, true);
	wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_JUMBOEN);
	wr(REG_MAXFRS, FIELD(MAXFRS_MFS, 9018));
	rx_start(0, KB, ADVANCED, false);
	rx_give(0, 0, RING - 1);
	tx_start(0);
}

/* Sends what came in the RX descriptors from `at` up to the head, out of the same buffers. */
static unsigned send_back(unsigned at, unsigned *tail) {
	unsigned head = rd(REG_RDH), first = *tail, frames = 0;
	size_t len = 0;

	for (; at != head; at = (at + 1) % RING, *tail = (*tail + 1) % RING) {
		bool eop = rx_status(0, at) & RXD_EOP;

		len += rx_len(0, at);
		rig.mem->tx[0][*tail] =
		    (struct desc){htole64(iova_of(rig.mem->rx_data[0][at])),
				  htole64(TXD_DEXT | TXD_DTYP_DATA | TXD_IFCS | rx_len(0, at) |
					  (eop ? TXD_EOP | TXD_RS : 0))};
		if (!eop) continue;
		rig.mem->tx[0][first].qw1 |= htole64((uint64_t)len << TXD_PAYLEN_LOW);
		first = (*tail + 1) % RING;
		len = 0;
		frames++;
	}
	ring_doorbell(REG_TDT, *tail);
	return frames;
}

static void a_generators_jumbo_frames_come_back_whole(void **state) {
	struct ixdp_wire_stats stats;
	unsigned at = 0, tail = 0, frames = 0;

	(void)state;
	start("peer=gen,size=9014,count=200");
	for (unsigned i = 0; i < 100 && frames < 200; i++) {
		softnic_advance_ns(1000000);
		step();
		frames += send_back(at, &tail);
		step();
		assert_int_equal(rd(REG_TDH), tail);
		at = rd(REG_RDH);
		rx_give(0, at, (at + RING - 1) % RING);
	}
	assert_int_equal(frames, 200);
	softnic_wire_stats(rig.nic, &stats);
	assert_int_equal(stats.from_port_packets, 200);
	assert_int_equal(stats.from_port_bytes, 200 * 9014);
	assert_int_equal(stats.lost + stats.corrupt + stats.foreign, 0);
	assert_true(stats.drained);
	assert_int_equal(rd(REG_ROC), 0);
	rig_close_clean();
}

static void what_is_sent_into_a_loop_returns(void **state) {
	uint8_t whole[9014];

	(void)state;
	start("peer=loop");
	make_frame(whole, sizeof(whole), 3);
	for (unsigned i = 0; i < 3; i++) {
		size_t part = i < 2 ? ROOM : sizeof(whole) - 2 * ROOM;

		memcpy(rig.mem->tx_data[0][i], whole + i * ROOM, part);
		tx_put(0, i, part, i ? 0 : sizeof(whole),
		       TXD_IFCS | (i == 2 ? TXD_EOP | TXD_RS : 0));
	}
	ring_doorbell(REG_TDT, 3);
	step();
	step();
	assert_int_equal(rd(REG_RDH), 5);
	for (size_t at = 0, i = 0; at < sizeof(whole); at += BUFFER, i++) {
		size_t part = sizeof(whole) - at < BUFFER ? sizeof(whole) - at : BUFFER;

		assert_int_equal(rx_len(0, i), part);
		assert_memory_equal(rig.mem->rx_data[0][i], whole + at, part);
	}
	rig_close_clean();
}

/* One byte more than MAXFRS: dropped and counted, and its neighbours are not hurt. */
static void a_frame_too_long_hurts_no_neighbour(void **state) {
	(void)state;
	rig_open("");
	wr(REG_HLREG0, rd(REG_HLREG0) | HLREG0_JUMBOEN);
	wr(REG_MAXFRS, FIELD(MAXFRS_MFS, 9018));
	rx_start(0, KB, ADVANCED, true);
	rx_give(0, 0, RING - 1);
	inject(9014, 1);
	inject(9015, 2);
	inject(9014, 3);
	step();
	assert_int_equal(rd(REG_RDH), 10);
	assert_int_equal(rd(REG_ROC), 1);
	assert_int_equal(rd(REG_GPRC), 2);
	assert_frame(rig.mem->rx_data[0][0], BUFFER, 1);
	assert_frame(rig.mem->rx_data[0][5], BUFFER, 3);
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_generators_jumbo_frames_come_back_whole),
	    cmocka_unit_test(what_is_sent_into_a_loop_returns),
	    cmocka_unit_test(a_frame_too_long_hurts_no_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
