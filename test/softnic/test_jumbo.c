/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving frames over several buffers, from a stepped software NIC and from a card that errs. */
#include "elements.h"

#include <errno.h>
#include <stdio.h>

#include "driver/regs.h"

enum { RING = 64, LONGEST = 9014, MANY = 1024 };

static struct rig rig;
static struct ixdp_pkt pkts[MANY];

static struct ixdp_config jumbo_config(void) {
	struct ixdp_config cfg = rig_config(1, 0);

	cfg.mtu = 9000;
	cfg.rx_ring = RING;
	return cfg;
}

static void open_jumbo(void) {
	struct ixdp_config cfg = jumbo_config();

	rig_open(&rig, "", &cfg);
}

/* Frees n elements, which must be whole test frames from *seq on. Returns how many frames. */
static unsigned take_frames(int n, uint64_t *seq) {
	static uint8_t frame[5 * IXDP_DATA_SIZE];
	struct ixdp_frame_id id;
	unsigned frames = 0, k;

	assert_true(n >= 0);
	for (int i = 0; i < n; i += k, frames++) {
		unsigned len = gather(&pkts[i], n - i, frame, &k);

		assert_int_equal(k, (len + IXDP_DATA_SIZE - 1) / IXDP_DATA_SIZE);
		assert_int_equal(ixdp_frame_read(frame, len, &id), IXDP_FRAME_GOOD);
		assert_int_equal(id.seq, (*seq)++);
	}
	ixdp_free(rig.pool, pkts, n);
	return frames;
}

/* Of all sizes, in any order, so that frames lie across the ring's end in every way. */
static void frames_of_mixed_sizes_are_whole(void **state) {
	static const unsigned batches[] = {5, 6, 32};

	(void)state;
	for (unsigned b = 0; b < 3; b++) {
		struct ixdp_rx_hash hashes[32];
		uint64_t seq = 0, bytes = 0;
		uint32_t random = b;

		open_jumbo();
		for (unsigned i = 0; i < 2000; i++) {
			unsigned len =
			    60 + (random_number(&random, 3) ? random_number(&random, LONGEST - 59)
							    : random_number(&random, 100));

			if (i % 50 == 0) len = LONGEST;
			rig_inject(&rig, len);
			bytes += len;
			rig_run(&rig);
			if (random_number(&random, 3) == 0) continue;
			take_frames(i % 2 ? ixdp_rx(rig.port, 0, pkts, batches[b])
					  : ixdp_rx_hashed(rig.port, 0, pkts, hashes, batches[b]),
				    &seq);
			/* There is always room for two frames more. */
			while (rig.next_in - seq > 2)
				assert_true(
				    take_frames(ixdp_rx(rig.port, 0, pkts, batches[b]), &seq) > 0);
		}
		while (take_frames(ixdp_rx(rig.port, 0, pkts, batches[b]), &seq) > 0)
			;
		assert_int_equal(seq, rig.next_in);
		assert_int_equal(rig_stats(&rig).rx_packets, seq);
		assert_int_equal(rig_stats(&rig).rx_bytes, bytes);
		assert_int_equal(rig_stats(&rig).rx_dropped, 0);
		rig_close(&rig);
	}
}

static void an_array_too_small_for_a_frame_is_refused(void **state) {
	struct ixdp_rx_hash hashes[5];
	uint64_t seq = 0;

	(void)state;
	open_jumbo();
	rig_inject(&rig, 60);
	rig_run(&rig);
	for (unsigned n = 1; n < 5; n++) {
		char numbers[80];

		snprintf(numbers, sizeof(numbers), "%u elements at once: a frame may have 5", n);
		assert_int_equal(ixdp_rx(rig.port, 0, pkts, n), -EMSGSIZE);
		assert_non_null(strstr(ixdp_error(), numbers));
		assert_int_equal(ixdp_rx_hashed(rig.port, 0, pkts, hashes, n), -EMSGSIZE);
	}
	/* Nothing is asked for, nothing comes. */
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 0), 0);
	assert_int_equal(take_frames(ixdp_rx(rig.port, 0, pkts, 5), &seq), 1);
	rig_close(&rig);
}

static void a_frame_that_does_not_fit_waits_for_the_next_call(void **state) {
	uint64_t seq = 0;

	(void)state;
	open_jumbo();
	for (unsigned i = 0; i < 3; i++)
		rig_inject(&rig, 3 * IXDP_DATA_SIZE);
	rig_run(&rig);
	assert_int_equal(take_frames(ixdp_rx(rig.port, 0, pkts, 8), &seq), 2);
	assert_int_equal(take_frames(ixdp_rx(rig.port, 0, pkts, 5), &seq), 1);
	rig_close(&rig);
}

