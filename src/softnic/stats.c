/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics, section 8.2.3.23. A read clears a counter, one that is full stays full. Octets have
 * 36 bits in two registers: reading the low one takes the whole count and keeps the high part for
 * the read of the high one, so the low one comes first.
 */
#include "nic.h"

#include <string.h>

void nic_count(struct softnic *nic, uint32_t reg, uint64_t events) {
	uint32_t *count = &nic->regs[reg / 4];

	*count = likely(events <= UINT32_MAX - *count) ? *count + events : UINT32_MAX;
}

void nic_count_octets(struct softnic *nic, uint32_t reg_low, uint64_t octets) {
	const uint64_t full = (UINT64_C(1) << 36) - 1;
	uint32_t *low = &nic->regs[reg_low / 4];
	uint64_t count = ((uint64_t)low[1] << 32 | low[0]) + octets;

	if (unlikely(count > full)) count = full;
	low[0] = (uint32_t)count;
	low[1] = count >> 32;
}

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

/* Four queues have their counter's number in one register, a byte each. */
unsigned nic_rx_counter(const struct softnic *nic, unsigned queue) {
	return NIC_REG_N(nic, RQSMR, queue / 4) >> queue % 4 * 8 & 0xF;
}

unsigned nic_tx_counter(const struct softnic *nic, unsigned queue) {
	return NIC_REG_N(nic, TQSM, queue / 4) >> queue % 4 * 8 & 0xF;
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
