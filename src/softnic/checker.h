/* SPDX-License-Identifier: BSD-3-Clause */
/* What wires want of a checker (frame.h) beyond what applications do. */
#pragma once

#include <ixdp/frame.h>

/*
 * Of one generator's frames, how many were seen or are known to be missing: those up to the latest
 * of each flow. Any thread, also while another one checks frames.
 */
uint64_t checker_accounted(const struct ixdp_frame_checker *checker, uint16_t generator);

/* Frames have passed elsewhere: the next of each flow is where it goes on, without a loss. */
void checker_rejoin(struct ixdp_frame_checker *checker);
