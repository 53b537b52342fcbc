/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets as a driver prepares them for the offloads of the software NIC. */
#pragma once

#include "nic_packets.h"
#include "nic_rig.h"

/*
 * Takes the checksums out again: IPv4's is 0, TCP's and UDP's are the sum of the pseudo header,
 * with the transport's length or (for segmentation) without.
 */
static inline void unfill_checksums(uint8_t *frame, const struct packet *p, bool with_len) {
	size_t len = with_len ? p->len - p->l4 : 0;
	uint8_t *l4 = frame + p->l4;

	if (p->ip == 4) put16(frame + p->l3 + 10, 0);
	if (p->protocol == SCTP)
		memset(l4 + 8, 0, 4);
	else
		put16(l4 + (p->protocol == TCP ? 16 : 6),
		      pseudo_sum(frame + p->l3, p->protocol, len));
}

/* A context descriptor at place i of queue 0, for a packet that make_packet() has made. */
static inline void put_context_mss(unsigned i, unsigned index, const struct packet *p,
				   unsigned vlan, unsigned mss) {
	uint64_t type = p->protocol == TCP    ? 1
			: p->protocol == UDP  ? 0
			: p->protocol == SCTP ? 2
					      : 3;
	uint64_t ip_len = p->ip ? p->l4 - p->l3 : 0;

	rig.mem->tx[0][i] = (struct desc){
	    htole64(ip_len | (uint64_t)p->l3 << 9 | (uint64_t)vlan << 16),
	    htole64(TXD_DEXT | TXD_DTYP_CONTEXT | (p->ip == 4 ? 1 << 10 : 0) | type << 11 |
		    (uint64_t)index << 36 | (uint64_t)transport_header(p->protocol) << 40 |
		    (uint64_t)mss << 48)};
}

static inline void put_context(unsigned i, unsigned index, const struct packet *p, unsigned vlan) {
	put_context_mss(i, index, p, vlan, 0);
}
