/* SPDX-License-Identifier: BSD-3-Clause */
/* Several queues on one port: none disturbs another, whatever the numbers. */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/port.h"
#include "driver/regs.h"

static struct rig rig;

/* ixy 30: rings indexed with the wrong stride, so that the second lay on the first. */
_Static_assert(sizeof(struct rx_ring) % 64 == 0, "an RX ring is whole cache lines");
_Static_assert(sizeof(struct tx_ring) % 64 == 0, "a TX ring is whole cache lines");

static unsigned by_sequence(const uint8_t *frame, size_t len, void *arg) {
	struct ixdp_frame_id id;
	const unsigned *n = arg;

	assert_int_equal(ixdp_frame_read(frame, len, &id), IXDP_FRAME_GOOD);
	return id.seq % *n;
}

/* Everything that arrives on queue q goes out on TX queue q mod tx; all of it, in order per queue.
 */
static void all_queues_at_once(unsigned rx, unsigned tx) {
	struct ixdp_config cfg = rig_config(rx, tx);
	unsigned rounds = 20, per_round = 256;
	struct ixdp_pkt pkts[64];
	uint64_t next[16];
	unsigned total = 0;

	for (unsigned q = 0; q < rx; q++)
		next[q] = q;
	rig_open(&rig, "", &cfg);
	softnic_steer(rig.nic, by_sequence, &rx);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < per_round; i++)
			rig_inject(&rig, 60);
		rig_run(&rig);
		for (unsigned q = 0; q < rx; q++) {
			int got;

			while ((got = ixdp_rx(rig.port, q, pkts, 64)) > 0) {
				for (int i = 0; i < got; i++, next[q] += rx)
					assert_int_equal(rig_seq(&pkts[i]), next[q]);
				total += got;
				if (tx > 0)
					assert_int_equal(ixdp_tx(rig.port, q % tx, pkts, got), got);
				else
					ixdp_free(rig.pool, pkts, got);
				rig_run(&rig);
			}
		}
	}
	assert_int_equal(total, rounds * per_round);
	assert_int_equal(rig_stats(&rig).rx_packets, total);
	if (tx > 0) assert_int_equal(rig.sent, total);
	rig_close(&rig);
}

static void many_queues_with_traffic_on_all(void **state) {
	(void)state;
	all_queues_at_once(4, 4);
	all_queues_at_once(16, 16);
	all_queues_at_once(1, 4);
	all_queues_at_once(4, 1);
	all_queues_at_once(1, 0);
}

/* ixy d89d68b: TX queues were counted, or sized, as RX queues are. */
static void queue_counts_and_sizes_are_their_own(void **state) {
	static const unsigned counts[][2] = {{1, 4},  {4, 1},	{0, 1},	 {1, 0},
					     {8, 33}, {16, 64}, {1, 65}, {1, 128}};

	(void)state;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		unsigned rx = counts[i][0], tx = counts[i][1];
		struct ixdp_config cfg = rig_config(rx, tx);
		struct ixdp_pkt pkt;

		cfg.tx_ring = 1024;
		rig_open(&rig, "", &cfg);
		for (unsigned q = 0; q < IXDP_MAX_TX_QUEUES; q++) {
			assert_int_equal(softnic_peek(rig.nic, REG_N(TDLEN, q)),
					 q < tx ? 1024 * 16 : 0);
			assert_int_equal(
			    !!(softnic_peek(rig.nic, REG_N(TXDCTL, q)) & TXDCTL_ENABLE), q < tx);
			if (q >= 64) continue; /* RX queues above are elsewhere */
			assert_int_equal(softnic_peek(rig.nic, REG_N(RDLEN, q)),
					 q < rx ? 512 * 16 : 0);
			assert_int_equal(
			    !!(softnic_peek(rig.nic, REG_N(RXDCTL, q)) & RXDCTL_ENABLE), q < rx);
		}
		assert_int_equal(ixdp_rx(rig.port, rx, &pkt, 1), -EINVAL);
		assert_int_equal(ixdp_tx(rig.port, tx, &pkt, 0), -EINVAL);
		/* Each TX queue sends, the last one too. */
		for (unsigned q = 0; q < tx; q++) {
			assert_int_equal(rig_make(&rig, &pkt, 1, 60, rig.sent), 1);
			assert_int_equal(ixdp_tx(rig.port, q, &pkt, 1), 1);
			rig_run(&rig);
			assert_int_equal(rig.sent, q + 1);
			assert_int_equal(rig.sent_seq[q], q);
			assert_int_equal(ixdp_tx_clean(rig.port, q), 1);
		}
		rig_close(&rig);
	}
}

