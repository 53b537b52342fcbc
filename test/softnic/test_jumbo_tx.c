/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending frames of several elements on a stepped software NIC, and on a card that errs. */
#include "elements.h"

#include <errno.h>

#include "driver/regs.h"

enum { RING = 64, LONGEST = 9014, MANY = 1024, CHUNK = 32 };

/* Asks for a context descriptor and, as test frames have right checksums, changes nothing. */
enum { SUMS = IXDP_PKT_IP_CSUM | IXDP_PKT_L4_CSUM, HEADERS = 42 };

static struct rig rig;
static struct ixdp_pkt pkts[MANY];
static unsigned buffers; /* of the pool, when nothing is under way */
static uint64_t seq;	 /* of the next frame */

static void open_tx(const char *options, unsigned mtu, unsigned ring) {
	struct ixdp_config cfg = rig_config(0, 1);

	cfg.mtu = mtu;
	cfg.tx_ring = ring;
	rig_open(&rig, options, &cfg);
	buffers = rig_available(&rig);
	seq = 0;
}

/* Whatever was sent has arrived, in order, with every byte. */
static void close_tx(void) {
	rig_run(&rig);
	assert_int_equal(rig.sent, seq);
	for (uint64_t i = 0; i < seq && i < RIG_MAX_SENT; i++)
		assert_int_equal(rig.sent_seq[i], i);
	assert_int_equal(rig_stats(&rig).tx_packets, seq);
	rig_close(&rig);
}

/* The next test frame, of len bytes in k elements, at `to`. */
static void make(struct ixdp_pkt *to, uint32_t *random, unsigned len, unsigned k, uint32_t flags) {
	uint8_t frame[LONGEST];
	unsigned sizes[IXDP_MAX_ELEMENTS + 1];

	write_frame(frame, len, seq);
	cut(random, len, flags ? HEADERS : 1, k, sizes);
	scatter(&rig, frame, sizes, k, flags, to);
}

static unsigned least_len(unsigned k) { return HEADERS + k < 60 ? 60 : HEADERS + k; }

/* A frame goes: the ring has the room. */
static void send(uint32_t *random, unsigned len, unsigned k, uint32_t flags) {
	make(pkts, random, len, k, flags);
	if (ixdp_tx(rig.port, 0, pkts, k) != (int)k) fail_msg("%u of %u: %s", len, k, ixdp_error());
	seq++;
}

static void frames_of_one_to_forty_elements_arrive_whole(void **state) {
	uint32_t random = 1;

	(void)state;
	open_tx(",fault=rs-hang:39", 9000, RING);
	for (unsigned round = 0; round < 20; round++)
		for (unsigned k = 1; k <= IXDP_MAX_ELEMENTS; k++) {
			unsigned min = least_len(k), max = k * IXDP_DATA_SIZE;

			if (max > LONGEST) max = LONGEST;
			send(&random, min + random_number(&random, max - min + 1), k,
			     round % 2 && k < IXDP_MAX_ELEMENTS ? SUMS : 0);
			rig_run(&rig);
			/* Exactly the elements come back, whatever lies among them. */
			unsigned before = rig_available(&rig);

			assert_int_equal(ixdp_tx_clean(rig.port, 0), buffers - before);
			assert_int_equal(rig_available(&rig), buffers);
		}
	close_tx();
}

/* Elements that a port takes, and one more. With a context descriptor it is one less. */
static void frames_of_too_many_elements_are_refused(void **state) {
	static const struct {
		unsigned mtu, most;
	} ports[] = {{1500, 9}, {2030, 9}, {2031, IXDP_MAX_ELEMENTS}, {9000, IXDP_MAX_ELEMENTS}};
	uint32_t random = 2;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		for (unsigned context = 0; context < 2; context++) {
			unsigned most = ports[i].most - context;

			open_tx("", ports[i].mtu, RING);
			make(pkts, &random, 200, most + 1, context ? SUMS : 0);
			assert_int_equal(ixdp_tx(rig.port, 0, pkts, most + 1), -EINVAL);
			assert_non_null(strstr(ixdp_error(), "too many elements"));
			ixdp_free(rig.pool, pkts, most + 1);
			send(&random, 200, most, context ? SUMS : 0);
			close_tx();
		}
}

