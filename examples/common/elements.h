/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that take several array elements, which calls of the library never part. */
#pragma once

#include <ixdp/ixdp.h>

/* The longest frame that a port receives, bytes: the largest MTU, Ethernet header and VLAN tag. */
enum { ELEMENTS_MAX_FRAME = IXDP_MAX_MTU + 18 };

/* How many elements a frame of len bytes takes. */
unsigned elements_of(unsigned len);

/* How many an array needs so that ixdp_rx() has room for any frame: cfg's MTU says of which size.
 */
unsigned elements_of_mtu(unsigned mtu);

/* How many frames n elements are; the last one is whole. */
unsigned elements_frames(const struct ixdp_pkt *pkts, unsigned n);

/*
 * The bytes of the frame that begins at pkts[0]: in its packet buffer, or put together in room.
 * room: ELEMENTS_MAX_FRAME bytes; len: receives the frame's length; n: its number of elements.
 */
const uint8_t *elements_gather(const struct ixdp_pkt *pkts, uint8_t *room, unsigned *len,
			       unsigned *n);

/* Puts a frame of len bytes into pkts, as many empty packets as elements_of() says. */
void elements_scatter(struct ixdp_pkt *pkts, const uint8_t *data, unsigned len);
