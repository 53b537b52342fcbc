/* SPDX-License-Identifier: BSD-3-Clause */
/* Test frames are right at every size, by a checksum written apart from the code under test. */
#include <ixdp/ixdp.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { IP = 14, UDP = 34, TEST = 42, PATTERN = 58 };

static const struct ixdp_frame_config config = {
    .size = 60,
    .generator = 0x1234,
    .dst_mac = {0x02, 1, 2, 3, 4, 5},
    .src_mac = {0x02, 6, 7, 8, 9, 10},
};

static unsigned be16(const uint8_t *p) { return p[0] << 8 | p[1]; }

static uint64_t be(const uint8_t *p, unsigned bytes) {
	uint64_t n = 0;

	while (bytes--)
		n = n << 8 | *p++;
	return n;
}

/* RFC 1071 to the letter: byte pairs, the last one filled up with zero, carries added at the end.
 */
static uint32_t plain_sum(const uint8_t *data, size_t len) {
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? data[i] : data[i] << 8;
	return sum;
}

static unsigned checksum(uint32_t sum, unsigned *folds) {
	*folds = 0;
	for (; sum >> 16; ++*folds)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return ~sum & 0xFFFF;
}

static unsigned ip_checksum(const uint8_t *frame, unsigned *folds) {
	uint8_t header[20];

	memcpy(header, frame + IP, 20);
	header[10] = header[11] = 0;
	return checksum(plain_sum(header, 20), folds);
}

/* As it is to be sent: never 0. */
static unsigned udp_checksum(const uint8_t *frame, size_t len, unsigned *folds) {
	uint8_t datagram[IXDP_FRAME_MAX];
	size_t n = len - UDP;
	unsigned sum;

	memcpy(datagram, frame + UDP, n);
	datagram[6] = datagram[7] = 0;
	sum = checksum(plain_sum(frame + IP + 12, 8) + 17 + (uint32_t)n + plain_sum(datagram, n),
		       folds);
	return sum ? sum : 0xFFFF;
}

static void check_frame(const uint8_t *frame, size_t len, unsigned flow, uint64_t seq) {
	struct ixdp_frame_id id;
	unsigned folds;

	assert_memory_equal(frame, config.dst_mac, 6);
	assert_memory_equal(frame + 6, config.src_mac, 6);
	assert_int_equal(be16(frame + 12), 0x0800);
	assert_int_equal(frame[IP], 0x45);
	assert_int_equal(be16(frame + IP + 2), len - 14);
	assert_int_equal(frame[IP + 9], 17);
	assert_int_equal(be16(frame + IP + 10), ip_checksum(frame, &folds));
	assert_int_equal(be16(frame + UDP + 4), len - 34);
	assert_int_equal(be16(frame + UDP + 6), udp_checksum(frame, len, &folds));
	assert_int_equal(be16(frame + TEST + 4), config.generator);
	assert_int_equal(be16(frame + TEST + 6), flow);
	assert_int_equal(be(frame + TEST + 8, 8), seq);

	assert_int_equal(ixdp_frame_read(frame, len, &id), IXDP_FRAME_GOOD);
	assert_int_equal(id.generator, config.generator);
	assert_int_equal(id.flow, flow);
	assert_int_equal(id.seq, seq);
}

static void lengths_and_checksums_are_right_at_every_size(void **state) {
	struct ixdp_frame_config cfg = config;
	uint8_t frame[IXDP_FRAME_MAX + 1];

	(void)state;
	for (cfg.size = IXDP_FRAME_MIN; cfg.size <= IXDP_FRAME_MAX; cfg.size++) {
		/* Of the largest sizes, one of each will do: they take their time. */
		for (unsigned i = cfg.size > 2000 ? 7 : 0; i < 8; i++) {
			unsigned flow = i * 9973 + cfg.size;
			uint64_t seq = (UINT64_C(1) << (i * 8)) + cfg.size;

			frame[cfg.size] = 0xA5;
			assert_int_equal(ixdp_frame_write(&cfg, (uint16_t)flow, seq, frame),
					 cfg.size);
			assert_int_equal(frame[cfg.size], 0xA5);
			check_frame(frame, cfg.size, (uint16_t)flow, seq);
		}
	}
}

/*
 * Carries of the first fold that carry again. All flows: source address and port go through all
 * values there are.
 */
static void sums_that_fold_twice_are_right(void **state) {
	uint8_t frame[60];
	unsigned ip_twice = 0;
	unsigned udp_twice = 0;

	(void)state;
	for (unsigned flow = 0; flow < IXDP_FRAME_MAX_FLOWS; flow++) {
		unsigned folds;

		ixdp_frame_write(&config, (uint16_t)flow, 0, frame);
		check_frame(frame, 60, flow, 0);
		ip_checksum(frame, &folds);
		ip_twice += folds >= 2;
		udp_checksum(frame, 60, &folds);
		udp_twice += folds >= 2;
	}
	assert_true(ip_twice > 0);
	assert_true(udp_twice > 0);
}

