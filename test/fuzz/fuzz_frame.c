/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test frames of any content, read and followed by a checker. Frames that were written and then
 * damaged get further than bytes from nowhere: magic and checksums are right but for one byte.
 */
#include "fuzz.h"

static uint64_t last_seq;

/* A frame whose sequence number goes on from the last one's, or jumps. */
static uint16_t write_frame(struct input *in, uint8_t *frame, struct ixdp_frame_id *id) {
	struct ixdp_frame_config cfg = {.generator = input_u8(in) % 4};
	unsigned jump = input_u8(in);

	cfg.size = IXDP_FRAME_MIN + input_u16(in) % (IXDP_FRAME_MAX - IXDP_FRAME_MIN + 1);
	id->generator = cfg.generator;
	id->flow = jump & 0x80 ? input_u16(in) : 0;
	id->seq = last_seq + (int8_t)(jump << 2) / 4;
	if (jump & 0x40) id->seq += input_number(in, 8);
	last_seq = id->seq;
	return ixdp_frame_write(&cfg, id->flow, id->seq, frame);
}

/* One byte is not what was written: behind the addresses every one counts. */
static void check_damaged(struct input *in, uint8_t *frame, size_t len) {
	size_t at = 12 + input_u16(in) % (len - 12);
	uint8_t change = input_u8(in);
	struct ixdp_frame_id id;

	frame[at] ^= change ? change : 1;
	MUST(ixdp_frame_read(frame, len, &id) != IXDP_FRAME_GOOD, "byte %zu of %zu is wrong", at,
	     len);
}

static void check_written(const uint8_t *frame, size_t len, const struct ixdp_frame_id *id) {
	struct ixdp_frame_id read;

	MUST(ixdp_frame_read(frame, len, &read) == IXDP_FRAME_GOOD, "%zu bytes", len);
	MUST(read.generator == id->generator && read.flow == id->flow && read.seq == id->seq,
	     "generator %u, flow %u", read.generator, read.flow);
}

/* One frame for the checker, in memory of just its length, so that ASan sees a read behind it. */
static void feed(struct ixdp_frame_checker *checker, const uint8_t *frame, size_t len) {
	uint8_t *copy = malloc(len);

	if (len > 0) memcpy(copy, frame, len);
	ixdp_frame_check(checker, copy, len);
	free(copy);
}

static void one_frame(struct input *in, struct ixdp_frame_checker *checker) {
	unsigned kind = input_u8(in);
	uint8_t frame[IXDP_FRAME_MAX];
	struct ixdp_frame_id id;
	size_t len;

	if (kind % 4 == 0) {
		struct input raw = input_part(in, input_u16(in) % 2048);

		feed(checker, raw.data, raw.len);
		return;
	}
	len = write_frame(in, frame, &id);
	check_written(frame, len, &id);
	if (kind % 4 == 1) check_damaged(in, frame, len);
	if (kind % 4 == 2 && kind & 4) len = input_u16(in) % (len + 1);
	feed(checker, frame, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
	struct input in = {data, len};
	struct ixdp_frame_checker *checker = ixdp_frame_checker_new();
	struct ixdp_frame_counts counts;
	uint64_t frames = 0, distinct = 0;

	if (!checker) return 0;
	feed(checker, data, len);
	for (last_seq = 0; in.len > 0; frames++)
		one_frame(&in, checker);
	ixdp_frame_checker_counts(checker, &counts);
	for (unsigned g = 0; g < 4; g++)
		distinct += ixdp_frame_checker_seen(checker, g);
	MUST(counts.frames == frames + 1, "%llu", (unsigned long long)counts.frames);
	MUST(counts.good + counts.foreign + counts.corrupt == counts.frames, "a frame got lost");
	MUST(distinct + counts.duplicated <= counts.good, "seen more than there were");
	/* A gap is below 2^32 frames, and never negative. */
	MUST(counts.lost >> 32 <= counts.frames, "%llu lost", (unsigned long long)counts.lost);
	ixdp_frame_checker_free(checker);
	return 0;
}
