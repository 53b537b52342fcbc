/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames are for this port: addresses, hash tables, promiscuous modes, VLANs (7.1.1). */
#include "nic.h"

#include <string.h>

/* Addresses above the last valid one need not be looked at for every frame. */
void nic_filter_addresses(struct softnic *nic) {
	nic->rars = REG_RAH_COUNT;
	while (nic->rars > 0 && !(NIC_REG_N(nic, RAH, nic->rars - 1) & RAH_AV))
		nic->rars--;
}

void nic_write_rah(struct softnic *nic, unsigned n, uint32_t value) {
	NIC_REG_N(nic, RAH, n) = value;
	nic_filter_addresses(nic);
}

static bool is_ours(const struct softnic *nic, const uint8_t *mac) {
	uint32_t low;
	uint16_t high;

	memcpy(&low, mac, 4);
	memcpy(&high, mac + 4, 2);
	low = le32toh(low);
	high = le16toh(high);
	for (unsigned n = 0; n < nic->rars; n++) {
		uint32_t rah = NIC_REG_N(nic, RAH, n);

		if (rah & RAH_AV && NIC_REG_N(nic, RAL, n) == low &&
		    FIELD_GET(RAH_ADDR, rah) == high)
			return true;
	}
	return false;
}

/* 12 of the 16 last bits of the address, which ones says MCSTCTRL.MO, pick a bit of the table. */
static bool is_hashed(const struct softnic *nic, uint32_t table, const uint8_t *mac) {
	static const unsigned shifts[] = {4, 3, 2, 0};
	unsigned mo = FIELD_GET(MCSTCTRL_MO, NIC_REG(nic, MCSTCTRL));
	unsigned bit = (mac[4] | mac[5] << 8) >> shifts[mo] & 0xFFF;

	return nic->regs[table / 4 + bit / 32] >> bit % 32 & 1;
}

static enum nic_match match_address(const struct softnic *nic, const uint8_t *frame) {
	uint32_t fctrl = NIC_REG(nic, FCTRL);

	if (nic_fault(nic, FAULT_NO_FILTER)) return NIC_MATCH_INEXACT;
	if (nic_is_broadcast(frame)) return fctrl & FCTRL_BAM ? NIC_MATCH_EXACT : NIC_MATCH_NONE;
	if (is_ours(nic, frame)) return NIC_MATCH_EXACT;
	if (frame[0] & 1) {
		if (fctrl & FCTRL_MPE ||
		    (NIC_REG(nic, MCSTCTRL) & MCSTCTRL_MFE && is_hashed(nic, REG_MTA, frame)))
			return NIC_MATCH_INEXACT;
	} else if (fctrl & FCTRL_UPE || is_hashed(nic, REG_UTA, frame)) {
		return NIC_MATCH_INEXACT;
	}
	return NIC_MATCH_NONE;
}

/* A frame without tag passes every VLAN filter, section 7.1.1.2. */
static bool is_our_vlan(const struct softnic *nic, const struct nic_headers *h) {
	uint32_t vlnctrl = NIC_REG(nic, VLNCTRL);
	unsigned vid = h->tag & 0xFFF;
	bool cfi = h->tag & 0x1000;

	if (!(vlnctrl & VLNCTRL_VFE) || !h->tagged) return true;
	if (vlnctrl & VLNCTRL_CFIEN && cfi != !!(vlnctrl & VLNCTRL_CFI)) return false;
	return NIC_REG_N(nic, VFTA, vid / 32) >> vid % 32 & 1;
}

enum nic_match nic_filter(const struct softnic *nic, const struct nic_frame *frame) {
	if (!is_our_vlan(nic, &frame->headers)) return NIC_MATCH_NONE;
	return match_address(nic, frame->data);
}
