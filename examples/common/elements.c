/* SPDX-License-Identifier: BSD-3-Clause */
#include "elements.h"

#include <string.h>

unsigned elements_of(unsigned len) { return (len + IXDP_DATA_SIZE - 1) / IXDP_DATA_SIZE; }

unsigned elements_of_mtu(unsigned mtu) {
	return elements_of(mtu + ELEMENTS_MAX_FRAME - IXDP_MAX_MTU);
}

unsigned elements_frames(const struct ixdp_pkt *pkts, unsigned n) {
	unsigned frames = 0;

	for (unsigned i = 0; i < n; i++)
		frames += !(pkts[i].flags & IXDP_PKT_CONTD);
	return frames;
}

const uint8_t *elements_gather(const struct ixdp_pkt *pkts, uint8_t *room, unsigned *len,
			       unsigned *n) {
	unsigned i = 0;

	*len = pkts->len;
	*n = 1;
	if (!(pkts->flags & IXDP_PKT_CONTD)) return pkts->data;
	*len = 0;
	do {
		memcpy(room + *len, pkts[i].data, pkts[i].len);
		*len += pkts[i].len;
	} while (pkts[i++].flags & IXDP_PKT_CONTD);
	*n = i;
	return room;
}

void elements_scatter(struct ixdp_pkt *pkts, const uint8_t *data, unsigned len) {
	for (; len > IXDP_DATA_SIZE; pkts++, data += IXDP_DATA_SIZE, len -= IXDP_DATA_SIZE) {
		memcpy(pkts->data, data, IXDP_DATA_SIZE);
		pkts->len = IXDP_DATA_SIZE;
		pkts->flags = IXDP_PKT_CONTD;
	}
	memcpy(pkts->data, data, len);
	pkts->len = len;
}