/* What nobody sends on such a port, but it may be forwarded from a larger one. */
static void lengths_count_over_all_elements(void **state) {
	uint8_t frame[LONGEST + 5] = {2};
	static const unsigned longest[] = {2048, 2048, 2048, 2048, LONGEST + 4 - 4 * 2048};
	static const unsigned longer[] = {2048, 2048, 2048, 2048, LONGEST + 5 - 4 * 2048};
	static const unsigned shortest[] = {1, 16}, shorter[] = {1, 15};

	(void)state;
	open_tx("", 1500, RING);
	scatter(&rig, frame, longest, 5, 0, pkts);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 5), 5);
	scatter(&rig, frame, shortest, 2, 0, pkts);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 2), 2);
	rig_run(&rig);
	assert_int_equal(rig.sent_len[0], LONGEST + 4);
	assert_int_equal(rig.sent_len[1], 60);
	scatter(&rig, frame, longer, 5, 0, pkts);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 5), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "longer than"));
	ixdp_free(rig.pool, pkts, 5);
	scatter(&rig, frame, shorter, 2, 0, pkts);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 2), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "17 bytes"));
	ixdp_free(rig.pool, pkts, 2);
	rig_close(&rig);
}

/*
 * Without jumbo frames RS stands on chunks: here is the largest frame at every place of a chunk,
 * behind as many lone packets as it takes.
 */
static void report_status_is_near_at_every_alignment(void **state) {
	uint32_t random = 3;

	(void)state;
	for (unsigned context = 0; context < 2; context++) {
		open_tx(",fault=rs-hang:39", 1500, 512);
		for (unsigned round = 0; round < 4; round++)
			for (unsigned at = 0; at < CHUNK; at++) {
				for (unsigned i = 0; i < CHUNK + at; i++)
					send(&random, 60, 1, 0);
				send(&random, 200, 9 - context, context ? SUMS : 0);
				rig_run(&rig);
				/* Back to where a chunk begins. */
				while (softnic_peek(rig.nic, REG_TDH) % CHUNK != 0) {
					send(&random, 60, 1, 0);
					rig_run(&rig);
				}
			}
		close_tx();
	}
}

/* Up to 8 frames of up to `most` elements, in pkts; ends: the elements up to the end of each. */
static unsigned make_mix(uint32_t *random, unsigned most, unsigned ends[8]) {
	unsigned n = 0, frames = 0;

	for (; frames < 8 && random_number(random, 8); frames++, seq++) {
		uint32_t flags = random_number(random, 4) ? 0 : SUMS;
		unsigned k =
		    random_number(random, 3) ? 1 : 1 + random_number(random, most - !!flags);

		make(&pkts[n], random, least_len(k) + random_number(random, 40), k, flags);
		ends[frames] = n += k;
	}
	return frames;
}

/* Sends them: whole frames only. What is not taken is freed. */
static void send_mix(unsigned frames, const unsigned ends[8]) {
	unsigned n = frames ? ends[frames - 1] : 0, whole = 0;
	int taken = ixdp_tx(rig.port, 0, pkts, n);

	assert_true(taken >= 0 && (unsigned)taken <= n);
	while (whole < frames && ends[whole] <= (unsigned)taken)
		whole++;
	assert_int_equal(whole ? ends[whole - 1] : 0, taken);
	seq -= frames - whole;
	ixdp_free(rig.pool, &pkts[taken], n - taken);
}