static void frames_too_long_or_too_short_hurt_no_neighbour(void **state) {
	static uint8_t frame[LONGEST + 5] = {2};
	uint64_t seq = 0;

	(void)state;
	open_jumbo();
	rig_inject(&rig, LONGEST);
	softnic_inject(rig.nic, frame, LONGEST + 1);
	rig_inject(&rig, LONGEST);
	softnic_inject(rig.nic, frame, 59);
	rig_inject(&rig, 60);
	rig_run(&rig);
	assert_int_equal(take_frames(ixdp_rx(rig.port, 0, pkts, 32), &seq), 3);
	assert_int_equal(rig_stats(&rig).rx_oversize, 1);
	assert_int_equal(rig_stats(&rig).rx_undersize, 1);
	assert_int_equal(rig_stats(&rig).rx_dropped, 2);
	/* A VLAN tag comes on top. */
	memcpy(frame + 12, "\x81\x00", 2);
	softnic_inject(rig.nic, frame, LONGEST + 4);
	softnic_inject(rig.nic, frame, LONGEST + 5);
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 32), 5);
	assert_int_equal(pkts[4].len, LONGEST + 4 - 4 * IXDP_DATA_SIZE);
	assert_int_equal(rig_stats(&rig).rx_oversize, 2);
	ixdp_free(rig.pool, pkts, 5);
	rig_close(&rig);
}

/* At 2,030 the longest frame, with a VLAN tag, just fills a buffer. */
static void an_mtu_decides_whether_frames_have_several_elements(void **state) {
	static uint8_t frame[LONGEST] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0x00};

	(void)state;
	for (unsigned mtu = 2030; mtu <= 2031; mtu++) {
		struct ixdp_config cfg = jumbo_config();
		unsigned elements = mtu - 2029;

		cfg.mtu = mtu;
		rig_open(&rig, "", &cfg);
		softnic_inject(rig.nic, frame, mtu + 18);
		softnic_inject(rig.nic, frame, mtu + 19);
		rig_run(&rig);
		assert_int_equal(ixdp_rx(rig.port, 0, pkts, 1), elements == 1 ? 1 : -EMSGSIZE);
		if (elements == 2) {
			assert_int_equal(ixdp_rx(rig.port, 0, pkts, 2), 2);
			assert_int_equal(pkts[1].len, 1);
		}
		assert_int_equal(pkts[0].len, IXDP_DATA_SIZE);
		assert_int_equal(rig_stats(&rig).rx_oversize, 1);
		ixdp_free(rig.pool, pkts, elements);
		rig_close(&rig);
	}
}

/* The pool has nothing, the ring is read empty; what is freed then brings it back. */
static void a_ring_dry_within_a_frame_comes_back(void **state) {
	static struct ixdp_pkt held[MANY];
	uint64_t seq = 0;

	(void)state;
	open_jumbo();
	unsigned n_held = ixdp_alloc(rig.pool, held, MANY);

	/* 63 descriptors: 12 frames, and 3 that no frame fits into. */
	for (unsigned i = 0; i < 14; i++)
		rig_inject(&rig, LONGEST);
	rig_run(&rig);
	assert_int_equal(rig_stats(&rig).rx_no_desc, 2);
	int got = ixdp_rx(rig.port, 0, pkts, MANY);

	assert_int_equal(got, 60);
	assert_int_equal(rig_available(&rig), 0);
	assert_int_equal(ixdp_rx(rig.port, 0, &pkts[got], 5), 0);
	assert_true(rig_stats(&rig).rx_nobuf > 0);
	assert_int_equal(take_frames(got, &seq), 12);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 5), 0); /* refills */
	seq = rig_inject(&rig, LONGEST);
	rig_run(&rig);
	assert_int_equal(take_frames(ixdp_rx(rig.port, 0, pkts, 5), &seq), 1);
	ixdp_free(rig.pool, held, n_held);
	rig_close(&rig);
}

/* --- a card that errs: the test writes descriptors back --------------------------------------- */

static void write_back(unsigned i, uint64_t len, uint64_t bits) {
	struct desc *ring = (struct desc *)((uint64_t)softnic_peek(rig.nic, REG_RDBAH) << 32 |
					    softnic_peek(rig.nic, REG_RDBAL));

	desc_publish(&ring[i % RING], bits | len << RXD_LEN_LOW);
}

