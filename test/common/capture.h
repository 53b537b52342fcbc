/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture files of made-up frames: frame number n is of any length, and no test frame. */
#pragma once

#include <ixdp/ixdp.h>

/* Every length of a frame, at an MTU of 1,500, occurs in so many. */
enum { CAPTURE_LENGTHS = 1514 - IXDP_FRAME_MIN + 1 };

/* Writes frame `number` to data. Returns its length. */
unsigned capture_frame(unsigned number, uint8_t data[IXDP_FRAME_MAX]);

/* Makes a file of the frames 0 to frames - 1. */
void capture_write(const char *path, unsigned frames);

/*
 * The file must hold frames 0, 1, 2 ... whole, or their first snaplen bytes, up to its end, where
 * no half a frame may be. Their times must not go back. Returns how many there are.
 */
unsigned capture_read(const char *path, unsigned snaplen);
