/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's receive path on a stepped software NIC, as it went wrong elsewhere. */
#include "rig.h"

#include <errno.h>
#include <string.h>

#include "driver/regs.h"

enum { RING = 512 };

static struct rig rig;

/* RDT follows what has been read, at most a chunk behind, and the NIC never owns nothing. */
static void assert_tail_follows(uint64_t received) {
	uint32_t tail = softnic_peek(rig.nic, REG_RDT);
	uint32_t head = softnic_peek(rig.nic, REG_RDH);
	uint32_t newest = (received + RING - 1) % RING;

	assert_in_range((newest - tail) % RING, 0, 32);
	assert_int_not_equal(head, tail);
}

/* awkernel PR 318, netmap 102: reception stopped when every descriptor had been used once. */
static void receives_beyond_one_ring(void **state) {
	static const unsigned batches[] = {1, 32, RING - 1, RING};
	uint64_t seq = 0;

	(void)state;
	rig_open(&rig, "", NULL);
	for (unsigned i = 0; i < 4 * RING + 7; i++) {
		rig_inject(&rig, 60);
		rig_run(&rig);
		assert_int_equal(rig_receive(&rig, 0, 1, 1, &seq), 1);
		assert_tail_follows(seq);
	}
	for (unsigned b = 0; b < 4; b++) {
		for (unsigned round = 0; round < 9; round++) {
			/* The NIC owns at most RING - 1, less what a lagging tail holds back. */
			unsigned n = batches[b] < RING - 33 ? batches[b] : RING - 33;

			for (unsigned i = 0; i < n; i++)
				rig_inject(&rig, 60);
			rig_run(&rig);
			assert_int_equal(rig_receive(&rig, 0, RING, 256, &seq), n);
			assert_tail_follows(seq);
		}
	}
	assert_int_equal(seq, rig.next_in);
	assert_int_equal(rig_stats(&rig).rx_packets, seq);
	assert_int_equal(rig_stats(&rig).rx_dropped, 0);
	rig_close(&rig);
}

/* ixy.rs 18: an empty pool ended the process. */
static void empty_pool_stops_reception_and_freeing_resumes_it(void **state) {
	struct ixdp_config cfg = rig_config(1, 0);
	struct ixdp_pkt held[2048];
	unsigned n_held = 0;
	struct ixdp_stats stats;

	(void)state;
	rig_open(&rig, "", &cfg);
	unsigned buffers = rig_available(&rig) + RING;

	for (unsigned i = 0; i < buffers + 10; i++) {
		rig_inject(&rig, 60);
		rig_run(&rig);
		int got = ixdp_rx(rig.port, 0, &held[n_held], 32);

		assert_true(got >= 0);
		n_held += got;
	}
	/* All but the one behind RDT, which the NIC never gets. */
	assert_int_equal(n_held, buffers - 1);
	assert_int_equal(rig_available(&rig), 0);
	stats = rig_stats(&rig);
	assert_true(stats.rx_nobuf > 0);
	assert_int_equal(stats.rx_packets, n_held);
	assert_int_equal(stats.rx_no_desc, 11);
	assert_int_equal(stats.rx_dropped, 11);
	for (unsigned i = 0; i < n_held; i++)
		assert_int_equal(rig_seq(&held[i]), i);

	ixdp_free(rig.pool, held, n_held);
	assert_int_equal(ixdp_rx(rig.port, 0, held, 32), 0); /* this call refills */
	uint64_t seq = rig.next_in;

	for (unsigned i = 0; i < 10; i++)
		rig_inject(&rig, 60);
	rig_run(&rig);
	assert_int_equal(rig_receive(&rig, 0, 32, 32, &seq), 10);
	rig_close(&rig);
}

/* analogdevicesinc/linux 3517: a ring that ran dry was never refilled, as no descriptor was done.
 */
static void dry_ring_recovers_without_a_new_frame(void **state) {
	struct ixdp_config cfg = rig_config(1, 0);
	struct ixdp_pkt held[2048];
	unsigned n_held = 0;
	int got;

	(void)state;
	rig_open(&rig, "", &cfg);
	/* Everything that the pool has is in our hands ... */
	n_held = ixdp_alloc(rig.pool, held, 2048);
	/* ... and the ring is read empty, and cannot be refilled. */
	for (unsigned i = 0; i < RING + 20; i++)
		rig_inject(&rig, 60);
	rig_run(&rig);
	while ((got = ixdp_rx(rig.port, 0, &held[n_held], 32)) > 0)
		n_held += got;
	assert_int_equal(softnic_peek(rig.nic, REG_RDH), softnic_peek(rig.nic, REG_RDT));
	assert_int_equal(rig_stats(&rig).rx_no_desc, 21);

	ixdp_free(rig.pool, held, n_held);
	assert_int_equal(ixdp_rx(rig.port, 0, held, 32), 0);
	assert_int_not_equal(softnic_peek(rig.nic, REG_RDH), softnic_peek(rig.nic, REG_RDT));
	uint64_t seq = rig_inject(&rig, 60);

	rig_run(&rig);
	assert_int_equal(rig_receive(&rig, 0, 32, 32, &seq), 1);
	rig_close(&rig);
}