/* Rings of all queues lie in memory without touching each other. */
static void rings_do_not_overlap(void **state) {
	struct ixdp_config cfg = rig_config(16, 128);

	(void)state;
	cfg.rx_ring = 128;
	rig_open(&rig, "", &cfg);
	struct {
		uintptr_t from, to;
	} range[144];

	for (unsigned i = 0; i < 144; i++) {
		struct desc *desc = i < 16 ? rig.port->rx[i].desc : rig.port->tx[i - 16].desc;
		uint32_t mask = i < 16 ? rig.port->rx[i].mask : rig.port->tx[i - 16].mask;

		range[i].from = (uintptr_t)desc;
		range[i].to = (uintptr_t)(desc + mask + 1);
		assert_int_equal(range[i].from % 128, 0);
		for (unsigned j = 0; j < i; j++)
			assert_true(range[i].from >= range[j].to || range[j].from >= range[i].to);
	}
	rig_close(&rig);
}

static unsigned alternate(const uint8_t *frame, size_t len, void *arg) {
	unsigned *n = arg;

	(void)frame, (void)len;
	return (*n)++ % 2;
}

/* DPDK 9941892b7a: a queue that nobody polls stopped the others. With DROP_EN only it loses frames.
 */
static void an_idle_queue_does_not_stop_the_others(void **state) {
	struct ixdp_config cfg = rig_config(2, 0);
	struct ixdp_pkt pkts[64];
	unsigned n = 0, total = 0;

	(void)state;
	rig_open(&rig, "", &cfg);
	softnic_steer(rig.nic, alternate, &n);
	for (unsigned round = 0; round < 100; round++) {
		int got;

		for (unsigned i = 0; i < 64; i++)
			rig_inject(&rig, 60);
		rig_run(&rig);
		while ((got = ixdp_rx(rig.port, 0, pkts, 64)) > 0) {
			ixdp_free(rig.pool, pkts, got);
			total += got;
		}
	}
	assert_int_equal(total, 3200);
	assert_int_equal(rig_stats(&rig).rx_no_desc, 3200 - 511);
	rig_close(&rig);
}

/* Linux 8d7179b1e2d6, DPDK 96c0450dff: queues above 63 do not send in MTQC's default mode. */
static void all_queues_send_whole_rings(void **state) {
	static const unsigned queues[] = {0, 31, 32, 63, 64, 95, 127};
	struct ixdp_config cfg = rig_config(1, 128);
	struct ixdp_pkt pkts[64];

	(void)state;
	cfg.tx_ring = 64;
	rig_open(&rig, "", &cfg);
	assert_int_equal(softnic_peek(rig.nic, REG_RTTDCS) & RTTDCS_ARBDIS, 0);
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
			assert_int_equal(rig_make(&rig, pkts, 63, 60, rig.sent), 63);
			assert_int_equal(ixdp_tx(rig.port, queues[i], pkts, 63), 63);
			rig_run(&rig);
			assert_int_equal(ixdp_tx_clean(rig.port, queues[i]), 63);
		}
	}
	assert_int_equal(rig.sent, 10 * 63 * 7);
	for (unsigned i = 0; i < rig.sent; i++)
		assert_int_equal(rig.sent_seq[i], i);
	assert_int_equal(rig_stats(&rig).tx_packets, rig.sent);
	rig_close(&rig);
}