/* A frame's write-back is not one store, so some of its descriptors may be seen before others. */
static void half_a_frame_is_none(void **state) {
	(void)state;
	open_jumbo();
	write_back(0, 60, RXD_DD | RXD_EOP);
	for (unsigned i = 1; i < 5; i++) {
		write_back(i, IXDP_DATA_SIZE, RXD_DD);
		assert_int_equal(ixdp_rx(rig.port, 0, pkts, 32), i == 1);
		if (i == 1) ixdp_free(rig.pool, pkts, 1);
	}
	write_back(5, 7, RXD_DD | RXD_EOP);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 32), 5);
	assert_int_equal(pkts[4].len, 7);
	ixdp_free(rig.pool, pkts, 5);
	rig_close_dirty(&rig);
}

/* The ring runs dry within a frame that the NIC has begun to write. */
static void half_a_frame_waits_for_buffers(void **state) {
	unsigned n_held;

	(void)state;
	open_jumbo();
	n_held = ixdp_alloc(rig.pool, &pkts[100], MANY - 100);
	for (unsigned i = 0; i < 60; i++)
		write_back(i, 60, RXD_DD | RXD_EOP);
	for (unsigned i = 60; i < 63; i++)
		write_back(i, IXDP_DATA_SIZE, RXD_DD);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 100), 60);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ixdp_rx(rig.port, 0, &pkts[60], 5), 0);
	ixdp_free(rig.pool, pkts, 60);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 5), 0); /* refills */
	write_back(63, IXDP_DATA_SIZE, RXD_DD);
	write_back(64, 1, RXD_DD | RXD_EOP);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 5), 5);
	ixdp_free(rig.pool, pkts, 5);
	ixdp_free(rig.pool, &pkts[100], n_held);
	rig_close_dirty(&rig);
}

/* What a card may write where a frame of three elements should be; a good frame follows. */
static void frames_at_fault_are_counted_once_by_name(void **state) {
	enum { LEN_ZERO, OVERSIZE, ERRORS };
	static const uint64_t end = RXD_DD | RXD_EOP;
	static const struct {
		uint64_t len[6], bits[6];
		unsigned parts, reason;
	} cases[] = {
	    {{2048, 0, 5}, {RXD_DD, RXD_DD, end}, 3, LEN_ZERO},
	    {{2048, 2048, 0}, {RXD_DD, RXD_DD, end}, 3, LEN_ZERO},
	    {{0, 2048, 5}, {RXD_DD, RXD_DD, end}, 3, LEN_ZERO},
	    {{2048, 2049, 5}, {RXD_DD, RXD_DD, end}, 3, OVERSIZE},
	    {{0xFFFF, 2048, 5}, {RXD_DD, RXD_DD, end}, 3, OVERSIZE},
	    {{2048, 2048, 2049}, {RXD_DD, RXD_DD, end}, 3, OVERSIZE},
	    {{2048, 2048, 2048, 2048, 827}, {RXD_DD, RXD_DD, RXD_DD, RXD_DD, end}, 5, OVERSIZE},
	    {{2048, 2048, 2048, 2048, 2048, 1},
	     {RXD_DD, RXD_DD, RXD_DD, RXD_DD, RXD_DD, end},
	     6,
	     OVERSIZE},
	    {{2048, 2048, 5}, {RXD_DD, RXD_DD, end | RXD_ERR_CE}, 3, ERRORS},
	    {{2048, 2048, 5}, {RXD_DD, RXD_DD, end | RXD_ERR_OSE}, 3, ERRORS},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_jumbo();
		unsigned before = rig_available(&rig);

		for (unsigned p = 0; p < cases[i].parts; p++)
			write_back(p, cases[i].len[p], cases[i].bits[p]);
		write_back(cases[i].parts, 2048, RXD_DD);
		write_back(cases[i].parts + 1, 9, end);
		assert_int_equal(ixdp_rx(rig.port, 0, pkts, 32), 2);
		assert_int_equal(pkts[0].len, 2048);
		assert_int_equal(pkts[0].flags, IXDP_PKT_CONTD);
		assert_int_equal(pkts[1].len, 9);
		assert_int_equal(pkts[1].flags, 0);
		struct ixdp_stats stats = rig_stats(&rig);

		if (stats.rx_len_zero != (cases[i].reason == LEN_ZERO) ||
		    stats.rx_oversize != (cases[i].reason == OVERSIZE) ||
		    stats.rx_errors != (cases[i].reason == ERRORS))
			fail_msg("case %u", i);
		assert_int_equal(stats.rx_dropped, 1);
		assert_int_equal(stats.rx_packets, 1);
		assert_int_equal(rig_available(&rig), before + cases[i].parts);
		ixdp_free(rig.pool, pkts, 2);
		rig_close_dirty(&rig);
	}
}