/* The smallest ring is as good as a large one, in whatever portions the pool gives. */
static void small_ring_with_a_pool_that_trickles(void **state) {
	struct ixdp_config cfg = rig_config(1, 0);
	struct ixdp_pkt held[2048];
	uint64_t seq = 0;

	(void)state;
	cfg.rx_ring = IXDP_MIN_RING;
	rig_open(&rig, "", &cfg);
	unsigned n = ixdp_alloc(rig.pool, held, 2048);

	/* A few buffers at a time, never a whole chunk: the ring must not starve beside them. */
	for (unsigned round = 0; round < 300; round++) {
		unsigned few = round % 7;

		rig_inject(&rig, 60);
		rig_run(&rig);
		assert_int_equal(rig_receive(&rig, 0, 1, 1, &seq), 1);
		n += ixdp_alloc(rig.pool, &held[n], 2048 - n);
		ixdp_free(rig.pool, &held[n - few], few);
		n -= few;
	}
	ixdp_free(rig.pool, held, n);
	assert_int_equal(seq, 300);
	rig_close(&rig);
}

struct torn_state {
	unsigned calls;
	int got;
};

static void receive_while_torn(struct softnic *nic, unsigned queue, unsigned index, void *arg) {
	struct torn_state *torn = arg;
	struct ixdp_pkt pkt;

	(void)nic, (void)index;
	torn->calls++;
	torn->got += ixdp_rx(rig.port, queue, &pkt, 1);
}

/*
 * DPDK 85e46c532b: status read before length. A NIC that writes back in two steps shows DD with
 * length 0; that descriptor is consumed and counted, and nothing of it reaches the caller.
 */
static void torn_write_back_is_no_packet(void **state) {
	struct torn_state torn = {0};
	struct softnic_hooks hooks = {.torn = receive_while_torn, .arg = &torn};

	(void)state;
	rig_open(&rig, ",fault=torn", NULL);
	softnic_set_hooks(rig.nic, &hooks);
	rig_inject(&rig, 60);
	rig_run(&rig);
	assert_int_equal(torn.calls, 1);
	assert_int_equal(torn.got, 0);
	assert_int_equal(rig_stats(&rig).rx_len_zero, 1);

	softnic_fault(rig.nic, "none");
	uint64_t seq = rig_inject(&rig, 60);

	rig_run(&rig);
	assert_int_equal(rig_receive(&rig, 0, 8, 8, &seq), 1);
	rig_close(&rig);
}

/* netmap 355: the NIC may set DD with length 0. */
static void length_zero_is_counted_and_recycled(void **state) {
	struct ixdp_pkt pkts[64];
	unsigned got = 0;

	(void)state;
	rig_open(&rig, ",fault=len-zero:3", NULL);
	unsigned before = rig_available(&rig);

	for (unsigned i = 0; i < 30; i++)
		rig_inject(&rig, 60);
	rig_run(&rig);
	got = ixdp_rx(rig.port, 0, pkts, 64);
	assert_int_equal(got, 20);
	for (unsigned i = 0; i < got; i++)
		assert_true(pkts[i].len == 60);
	assert_int_equal(rig_stats(&rig).rx_len_zero, 10);
	assert_int_equal(rig_stats(&rig).rx_dropped, 10);
	ixdp_free(rig.pool, pkts, got);
	/* Thirty descriptors have given their buffer back, none has been refilled yet. */
	assert_int_equal(rig_available(&rig), before + 30);
	rig_close(&rig);
}

/*
 * FreeBSD D44772: the NIC was told of larger buffers than there were. Buffers lie side by side in
 * the pool, so the next one's first bytes are the guard.
 */