/* With 64 queues the NIC is left in the mode that it was made for. */
static void up_to_64_queues_need_no_special_mode(void **state) {
	struct ixdp_config cfg = rig_config(1, 64);

	(void)state;
	rig_open(&rig, "", &cfg);
	assert_int_equal(softnic_peek(rig.nic, REG_MTQC), 0);
	rig_close(&rig);
	cfg.tx_queues = 65;
	rig_open(&rig, "", &cfg);
	assert_int_equal(softnic_peek(rig.nic, REG_MTQC), MTQC_RT_ENA | FIELD(MTQC_NUM_TC_OR_Q, 2));
	rig_close(&rig);
}

static void too_many_are_refused_with_both_numbers(void **state) {
	struct ixdp_config cfg = rig_config(1, 129);

	(void)state;
	assert_int_equal(rig_try_open(&rig, "", &cfg, 64), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "TX queues 129: must be 0 to 128"));
	cfg = rig_config(17, 1);
	assert_int_equal(rig_try_open(&rig, "", &cfg, 64), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "RX queues 17: must be 0 to 16"));
}

static const uint32_t rx_queues[] = {16, 31, 32, 63, 64, 65, 127};

static uint32_t rxdctl(unsigned q) {
	return q < 64 ? REG_N(RXDCTL, q) : REG_RXDCTL_HIGH + REG_RXDCTL_STRIDE * (q - 64);
}

/* Section 5.2.5.3.2: first the queues, then the bus, then the reset. */
static void all_are_off_by_then(struct softnic *nic, bool write, uint32_t reg, uint32_t value,
				void *arg) {
	unsigned *times = arg;

	if (!write || reg != REG_CTRL || value & CTRL_RST) return;
	assert_true(value & CTRL_MASTER_DISABLE);
	++*times;
	for (unsigned q = 0; q < 128; q++) {
		if (softnic_peek(nic, rxdctl(q)) & RXDCTL_ENABLE) fail_msg("RX queue %u is on", q);
		if (softnic_peek(nic, REG_N(TXDCTL, q)) & TXDCTL_ENABLE)
			fail_msg("TX queue %u is on", q);
	}
}

/* DPDK 1554106b22 and its kin: shifts by a queue's number; and queues that an earlier user left. */
static void queues_of_others_are_switched_off(void **state) {
	struct ixdp_config cfg = rig_config(1, 128);
	unsigned times = 0;
	struct softnic_hooks hooks = {.access = all_are_off_by_then, .arg = &times};

	(void)state;
	rig_open(&rig, ",strict=off", &cfg);
	for (unsigned i = 0; i < sizeof(rx_queues) / sizeof(rx_queues[0]); i++) {
		softnic_write32(rig.nic, rxdctl(rx_queues[i]), RXDCTL_ENABLE);
		assert_true(softnic_read32(rig.nic, rxdctl(rx_queues[i])) & RXDCTL_ENABLE);
	}
	softnic_set_hooks(rig.nic, &hooks);
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(times, 1);
	rig_close_dirty(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(many_queues_with_traffic_on_all),
	    cmocka_unit_test(queue_counts_and_sizes_are_their_own),
	    cmocka_unit_test(rings_do_not_overlap),
	    cmocka_unit_test(an_idle_queue_does_not_stop_the_others),
	    cmocka_unit_test(all_queues_send_whole_rings),
	    cmocka_unit_test(up_to_64_queues_need_no_special_mode),
	    cmocka_unit_test(too_many_are_refused_with_both_numbers),
	    cmocka_unit_test(queues_of_others_are_switched_off),
	};

	return cmocka_run_group_tests_name("queues", tests, rig_group_setup, NULL);
}