/* Batches of anything, with a wire that stops at times; every buffer is where it must be. */
static void any_mix_of_frames_arrives_and_every_buffer_returns(void **state) {
	static const unsigned mtus[] = {1500, 9000}, rings[] = {64, 256};
	uint32_t random = 4;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		unsigned most = mtus[i % 2] > 2030 ? IXDP_MAX_ELEMENTS : 9;

		open_tx(",fault=rs-hang:39", mtus[i % 2], rings[i / 2]);
		for (unsigned round = 0; round < 3000; round++) {
			unsigned ends[8] = {0}, frames = make_mix(&random, most, ends);

			send_mix(frames, ends);
			rig.hold = random_number(&random, 4) == 0;
			softnic_step(rig.nic, random_number(&random, 12));
			if (random_number(&random, 8)) continue;
			rig.hold = false;
			rig_run(&rig);
			unsigned before = rig_available(&rig);

			assert_int_equal(ixdp_tx_clean(rig.port, 0), buffers - before);
			assert_int_equal(rig_available(&rig), buffers);
		}
		rig.hold = false;
		assert_int_equal(rig_stats(&rig).tx_taken, seq);
		close_tx();
	}
}

static void a_ring_with_too_little_room_takes_nothing_of_a_frame(void **state) {
	uint32_t random = 5;

	(void)state;
	for (unsigned context = 0; context < 2; context++) {
		unsigned needs = 8 + context;

		open_tx(",fault=tx-stop", 9000, RING);
		while (seq < RING - needs)
			send(&random, 60, 1, 0);
		/* One descriptor stays unused, so this is one too few. */
		make(pkts, &random, 300, 8, context ? SUMS : 0);
		assert_int_equal(ixdp_tx(rig.port, 0, pkts, 8), 0);
		softnic_fault(rig.nic, "none");
		rig_run(&rig);
		assert_int_equal(ixdp_tx(rig.port, 0, pkts, 8), 8);
		seq++;
		close_tx();
	}
}

/* What is sent makes room, if it is less than a chunk too. */
static void the_smallest_ring_takes_the_longest_frame(void **state) {
	uint32_t random = 5;

	(void)state;
	open_tx("", 9000, IXDP_MIN_RING);
	while (seq < 30)
		send(&random, 60, 1, 0);
	rig_run(&rig);
	send(&random, least_len(IXDP_MAX_ELEMENTS), IXDP_MAX_ELEMENTS, 0);
	close_tx();
}

static void a_frame_without_its_end_is_refused(void **state) {
	uint32_t random = 6;

	(void)state;
	open_tx("", 1500, RING);
	make(pkts, &random, 60, 1, 0);
	seq++;
	make(&pkts[1], &random, 300, 4, 0);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 4), 1);
	assert_int_equal(ixdp_tx(rig.port, 0, &pkts[1], 3), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "last element is missing"));
	pkts[3].len = 0;
	assert_int_equal(ixdp_tx(rig.port, 0, &pkts[1], 4), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "is empty"));
	pkts[3].len = IXDP_DATA_SIZE + 1;
	assert_int_equal(ixdp_tx(rig.port, 0, &pkts[1], 4), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "ends behind its buffer"));
	ixdp_free(rig.pool, &pkts[1], 4);
	close_tx();
}

/* Only a debug build knows whose a buffer is. Of such a frame none becomes the ring's. */
static void a_frame_with_a_foreign_buffer_stays_the_callers(void **state) {
	uint32_t random = 7;
	struct ixdp_pkt foreign;

	(void)state;
#ifndef IXDP_DEBUG
	print_message("skipped: not a debug build\n");
	skip();
#endif
	open_tx("", 1500, RING);
	make(pkts, &random, 300, 4, 0);
	foreign = pkts[2];
	ixdp_free(rig.pool, &foreign, 1);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 4), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "not the caller's"));
	ixdp_free(rig.pool, pkts, 2);
	ixdp_free(rig.pool, &pkts[3], 1);
	assert_int_equal(rig_available(&rig), buffers);
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(rig.pool, &stats);
	assert_int_equal(stats.bad_frees, 1);
	ixdp_close(rig.port);
	assert_int_equal(ixdp_pool_destroy(rig.pool), 0);
}

