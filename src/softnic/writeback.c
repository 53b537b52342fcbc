/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the descriptors of a received frame say of it, sections 7.1.5 and 7.1.6.2. Nothing but DD
 * and the length is said before the last one.
 */
#include "nic.h"

/* Errors of legacy descriptors follow the 8 bits of status, which both kinds have in common. */
enum { LEGACY_RXE = 1 << 8, LEGACY_L4E = 1 << 14, LEGACY_IPE = 1 << 15 };

void nic_writeback_of(const struct softnic *nic, const struct nic_frame *frame,
		      struct nic_writeback *wb) {
	const struct nic_headers *h = &frame->headers;
	bool damaged = frame->bad_crc || frame->undersize;
	uint32_t word = 0;

	wb->status = frame->inexact ? RXD_PIF : 0;
	if (h->tagged) wb->status |= RXD_VP;
	wb->vlan = nic_strips_vlan(nic, frame) ? h->tag : 0;
	if (!damaged && !nic_fault(nic, FAULT_NO_OFFLOAD))
		wb->status |= nic_checksum_status(frame->data, h);
	if (frame->bad_crc) wb->status |= RXD_ERR_CE;
	if (frame->undersize) wb->status |= RXD_ERR_USE;

	wb->qw0 = (uint64_t)(damaged ? 0 : h->types) << RXD_TYPE_LOW;
	/* The same word is either the hash or the identification of IPv4. */
	if (NIC_REG(nic, RXCSUM) & RXCSUM_PCSD) {
		wb->qw0 |= frame->rss;
		word = frame->hash;
	} else if (h->types & RXD_TYPE_IPV4) {
		word = nic_be16(frame->data + h->l3 + 4);
	}
	wb->qw0 |= (uint64_t)word << RXD_HASH_LOW;
}

uint64_t nic_writeback_qw1(const struct nic_writeback *wb, bool advanced, bool last, size_t len) {
	uint64_t status = RXD_DD | (last ? RXD_EOP | wb->status : 0);
	uint64_t vlan = last ? (uint64_t)wb->vlan << RXD_VLAN_LOW : 0;
	uint64_t legacy;

	if (advanced) return status | (uint64_t)len << RXD_LEN_LOW | vlan;
	legacy = status & 0xFF;
	if (status & (RXD_ERR_CE | RXD_ERR_USE)) legacy |= LEGACY_RXE;
	if (status & RXD_L4E) legacy |= LEGACY_L4E;
	if (status & RXD_IPE) legacy |= LEGACY_IPE;
	return len | legacy << 32 | vlan;
}
