/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics, section 8.2.3.23. A read clears a counter, one that is full stays full. Octets have
 * 36 bits in two registers: reading the low one takes the whole count and keeps the high part for
 * the read of the high one, so the low one comes first.
 */
#include "nic.h"

#include <string.h>

void nic_count_size(struct softnic *nic, uint32_t reg_first, size_t len) {
	static const size_t ends[] = {64, 127, 255, 511, 1023};
	unsigned class = 0;

	while (class < 5 && len + NIC_FCS > ends[class])
		class ++;
	nic_count(nic, reg_first + 4 * class, 1);
}

bool nic_is_broadcast(const uint8_t *frame) {
	static const uint8_t broadcast[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

	return memcmp(frame, broadcast, sizeof(broadcast)) == 0;
}

void nic_count_sent(struct softnic *nic, const uint8_t *frame, size_t len) {
	nic_count(nic, REG_GPTC, 1);
	nic_count(nic, REG_TPT, 1);
	nic_count_octets(nic, REG_GOTCL, len + NIC_FCS);
	nic_count_size(nic, REG_PTC, len);
	if (len >= 6 && frame[0] & 1)
		nic_count(nic, nic_is_broadcast(frame) ? REG_BPTC : REG_MPTC, 1);
}

/* Octet counters, and what the last read of the low half has left of each. */
enum { GORC, GOTC, TOR, QBRC, QBTC = QBRC + REG_QBRCL_COUNT };
_Static_assert(QBTC + (int)REG_QBTCL_COUNT == NIC_OCTETS, "a place for each counter");

static uint32_t take(struct softnic *nic, unsigned which, uint32_t reg_low) {
	uint32_t *low = &nic->regs[reg_low / 4];
	uint32_t octets = *low;

	nic->octets_high[which] = low[1];
	low[0] = 0;
	low[1] = 0;
	return octets;
}

static uint32_t high_part(struct softnic *nic, unsigned which) {
	uint32_t high = nic->octets_high[which];

	nic->octets_high[which] = 0;
	return high;
}

/* What the register table calls for the two halves of a counter. */
#define OCTETS(name, NAME)                                                                         \
	uint32_t nic_read_##name##_low(struct softnic *nic, unsigned n, uint32_t stored) {         \
		(void)stored;                                                                      \
		return take(nic, NAME + n, REG_N(NAME##L, n));                                     \
	}                                                                                          \
	uint32_t nic_read_##name##_high(struct softnic *nic, unsigned n, uint32_t stored) {        \
		(void)stored;                                                                      \
		return high_part(nic, NAME + n);                                                   \
	}
OCTETS(gorc, GORC)
OCTETS(gotc, GOTC)
OCTETS(tor, TOR)
OCTETS(qbrc, QBRC)
OCTETS(qbtc, QBTC)
#undef OCTETS
