/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that go out of a port, around, and in again: whether it sends and receives at all. */
#pragma once

#include <ixdp/ixdp.h>

/*
 * Opens a port whose wire sends everything back, sends so many test frames, and counts what comes
 * back, at most for LOOP_LIMIT_S. Returns 0, or -errno with ixdp_error() when it cannot be opened.
 */
int loop_frames(const char *device, unsigned frames, struct ixdp_frame_counts *counts);

enum { LOOP_LIMIT_S = 20 }; /* far above what a busy machine needs for 1,000 frames */
