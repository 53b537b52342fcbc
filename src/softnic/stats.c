/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics, section 8.2.3.23. A read clears a counter, one that is full stays full. Octets have
 * 36 bits in two registers: reading the low one takes the whole count and keeps the high part for
 * the read of the high one, so the low one comes first.
 */
#include "nic.h"

enum { RECEIVED, SENT }; /* index of octets_high */

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

/* Four queues have their counter's number in one register, a byte each. */
unsigned nic_rx_counter(const struct softnic *nic, unsigned queue) {
	return NIC_REG_N(nic, RQSMR, queue / 4) >> queue % 4 * 8 & 0xF;
}

unsigned nic_tx_counter(const struct softnic *nic, unsigned queue) {
	return NIC_REG_N(nic, TQSM, queue / 4) >> queue % 4 * 8 & 0xF;
}

static uint32_t take(struct softnic *nic, unsigned which, uint32_t *low, uint32_t *high) {
	uint32_t octets = *low;

	nic->octets_high[which] = *high;
	*low = 0;
	*high = 0;
	return octets;
}

uint32_t nic_read_gorcl(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n, (void)stored;
	return take(nic, RECEIVED, &NIC_REG(nic, GORCL), &NIC_REG(nic, GORCH));
}

uint32_t nic_read_gotcl(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n, (void)stored;
	return take(nic, SENT, &NIC_REG(nic, GOTCL), &NIC_REG(nic, GOTCH));
}

static uint32_t high_part(struct softnic *nic, unsigned which) {
	uint32_t high = nic->octets_high[which];

	nic->octets_high[which] = 0;
	return high;
}

uint32_t nic_read_gorch(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n, (void)stored;
	return high_part(nic, RECEIVED);
}

uint32_t nic_read_gotch(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n, (void)stored;
	return high_part(nic, SENT);
}
