/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that lie in several packet elements. */
#pragma once

#include "rig.h"

#include <string.h>

/* Numbers that are the same in every run. */
static inline unsigned random_number(uint32_t *state, unsigned limit) {
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % limit;
}

/* Puts a frame into buffers of its own, in parts of these sizes; flags are the frame's. */
static inline void scatter(struct rig *rig, const uint8_t *frame, const unsigned *sizes, unsigned k,
			   uint32_t flags, struct ixdp_pkt *pkts) {
	assert_int_equal(ixdp_alloc(rig->pool, pkts, k), k);
	for (unsigned i = 0; i < k; frame += sizes[i++]) {
		memcpy(pkts[i].data, frame, sizes[i]);
		pkts[i].len = sizes[i];
		pkts[i].flags = (i + 1 < k ? IXDP_PKT_CONTD : 0) | (i == 0 ? flags : 0);
	}
}

/* Sizes of k parts, the first of `least` bytes or more, that make up a frame of len. */
static inline void cut(uint32_t *state, unsigned len, unsigned least, unsigned k, unsigned *sizes) {
	unsigned left = len - least;

	for (unsigned i = 0; i < k; i++) {
		unsigned others = k - 1 - i;
		/* What the others cannot hold must be here, and they have a byte or more. */
		unsigned min = left > others * IXDP_DATA_SIZE ? left - others * IXDP_DATA_SIZE : 1;
		unsigned max = left - others;

		if (i == 0) min = min > 1 ? min : 0;
		if (max > IXDP_DATA_SIZE - (i == 0 ? least : 0))
			max = IXDP_DATA_SIZE - (i == 0 ? least : 0);
		sizes[i] = others == 0 ? left : min + random_number(state, max - min + 1);
		left -= sizes[i];
	}
	sizes[0] += least;
}

/* Bytes of the frame that begins at pkts, which are copied to `frame`; elements: how many. */
static inline unsigned gather(const struct ixdp_pkt *pkts, unsigned n, uint8_t *frame,
			      unsigned *elements) {
	unsigned len = 0, k = 0;

	do {
		assert_true(k < n);
		assert_in_range(pkts[k].len, 1, IXDP_DATA_SIZE);
		assert_int_equal(pkts[k].headroom, IXDP_HEADROOM);
		if (k > 0) assert_int_equal(pkts[k].flags & ~(unsigned)IXDP_PKT_CONTD, 0);
		memcpy(frame + len, pkts[k].data, pkts[k].len);
		len += pkts[k].len;
	} while (pkts[k++].flags & IXDP_PKT_CONTD);
	*elements = k;
	return len;
}

/* A test frame of len bytes. */
static inline void write_frame(uint8_t *frame, unsigned len, uint64_t seq) {
	struct ixdp_frame_config cfg = {.size = len, .dst_mac = {2}, .src_mac = {2}};

	ixdp_frame_write(&cfg, 0, seq, frame);
}