static void no_frame_is_written_beyond_its_buffer(void **state) {
	static const unsigned sizes[] = {1514, 1518, 1519, 1984, 1985, 2047, 2048, 2049, 9000};
	struct ixdp_config cfg = rig_config(1, 0);
	static uint8_t frame[9000];
	struct ixdp_pkt pkts[1024];
	unsigned n = 0;

	(void)state;
	cfg.rx_ring = IXDP_MIN_RING;
	rig_open(&rig, "", &cfg);
	/* What the pool still has is the caller's, and keeps a pattern. */
	unsigned n_guards = ixdp_alloc(rig.pool, pkts, 1024);

	for (unsigned i = 0; i < n_guards; i++)
		memset(ixdp_pkt_buffer(&pkts[i]), 0xA5, IXDP_BUFFER_STRIDE);
	memset(frame, 0x5A, sizeof(frame));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memcpy(frame + 12, sizes[i] == 1514 ? "\x08\x00" : "\x81\x00", 2);
		softnic_inject(rig.nic, frame, sizes[i]);
	}
	rig_run(&rig);
	struct ixdp_pkt got[64];

	n = ixdp_rx(rig.port, 0, got, 64);
	/* 1,518 B and no more: MTU 1,500 and a VLAN tag. */
	assert_int_equal(n, 2);
	assert_int_equal(got[0].len, 1514);
	assert_int_equal(got[1].len, 1518);
	assert_int_equal(rig_stats(&rig).rx_oversize, 7);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(got[i].headroom, IXDP_HEADROOM);
		/* Nothing behind the frame, up to the end of the padding, and nothing in front. */
		for (uint8_t *p = got[i].data + got[i].len;
		     p < ixdp_pkt_buffer(&got[i]) + IXDP_BUFFER_STRIDE; p++)
			assert_int_equal(*p, 0);
		for (uint8_t *p = ixdp_pkt_buffer(&got[i]); p < got[i].data; p++)
			assert_int_equal(*p, 0);
	}
	for (unsigned i = 0; i < n_guards; i++)
		for (unsigned b = 0; b < IXDP_BUFFER_STRIDE; b++)
			assert_int_equal(ixdp_pkt_buffer(&pkts[i])[b], 0xA5);
	ixdp_free(rig.pool, got, n);
	ixdp_free(rig.pool, pkts, n_guards);
	rig_close(&rig);
}

/* MoonGen 126, ixy: a frame over several buffers ended the process. It is dropped, not split. */
static void frame_over_several_buffers_is_dropped_whole(void **state) {
	static uint8_t big[3000];
	uint64_t seq = 0;
	struct ixdp_pkt pkts[8];

	(void)state;
	rig_open(&rig, "", NULL);
	/* The driver sets MAXFRS so that this cannot happen; a NIC that errs does it all the same.
	 */
	softnic_poke(rig.nic, REG_MAXFRS, FIELD(MAXFRS_MFS, 9000));
	rig_inject(&rig, 60);
	softnic_inject(rig.nic, big, sizeof(big));
	rig_inject(&rig, 60);
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 8), 2);
	assert_int_equal(rig_seq(&pkts[0]), seq++);
	assert_int_equal(rig_seq(&pkts[1]), seq++);
	assert_int_equal(rig_stats(&rig).rx_oversize, 1);
	ixdp_free(rig.pool, pkts, 2);
	rig_close(&rig);
}

/* Where the driver has its ring: a software NIC sees virtual addresses. */
static struct desc *ring_of_queue_0(void) {
	return (struct desc *)((uint64_t)softnic_peek(rig.nic, REG_RDBAH) << 32 |
			       softnic_peek(rig.nic, REG_RDBAL));
}

/* Found by fuzz_driver: a NIC that claims more than a buffer holds had it handed out. */
static void length_beyond_the_buffer_is_dropped(void **state) {
	static const uint64_t lengths[] = {2047, 2048, 2049, 0xFFFF};
	struct ixdp_pkt pkts[8];

	(void)state;
	rig_open(&rig, "", NULL);
	for (unsigned i = 0; i < 4; i++) {
		rig_inject(&rig, 60);
		rig_run(&rig);
		desc_publish(&ring_of_queue_0()[i], RXD_DD | RXD_EOP | lengths[i] << RXD_LEN_LOW);
	}
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 8), 2);
	assert_int_equal(pkts[0].len, 2047);
	assert_int_equal(pkts[1].len, 2048);
	assert_int_equal(rig_stats(&rig).rx_oversize, 2);
	assert_int_equal(rig_stats(&rig).rx_len_zero, 0);
	ixdp_free(rig.pool, pkts, 2);
	rig_close(&rig);
}

/*
 * Found by fuzz_driver: a NIC that sets DD in every descriptor, the one behind RDT included, got
 * buffers handed out twice, or the driver going round for ever, freeing them each time.
 */