/* RFC 768: 0 would say that there is no checksum, and is no test frame's then. */
static void udp_checksum_of_zero_is_sent_as_ones(void **state) {
	struct ixdp_frame_id id;
	unsigned found = 0;
	uint8_t frame[60];

	(void)state;
	for (uint64_t seq = 0; seq < 400000; seq++) {
		ixdp_frame_write(&config, 0, seq, frame);
		assert_int_not_equal(be16(frame + UDP + 6), 0);
		if (be16(frame + UDP + 6) == 0xFFFF) {
			check_frame(frame, 60, 0, seq);
			frame[UDP + 6] = frame[UDP + 7] = 0;
			assert_int_equal(ixdp_frame_read(frame, 60, &id), IXDP_FRAME_CORRUPT);
			found++;
		}
	}
	assert_true(found > 0);
}

static void every_flow_has_its_own_source_address_and_port(void **state) {
	static bool addresses[65536 + 2];
	static bool ports[65536];
	uint8_t frame[60];

	(void)state;
	for (unsigned flow = 0; flow < IXDP_FRAME_MAX_FLOWS; flow++) {
		uint32_t address;

		ixdp_frame_write(&config, (uint16_t)flow, 7, frame);
		address = (uint32_t)be(frame + IP + 12, 4) - 0xC6120000; /* 198.18.0.0/15 */
		assert_true(address < 65536 + 2);
		assert_false(addresses[address]);
		addresses[address] = true;
		assert_false(ports[be16(frame + UDP)]);
		ports[be16(frame + UDP)] = true;
	}
}

static void every_damaged_bit_is_noticed(void **state) {
	struct ixdp_frame_config cfg = config;
	struct ixdp_frame_id id;
	uint8_t frame[131];

	(void)state;
	cfg.size = sizeof(frame);
	ixdp_frame_write(&cfg, 5, 77, frame);
	for (unsigned bit = 12 * 8; bit < sizeof(frame) * 8; bit++) {
		bool magic = bit / 8 >= TEST && bit / 8 < TEST + 4;

		frame[bit / 8] ^= 1 << bit % 8;
		assert_int_equal(ixdp_frame_read(frame, sizeof(frame), &id),
				 magic ? IXDP_FRAME_FOREIGN : IXDP_FRAME_CORRUPT);
		frame[bit / 8] ^= 1 << bit % 8;
	}
	assert_int_equal(ixdp_frame_read(frame, sizeof(frame), &id), IXDP_FRAME_GOOD);
}

/* A buffer written again while the NIC still reads it: both halves are whole, but not of one frame.
 */
static void the_end_of_another_frame_is_noticed(void **state) {
	struct ixdp_frame_config cfg = config;
	uint8_t first[300];
	uint8_t second[300];
	struct ixdp_frame_id id;
	unsigned folds;
	unsigned sum;

	(void)state;
	cfg.size = sizeof(first);
	ixdp_frame_write(&cfg, 1, 100, first);
	ixdp_frame_write(&cfg, 1, 101, second);
	memcpy(first + 128, second + 128, sizeof(first) - 128);
	/* With a checksum that fits: it is the pattern that gives it away. */
	sum = udp_checksum(first, sizeof(first), &folds);
	first[UDP + 6] = (uint8_t)(sum >> 8);
	first[UDP + 7] = (uint8_t)sum;
	assert_int_equal(ixdp_frame_read(first, sizeof(first), &id), IXDP_FRAME_CORRUPT);
}

/* Each in memory of its own, which a sanitizer watches. */
static void a_frame_of_another_length_is_corrupt(void **state) {
	struct ixdp_frame_config cfg = config;
	struct ixdp_frame_id id;
	uint8_t frame[200] = {0};

	(void)state;
	cfg.size = 100;
	ixdp_frame_write(&cfg, 1, 2, frame);
	for (size_t len = 1; len <= sizeof(frame); len++) {
		uint8_t *cut = malloc(len);
		enum ixdp_frame_verdict verdict;

		memcpy(cut, frame, len);
		verdict = ixdp_frame_read(cut, len, &id);
		free(cut);
		if (len < TEST + 4)
			assert_int_equal(verdict, IXDP_FRAME_FOREIGN);
		else
			assert_int_equal(verdict,
					 len == 100 ? IXDP_FRAME_GOOD : IXDP_FRAME_CORRUPT);
	}
}

/* With checksums that fit, so that only the lengths speak against it. */
static void lengths_that_contradict_each_other_are_corrupt(void **state) {
	struct ixdp_frame_id id;
	uint8_t frame[60];
	unsigned folds;
	unsigned sum;

	(void)state;
	ixdp_frame_write(&config, 0, 0, frame);
	frame[IP + 3]++;
	sum = ip_checksum(frame, &folds);
	frame[IP + 10] = (uint8_t)(sum >> 8);
	frame[IP + 11] = (uint8_t)sum;
	assert_int_equal(ixdp_frame_read(frame, 60, &id), IXDP_FRAME_CORRUPT);
}

static void generators_differ(void **state) {
	uint16_t first = ixdp_frame_generator();

	(void)state;
	assert_int_not_equal(first, ixdp_frame_generator());
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lengths_and_checksums_are_right_at_every_size),
	    cmocka_unit_test(sums_that_fold_twice_are_right),
	    cmocka_unit_test(udp_checksum_of_zero_is_sent_as_ones),
	    cmocka_unit_test(every_flow_has_its_own_source_address_and_port),
	    cmocka_unit_test(every_damaged_bit_is_noticed),
	    cmocka_unit_test(the_end_of_another_frame_is_noticed),
	    cmocka_unit_test(a_frame_of_another_length_is_corrupt),
	    cmocka_unit_test(lengths_that_contradict_each_other_are_corrupt),
	    cmocka_unit_test(generators_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