/*
 * The frame's end tells that a chunk is done whose end lies within the frame, and not before. On a
 * port for jumbo frames each frame tells of itself.
 */
static void a_chunk_that_ends_within_a_frame_waits_for_the_frame(void **state) {
	uint32_t random = 8;

	(void)state;
	for (unsigned mtu = 1500; mtu <= 9000; mtu += 7500) {
		bool jumbo = mtu > 2030;

		open_tx("", mtu, RING);
		for (unsigned i = 0; i < CHUNK - 4; i++)
			send(&random, 60, 1, 0);
		send(&random, 300, 9, 0);
		send(&random, 60, 1, 0);
		softnic_step(rig.nic, CHUNK - 4);
		assert_int_equal(rig.sent, CHUNK - 4);
		assert_int_equal(ixdp_tx(rig.port, 0, pkts, 0), 0);
		assert_int_equal(rig_available(&rig), buffers - (9 + 1) - (jumbo ? 0 : CHUNK - 4));
		softnic_step(rig.nic, 1);
		assert_int_equal(ixdp_tx(rig.port, 0, pkts, 0), 0);
		assert_int_equal(rig_available(&rig), buffers - (jumbo ? 1 : 9 + 1 - 4));
		rig_run(&rig);
		assert_int_equal(ixdp_tx_clean(rig.port, 0), jumbo ? 1 : 9 + 1 - 4);
		close_tx();
	}
}

/* A card that writes over descriptors, after it has sent: all buffers still go home, once. */
static void a_card_that_writes_over_descriptors_gets_no_buffer_twice(void **state) {
	static const uint64_t words[] = {0, TXD_DD, TXD_EOP, TXD_DD | TXD_EOP, UINT64_MAX};
	uint32_t random = 9;

	(void)state;
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		open_tx("", i % 2 ? 9000 : 1500, RING);
		struct desc *ring =
		    (struct desc *)((uint64_t)softnic_peek(rig.nic, REG_TDBAH) << 32 |
				    softnic_peek(rig.nic, REG_TDBAL));

		for (unsigned round = 0; round < 50; round++) {
			unsigned k = 1 + random_number(&random, 8);

			make(pkts, &random, 300, k, round % 3 ? 0 : SUMS);
			if (ixdp_tx(rig.port, 0, pkts, k) == 0) ixdp_free(rig.pool, pkts, k);
			rig_run(&rig);
			for (unsigned d = 0; d < RING; d++)
				desc_publish(&ring[d], words[i]);
			if (round % 8 == 0) ixdp_tx_clean(rig.port, 0);
		}
		rig_close(&rig);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(frames_of_one_to_forty_elements_arrive_whole),
	    cmocka_unit_test(frames_of_too_many_elements_are_refused),
	    cmocka_unit_test(lengths_count_over_all_elements),
	    cmocka_unit_test(report_status_is_near_at_every_alignment),
	    cmocka_unit_test(any_mix_of_frames_arrives_and_every_buffer_returns),
	    cmocka_unit_test(a_ring_with_too_little_room_takes_nothing_of_a_frame),
	    cmocka_unit_test(the_smallest_ring_takes_the_longest_frame),
	    cmocka_unit_test(a_frame_without_its_end_is_refused),
	    cmocka_unit_test(a_frame_with_a_foreign_buffer_stays_the_callers),
	    cmocka_unit_test(a_chunk_that_ends_within_a_frame_waits_for_the_frame),
	    cmocka_unit_test(a_card_that_writes_over_descriptors_gets_no_buffer_twice),
	};

	return cmocka_run_group_tests_name("jumbo_tx", tests, rig_group_setup, NULL);
}