static void done_everywhere_gives_each_buffer_once(void **state) {
	static const uint64_t frame_ends[] = {RXD_EOP, 0};
	struct ixdp_pkt pkts[3 * RING];
	struct ixdp_config cfg = rig_config(1, 0);

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		unsigned n = 0, elsewhere;

		rig_open(&rig, "", &cfg);
		/* The pool is empty, so that nothing is refilled in between. */
		elsewhere = ixdp_alloc(rig.pool, pkts, 2 * RING);
		assert_int_equal(rig_available(&rig), 0);
		for (unsigned i = 0; i < RING; i++)
			desc_publish(&ring_of_queue_0()[i],
				     RXD_DD | frame_ends[k] | UINT64_C(60) << RXD_LEN_LOW);
		for (unsigned round = 0; round < 4; round++)
			n += ixdp_rx(rig.port, 0, &pkts[elsewhere + n], 3 * RING - elsewhere - n);
		/* Parts of a frame that never ends go back to the pool, and from there to the ring.
		 */
		assert_int_equal(n, k == 0 ? RING : 0);
		ixdp_free(rig.pool, pkts, elsewhere + n);
		rig_close(&rig);
	}
}

/* Frames with a wrong FCS stay outside and are counted. */
static void bad_crc_is_counted(void **state) {
	uint8_t frame[60] = {0};
	uint64_t seq = 0;

	(void)state;
	rig_open(&rig, "", NULL);
	softnic_inject_bad_crc(rig.nic, frame, sizeof(frame));
	rig_inject(&rig, 60);
	rig_run(&rig);
	assert_int_equal(rig_receive(&rig, 0, 8, 8, &seq), 1);
	assert_int_equal(rig_stats(&rig).rx_crc, 1);
	assert_int_equal(rig_stats(&rig).rx_dropped, 1);
	rig_close(&rig);
}

/* A NIC that passes damaged frames on, as it does when asked to store bad packets, marks them. */
static void a_frame_marked_as_damaged_is_dropped(void **state) {
	uint8_t frame[60] = {0};
	uint64_t seq = 0;

	(void)state;
	rig_open(&rig, "", NULL);
	softnic_poke(rig.nic, REG_FCTRL, softnic_peek(rig.nic, REG_FCTRL) | FCTRL_SBP);
	softnic_inject_bad_crc(rig.nic, frame, sizeof(frame));
	rig_inject(&rig, 60);
	rig_run(&rig);
	assert_int_equal(rig_receive(&rig, 0, 8, 8, &seq), 1);
	assert_int_equal(rig_stats(&rig).rx_errors, 1);
	rig_close(&rig);
}

/* Bytes are counted without FCS, at each size. */
static void bytes_are_counted_without_fcs(void **state) {
	uint64_t seq = 0, bytes = 0;

	(void)state;
	rig_open(&rig, "", NULL);
	for (unsigned len = 60; len <= 1514; len += 23) {
		rig_inject(&rig, len);
		rig_run(&rig);
		assert_int_equal(rig_receive(&rig, 0, 1, 1, &seq), 1);
		bytes += len;
	}
	assert_int_equal(rig_stats(&rig).rx_bytes, bytes);
	assert_int_equal(rig_stats(&rig).rx_packets, seq);
	rig_close(&rig);
}

static void wrong_queue_is_an_error(void **state) {
	struct ixdp_pkt pkt;

	(void)state;
	rig_open(&rig, "", NULL);
	assert_int_equal(ixdp_rx(rig.port, 1, &pkt, 1), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "no RX queue 1"));
	assert_int_equal(ixdp_rx(rig.port, 0, &pkt, 0), 0);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(receives_beyond_one_ring),
	    cmocka_unit_test(empty_pool_stops_reception_and_freeing_resumes_it),
	    cmocka_unit_test(dry_ring_recovers_without_a_new_frame),
	    cmocka_unit_test(small_ring_with_a_pool_that_trickles),
	    cmocka_unit_test(torn_write_back_is_no_packet),
	    cmocka_unit_test(length_zero_is_counted_and_recycled),
	    cmocka_unit_test(no_frame_is_written_beyond_its_buffer),
	    cmocka_unit_test(frame_over_several_buffers_is_dropped_whole),
	    cmocka_unit_test(length_beyond_the_buffer_is_dropped),
	    cmocka_unit_test(done_everywhere_gives_each_buffer_once),
	    cmocka_unit_test(bad_crc_is_counted),
	    cmocka_unit_test(a_frame_marked_as_damaged_is_dropped),
	    cmocka_unit_test(bytes_are_counted_without_fcs),
	    cmocka_unit_test(wrong_queue_is_an_error),
	};

	return cmocka_run_group_tests_name("rx", tests, rig_group_setup, NULL);
}
