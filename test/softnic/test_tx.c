/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's transmit path on a stepped software NIC, as it went wrong elsewhere. */
#include "rig.h"

#include <errno.h>
#include <string.h>

#include "driver/regs.h"

enum { RING = 512 };

static struct rig rig;

/* Sends all of n frames in batches, with the NIC working in between. */
static void send_all(unsigned queue, unsigned n, unsigned batch, uint64_t *seq) {
	struct ixdp_pkt pkts[256];

	while (n > 0) {
		unsigned make = rig_make(&rig, pkts, n < batch ? n : batch, 60, *seq);
		unsigned done = 0;

		assert_true(make > 0);
		while (done < make) {
			int sent = ixdp_tx(rig.port, queue, &pkts[done], make - done);

			assert_true(sent >= 0);
			done += sent;
			softnic_step(rig.nic, 256);
		}
		*seq += make;
		n -= make;
	}
}

static void assert_sent_in_order(uint64_t n) {
	assert_int_equal(rig.sent, n);
	for (uint64_t i = 0; i < n && i < RIG_MAX_SENT; i++)
		assert_int_equal(rig.sent_seq[i], i);
}

/* ixy.rs 10: what did not fit into the ring was lost. It stays the caller's. */
static void full_ring_takes_what_fits_and_no_more(void **state) {
	unsigned buffers, total = 0;
	struct ixdp_pkt pkts[32];
	uint64_t seq = 0;
	int sent;

	(void)state;
	rig_open(&rig, ",fault=tx-stop", NULL);
	buffers = rig_available(&rig);
	for (unsigned i = 0; i < RING + 32; i += 32) {
		assert_int_equal(rig_make(&rig, pkts, 32, 60, seq), 32);
		sent = ixdp_tx(rig.port, 0, pkts, 32);
		assert_true(sent >= 0);
		total += sent;
		seq += sent;
		ixdp_free(rig.pool, &pkts[sent], 32 - sent);
		assert_int_equal(rig_available(&rig) + total, buffers);
		softnic_step(rig.nic, 64);
	}
	assert_int_equal(total, RING - 1);
	assert_int_equal(rig.sent, 0);
	assert_int_equal(rig_stats(&rig).tx_taken, RING - 1);
	assert_int_equal(rig_stats(&rig).tx_packets, 0);

	softnic_fault(rig.nic, "none");
	rig_run(&rig);
	assert_sent_in_order(RING - 1);
	/* Room again, without anything else happening. */
	send_all(0, 100, 32, &seq);
	rig_run(&rig);
	assert_sent_in_order(RING - 1 + 100);
	rig_close(&rig);
}

/* bf280c0387eb: DD stays set after cleaning, and the next cleaning counted it again. */
static void cleaning_twice_frees_once(void **state) {
	unsigned buffers;
	uint64_t seq = 0;

	(void)state;
	rig_open(&rig, "", NULL);
	buffers = rig_available(&rig);
	/* 40 in a ring of 512: again and again across its end, at every alignment. */
	for (unsigned round = 0; round < 100; round++) {
		struct ixdp_pkt pkts[40];

		assert_int_equal(rig_make(&rig, pkts, 40, 60, seq), 40);
		assert_int_equal(ixdp_tx(rig.port, 0, pkts, 40), 40);
		assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
		rig_run(&rig);
		assert_int_equal(ixdp_tx_clean(rig.port, 0), 40);
		assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
		assert_int_equal(rig_available(&rig), buffers);
		seq += 40;
	}
	assert_sent_in_order(4000);
	rig_close(&rig);
}

/*
 * The head has moved, but the report is under way: were its descriptor used again, the report of
 * the last lap would be taken for the next one's, and a packet given back before it is sent.
 */
static void a_report_that_is_late_is_waited_for(void **state) {
	uint64_t seq = 0;

	(void)state;
	rig_open(&rig, ",fault=dd-late:1000", NULL);
	send_all(0, 64, 32, &seq);
	assert_int_equal(rig.sent, 64);
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 31);
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
	softnic_fault(rig.nic, "none");
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 33);
	rig_close(&rig);
}

/* An idle ring keeps the last few buffers, fewer than a chunk, until it is cleaned. */
static void idle_ring_holds_less_than_a_chunk(void **state) {
	unsigned buffers;
	uint64_t seq = 0;
	struct ixdp_pkt pkt;

	(void)state;
	rig_open(&rig, "", NULL);
	buffers = rig_available(&rig);
	send_all(0, 32 * 3 + 31, 32, &seq);
	rig_run(&rig);
	/* Sending nothing still takes back what is done. */
	assert_int_equal(ixdp_tx(rig.port, 0, &pkt, 0), 0);
	assert_int_equal(rig_available(&rig), buffers - 31);
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 31);
	assert_int_equal(rig_available(&rig), buffers);
	rig_close(&rig);
}

/* DPDK 6507e67af8: closing a ring did not end. Every size, filled to just before its end, and over.
 */
