/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture files of made-up frames: frame number n is of any length, and no test frame. */
#pragma once

#include <ixdp/ixdp.h>

enum {
	/* Every length of a frame, at an MTU of 1,500, occurs in so many. */
	CAPTURE_LENGTHS = 1514 - IXDP_FRAME_MIN + 1,
	/* From this number on lengths are those of an MTU of 9,000, every second one at an edge. */
	CAPTURE_JUMBO = 1000000,
};

/* Writes frame `number` to data. Returns its length. */
unsigned capture_frame(unsigned number, uint8_t data[IXDP_FRAME_MAX]);

/* Makes a file of so many frames, of which the first one has this number. */
void capture_write(const char *path, unsigned first, unsigned frames);

/*
 * The file must hold frames first, first + 1 ... whole, or their first snaplen bytes, up to its
 * end, where no half a frame may be. Their times must not go back. Returns how many there are.
 */
unsigned capture_read(const char *path, unsigned first, unsigned snaplen);