/* A frame that never ends is counted when it begins; the one behind its end is good again. */
static void a_frame_without_end_is_counted_once(void **state) {
	(void)state;
	open_jumbo();
	for (unsigned i = 0; i < 4 * RING; i += 16) {
		for (unsigned k = 0; k < 16; k++)
			write_back(i + k, IXDP_DATA_SIZE, RXD_DD);
		assert_int_equal(ixdp_rx(rig.port, 0, pkts, 32), 0);
	}
	assert_int_equal(rig_stats(&rig).rx_oversize, 1);
	write_back(4 * RING, 60, RXD_DD | RXD_EOP);
	write_back(4 * RING + 1, 61, RXD_DD | RXD_EOP);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 32), 1);
	assert_int_equal(pkts[0].len, 61);
	assert_int_equal(rig_stats(&rig).rx_dropped, 1);
	ixdp_free(rig.pool, pkts, 1);
	rig_close_dirty(&rig);
}

/* All descriptors at once, the one behind RDT included, hold something; the pool has nothing. */
static void a_card_that_writes_everything_gets_no_buffer_twice(void **state) {
	static const struct {
		uint64_t bits[3]; /* of descriptors in turn */
		int elements;	  /* that come out, all in all */
	} cases[] = {
	    {{RXD_DD, RXD_DD, RXD_DD}, 0},
	    {{RXD_DD | RXD_EOP, RXD_DD | RXD_EOP, RXD_DD | RXD_EOP}, RING},
	    {{RXD_DD, RXD_DD, RXD_DD | RXD_EOP}, RING - RING % 3},
	    /* Ends without being done: nothing there. */
	    {{RXD_EOP, RXD_EOP, RXD_EOP}, 0},
	    {{RXD_DD, RXD_EOP, RXD_DD}, 0},
	    {{RXD_DD | RXD_EOP, RXD_EOP, RXD_DD}, 1},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct ixdp_pkt held[MANY];
		int n = 0;

		open_jumbo();
		unsigned n_held = ixdp_alloc(rig.pool, held, MANY);

		for (unsigned k = 0; k < RING; k++)
			write_back(k, 60, cases[i].bits[k % 3]);
		for (unsigned round = 0; round < 8; round++) {
			int got = ixdp_rx(rig.port, 0, &pkts[n], 32);

			assert_true(got >= 0);
			n += got;
		}
		assert_int_equal(n, cases[i].elements);
		ixdp_free(rig.pool, pkts, n);
		ixdp_free(rig.pool, held, n_held);
		rig_close_dirty(&rig);
	}
}

/* Its parts are in the ring, and go back to the pool with the rest. */
static void stop_and_close_with_half_a_frame(void **state) {
	uint64_t seq;

	(void)state;
	open_jumbo();
	for (unsigned i = 0; i < 3; i++)
		write_back(i, IXDP_DATA_SIZE, RXD_DD);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 5), 0);
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 5), -ENETDOWN);
	assert_int_equal(ixdp_start(rig.port), 0);
	seq = rig_inject(&rig, LONGEST);
	rig_run(&rig);
	assert_int_equal(take_frames(ixdp_rx(rig.port, 0, pkts, 5), &seq), 1);
	/* In the middle of one that is thrown away, which is forgotten too. */
	for (unsigned i = 5; i < 10; i++)
		write_back(i, IXDP_DATA_SIZE, RXD_DD);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 5), 0);
	assert_int_equal(rig_stats(&rig).rx_oversize, 1);
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	seq = rig_inject(&rig, LONGEST);
	rig_run(&rig);
	assert_int_equal(take_frames(ixdp_rx(rig.port, 0, pkts, 5), &seq), 1);
	for (unsigned i = 5; i < 8; i++)
		write_back(i, IXDP_DATA_SIZE, RXD_DD);
	rig_close(&rig); /* finds all buffers in the pool */
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(frames_of_mixed_sizes_are_whole),
	    cmocka_unit_test(an_array_too_small_for_a_frame_is_refused),
	    cmocka_unit_test(a_frame_that_does_not_fit_waits_for_the_next_call),
	    cmocka_unit_test(frames_too_long_or_too_short_hurt_no_neighbour),
	    cmocka_unit_test(an_mtu_decides_whether_frames_have_several_elements),
	    cmocka_unit_test(a_ring_dry_within_a_frame_comes_back),
	    cmocka_unit_test(half_a_frame_is_none),
	    cmocka_unit_test(half_a_frame_waits_for_buffers),
	    cmocka_unit_test(frames_at_fault_are_counted_once_by_name),
	    cmocka_unit_test(a_frame_without_end_is_counted_once),
	    cmocka_unit_test(a_card_that_writes_everything_gets_no_buffer_twice),
	    cmocka_unit_test(stop_and_close_with_half_a_frame),
	};

	return cmocka_run_group_tests_name("jumbo", tests, rig_group_setup, NULL);
}