static void every_ring_size_wraps_and_closes_with_packets_pending(void **state) {
	struct ixdp_config cfg;

	(void)state;
	ixdp_config_init(&cfg);
	for (unsigned size = IXDP_MIN_RING; size <= IXDP_MAX_RING; size *= 2) {
		uint64_t seq = 0;
		struct ixdp_pkt pkts[64];

		cfg.tx_ring = size;
		rig_open(&rig, "", &cfg);
		assert_int_equal(softnic_peek(rig.nic, REG_TDLEN), size * 16);
		send_all(0, size - 3, 32, &seq);
		send_all(0, 2 * size + 5, 7, &seq);
		rig_run(&rig);
		assert_sent_in_order(seq);
		softnic_fault(rig.nic, "tx-stop");
		assert_int_equal(rig_make(&rig, pkts, 50, 60, seq), 50);
		assert_int_equal(ixdp_tx(rig.port, 0, pkts, 50), 50);
		rig_close(&rig); /* finds all buffers in the pool */
	}
}

static void ring_sizes_that_cannot_be_are_refused(void **state) {
	static const unsigned wrong[] = {0, 1, 32, 63, 72, 100, 513, 4095, 8192, 65536};
	struct ixdp_config cfg;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		ixdp_config_init(&cfg);
		cfg.tx_ring = wrong[i];
		assert_int_equal(rig_try_open(&rig, "", &cfg, 4096), -EINVAL);
		assert_non_null(strstr(ixdp_error(), "TX ring"));
		assert_non_null(strstr(ixdp_error(), "64 to 4096"));
		ixdp_config_init(&cfg);
		cfg.rx_ring = wrong[i];
		assert_int_equal(rig_try_open(&rig, "", &cfg, 4096), -EINVAL);
		assert_non_null(strstr(ixdp_error(), "RX ring"));
	}
}

/*
 * DPDK 71f39b07b6: more than 40 descriptors without RS stop a queue whose WTHRESH is 0. The
 * software NIC does the same; whatever the batch, the driver must never get there.
 */
static void report_status_is_never_more_than_40_apart(void **state) {
	static const unsigned batches[] = {1, 3, 31, 32, 33, 64, 100, 256};
	uint64_t seq = 0;

	(void)state;
	rig_open(&rig, "", NULL);
	for (unsigned i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
		send_all(0, 2000, batches[i], &seq);
	rig_run(&rig);
	assert_int_equal(rig.sent, seq);
	assert_int_equal(FIELD_GET(TXDCTL_WTHRESH, softnic_peek(rig.nic, REG_TXDCTL)), 0);
	rig_close(&rig);
}

/*
 * ixy 0e00605: thresholds were cleared with a mask too narrow. They must be exact, whatever was
 * there before, and the head is written while the queue is off only (DPDK ff30a020bb): strict
 * checks see to that, and rig_close() asks them.
 */
static void thresholds_are_exact(void **state) {
	(void)state;
	rig_open(&rig, "", NULL);
	uint32_t txdctl = softnic_peek(rig.nic, REG_TXDCTL);

	assert_int_equal(txdctl,
			 FIELD(TXDCTL_PTHRESH, 36) | FIELD(TXDCTL_HTHRESH, 8) | TXDCTL_ENABLE);
	rig_close(&rig);
}

/* Buffers are the NIC's until it says so: none is handed out again while it may still read them. */
static void no_buffer_returns_before_it_was_sent(void **state) {
	struct ixdp_pkt pkts[256];
	unsigned buffers;

	(void)state;
	rig_open(&rig, "", NULL);
	rig.hold = true;
	buffers = rig_available(&rig);
	assert_int_equal(rig_make(&rig, pkts, 256, 60, 0), 256);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 256), 256);
	rig_run(&rig);
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
	assert_int_equal(rig_available(&rig), buffers - 256);

	rig.hold = false;
	softnic_step(rig.nic, 40);
	/* Whatever it has sent, and no more, is back. */
	assert_int_equal(ixdp_tx_clean(rig.port, 0), rig.sent);
	assert_int_equal(rig_available(&rig), buffers - 256 + rig.sent);
	rig_run(&rig);
	assert_sent_in_order(256);
	rig_close(&rig);
}

/* All ones, masked, are a place in the ring: with a full ring it even is one that could be. */
static void a_gone_device_gives_no_buffer_back(void **state) {
	static struct ixdp_pkt pkts[RING];

	(void)state;
	rig_open(&rig, ",fault=tx-stop", NULL);
	assert_int_equal(rig_make(&rig, pkts, RING - 1, 60, 0), RING - 1);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, RING - 1), RING - 1);
	softnic_fault(rig.nic, "all-ones");
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
	rig_close(&rig);
}

