/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive side scaling, section 7.1.2.8: the Toeplitz hash of a frame's addresses and ports picks
 * an entry of the redirection table, which says the queue.
 */
#include "nic.h"

/*
 * The hash so far, and the 32 bits of the key that come next with the 32 behind them. A bit of
 * input that is set adds (xor) the 32 bits of the key from its place on.
 */
struct toeplitz {
	const struct softnic *nic;
	unsigned position; /* in the key, bytes */
	uint32_t hash;
};

static uint8_t key_byte(const struct softnic *nic, unsigned k) {
	return NIC_REG_N(nic, RSSRK, k / 4) >> k % 4 * 8;
}

static void add(struct toeplitz *t, const uint8_t *data, size_t len) {
	for (size_t i = 0; i < len; i++, t->position++) {
		uint64_t key = 0;

		for (unsigned k = 0; k < 5; k++)
			key = key << 8 | key_byte(t->nic, t->position + k);
		for (int bit = 7; bit >= 0; bit--)
			if (data[i] >> bit & 1) t->hash ^= (uint32_t)(key >> (bit + 1));
	}
}

/* The RSS type of a frame: the most of it that MRQC lets count, section 7.1.2.8.1. */
static enum rxd_rss rss_type(const struct nic_headers *h, uint32_t mrqc) {
	if (h->types & RXD_TYPE_IPV4) {
		if (h->types & RXD_TYPE_TCP && mrqc & MRQC_TCP_IPV4) return RXD_RSS_TCP_IPV4;
		if (h->types & RXD_TYPE_UDP && mrqc & MRQC_UDP_IPV4) return RXD_RSS_UDP_IPV4;
		return mrqc & MRQC_IPV4 ? RXD_RSS_IPV4 : RXD_RSS_NONE;
	}
	if (h->types & RXD_TYPE_IPV6) {
		if (h->types & RXD_TYPE_TCP && mrqc & MRQC_TCP_IPV6) return RXD_RSS_TCP_IPV6;
		if (h->types & RXD_TYPE_UDP && mrqc & MRQC_UDP_IPV6) return RXD_RSS_UDP_IPV6;
		return mrqc & MRQC_IPV6 ? RXD_RSS_IPV6 : RXD_RSS_NONE;
	}
	return RXD_RSS_NONE;
}

void nic_rss(const struct softnic *nic, struct nic_frame *frame) {
	uint32_t mrqc = NIC_REG(nic, MRQC);
	const struct nic_headers *h = &frame->headers;
	const uint8_t *l3 = frame->data + h->l3;
	struct toeplitz t = {.nic = nic};
	unsigned entry;

	frame->rss = rss_type(h, mrqc);
	if (frame->rss == RXD_RSS_NONE) return;
	if (h->types & RXD_TYPE_IPV4) /* source and destination are neighbours in the header */
		add(&t, l3 + 12, 8);
	else
		add(&t, l3 + 8, 32);
	if (frame->rss != RXD_RSS_IPV4 && frame->rss != RXD_RSS_IPV6)
		add(&t, frame->data + h->l4, 4);
	frame->hash = t.hash;
	entry = t.hash & 0x7F;
	frame->queue = NIC_REG_N(nic, RETA, entry / 4) >> entry % 4 * 8 & 0xF;
}

void nic_write_mrqc(struct softnic *nic, unsigned n, uint32_t value) {
	unsigned mode = FIELD_GET(MRQC_MRQE, value);

	(void)n;
	if (mode != MRQC_MRQE_NONE && mode != MRQC_MRQE_RSS)
		nic_violation(nic, VIOLATION_UNKNOWN_MODE, REG_MRQC,
			      "mode %u: this NIC spreads by RSS (1) or not at all (0); it will not",
			      mode);
	NIC_REG(nic, MRQC) = value;
}