/* A moved head is sent from where it is now, and its buffer still goes home. */
static void data_may_start_anywhere_in_the_buffer(void **state) {
	unsigned buffers;
	struct ixdp_pkt pkt;

	(void)state;
	rig_open(&rig, "", NULL);
	buffers = rig_available(&rig);
	for (unsigned move = 0; move <= IXDP_HEADROOM; move += 37) {
		assert_int_equal(ixdp_alloc(rig.pool, &pkt, 1), 1);
		pkt.data -= move;
		pkt.headroom -= move;
		struct ixdp_frame_config cfg = {.size = 300};

		pkt.len = ixdp_frame_write(&cfg, 0, rig.sent, pkt.data);
		assert_int_equal(ixdp_tx(rig.port, 0, &pkt, 1), 1);
		rig_run(&rig);
	}
	assert_sent_in_order(7);
	ixdp_tx_clean(rig.port, 0);
	assert_int_equal(rig_available(&rig), buffers);
	rig_close(&rig);
}

static void what_cannot_be_sent_is_refused_and_stays_the_callers(void **state) {
	struct ixdp_pkt pkts[4];

	(void)state;
	rig_open(&rig, "", NULL);
	assert_int_equal(rig_make(&rig, pkts, 4, 60, 0), 4);
	pkts[2].len = 0;
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 4), 2);
	assert_int_equal(ixdp_tx(rig.port, 0, &pkts[2], 2), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "is empty"));
	pkts[2].len = 16;
	assert_int_equal(ixdp_tx(rig.port, 0, &pkts[2], 2), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "17 bytes"));
	/* Behind its buffer begins another packet's. */
	pkts[2].data += 1900;
	pkts[2].headroom += 1900;
	pkts[2].len = 149;
	assert_int_equal(ixdp_tx(rig.port, 0, &pkts[2], 2), -EINVAL);
	pkts[2].data -= 1900;
	pkts[2].headroom -= 1900;
	pkts[2].len = IXDP_DATA_SIZE + 1;
	assert_int_equal(ixdp_tx(rig.port, 0, &pkts[2], 2), -EINVAL);
	pkts[2].len = 60;
	pkts[3].flags = IXDP_PKT_CONTD;
	assert_int_equal(ixdp_tx(rig.port, 0, &pkts[3], 1), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "last element"));
	ixdp_free(rig.pool, &pkts[2], 2);
	assert_int_equal(ixdp_tx(rig.port, 1, pkts, 1), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "no TX queue 1"));
	assert_int_equal(ixdp_tx_clean(rig.port, 1), -EINVAL);
	rig_close(&rig);
}

/* The NIC pads short frames; statistics count what was on the wire, without FCS. */
static void short_frames_are_padded(void **state) {
	struct ixdp_pkt pkt;

	(void)state;
	rig_open(&rig, "", NULL);
	assert_int_equal(rig_make(&rig, &pkt, 1, 60, 0), 1);
	pkt.len = 17;
	assert_int_equal(ixdp_tx(rig.port, 0, &pkt, 1), 1);
	rig_run(&rig);
	assert_int_equal(rig.sent_len[0], 60);
	assert_int_equal(rig_stats(&rig).tx_packets, 1);
	assert_int_equal(rig_stats(&rig).tx_bytes, 60);
	rig_close(&rig);
}

/* DPDK 3f07cc4906: with link down, bytes went below zero, as an FCS was taken off frames not sent.
 */
static void nothing_is_counted_while_link_is_down(void **state) {
	uint64_t seq = 0;

	(void)state;
	rig_open(&rig, ",fault=link-down", NULL);
	struct ixdp_pkt pkts[20];

	assert_int_equal(rig_make(&rig, pkts, 20, 60, seq), 20);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 20), 20);
	rig_run(&rig);
	assert_int_equal(rig_stats(&rig).tx_packets, 0);
	assert_int_equal(rig_stats(&rig).tx_bytes, 0);
	assert_int_equal(rig_stats(&rig).tx_taken, 20);
	softnic_fault(rig.nic, "none");
	rig_run(&rig);
	assert_int_equal(rig_stats(&rig).tx_packets, 20);
	assert_int_equal(rig_stats(&rig).tx_bytes, 20 * 60);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(full_ring_takes_what_fits_and_no_more),
	    cmocka_unit_test(cleaning_twice_frees_once),
	    cmocka_unit_test(a_report_that_is_late_is_waited_for),
	    cmocka_unit_test(idle_ring_holds_less_than_a_chunk),
	    cmocka_unit_test(every_ring_size_wraps_and_closes_with_packets_pending),
	    cmocka_unit_test(ring_sizes_that_cannot_be_are_refused),
	    cmocka_unit_test(report_status_is_never_more_than_40_apart),
	    cmocka_unit_test(thresholds_are_exact),
	    cmocka_unit_test(no_buffer_returns_before_it_was_sent),
	    cmocka_unit_test(a_gone_device_gives_no_buffer_back),
	    cmocka_unit_test(data_may_start_anywhere_in_the_buffer),
	    cmocka_unit_test(what_cannot_be_sent_is_refused_and_stays_the_callers),
	    cmocka_unit_test(short_frames_are_padded),
	    cmocka_unit_test(nothing_is_counted_while_link_is_down),
	};

	return cmocka_run_group_tests_name("tx", tests, rig_group_setup, NULL);
}
