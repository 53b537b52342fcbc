/* SPDX-License-Identifier: BSD-3-Clause */
/* Reset, link, semaphores, interrupt causes: registers that are not about queues. */
#include "nic.h"

#include <string.h>

enum { RESETS_APART_NS = 1000 }; /* two resets closer than that count as one, section 5.2.5.3.2 */

void nic_reset(struct softnic *nic) {
	/* The semaphores are there to be shared with others, whom a reset of this port leaves
	 * alone. */
	uint32_t swsm = NIC_REG(nic, SWSM);
	uint32_t sw_fw_sync = NIC_REG(nic, SW_FW_SYNC);
	uint64_t now = softnic_now_ns(nic);
	uint32_t low, high = 0;

	nic_reg_reset(nic);
	NIC_REG(nic, SWSM) = swsm;
	NIC_REG(nic, SW_FW_SYNC) = sw_fw_sync;

	/*
	 * The first receive address comes out of the EEPROM, section 8.2.3.7.9. With the wrong-mac
	 * fault it is that of a group.
	 */
	memcpy(&low, nic->mac, 4);
	memcpy(&high, nic->mac + 4, 2);
	NIC_REG_N(nic, RAL, 0) = le32toh(low) | nic_fault(nic, FAULT_WRONG_MAC);
	NIC_REG_N(nic, RAH, 0) = le32toh(high) | RAH_AV;
	nic_filter_addresses(nic);

	for (unsigned n = 0; n < NIC_RX_QUEUES; n++) {
		__atomic_store_n(&nic->rx[n].doorbell, 0, __ATOMIC_RELAXED);
		nic->rx[n].switching = false;
	}
	for (unsigned n = 0; n < NIC_TX_QUEUES; n++) {
		__atomic_store_n(&nic->tx[n].doorbell, 0, __ATOMIC_RELAXED);
		nic->tx[n].switching = false;
	}
	memset(nic->tx_on, 0, sizeof(nic->tx_on));
	memset(nic->octets_high, 0, sizeof(nic->octets_high));
	nic->fifo.begin = nic->fifo.end = nic->fifo.used = 0;
	nic->late_count = 0;
	nic->paused_until = 0;
	nic->xoff = false;

	if (nic->wedged > 0 && now - nic->reset_at >= RESETS_APART_NS) nic->wedged--;
	nic->reset_at = now;
	nic_link_restart(nic);
}

void nic_link_restart(struct softnic *nic) {
	nic->link_at = softnic_now_ns(nic);
	if (nic_fault(nic, FAULT_LINK_LATE))
		nic->link_at += nic->fault_arg[FAULT_LINK_LATE] * 1000000;
}

/* The link-flap fault: up and down in turn, so many times down, then up for good. */
static bool flapped_down(const struct softnic *nic, uint64_t now) {
	uint64_t phase;

	if (!nic_fault(nic, FAULT_LINK_FLAP)) return false;
	phase = (now - nic->link_at) / nic->flap_ns;
	return phase % 2 == 1 && phase / 2 < nic->fault_arg[FAULT_LINK_FLAP];
}

bool nic_link_up(struct softnic *nic) {
	uint64_t now = softnic_now_ns(nic);
	bool up =
	    !nic_fault(nic, FAULT_LINK_DOWN) && now >= nic->link_at && !flapped_down(nic, now);

	if (up != nic->link) NIC_REG(nic, EICR) |= EICR_LSC;
	nic->link = up;
	return up;
}

bool nic_dma_on(const struct softnic *nic) {
	return nic->bus_master && !(NIC_REG(nic, CTRL) & CTRL_MASTER_DISABLE) && !nic->wedged &&
	       !nic_fault(nic, FAULT_ALL_ONES);
}

void nic_write_ctrl(struct softnic *nic, unsigned n, uint32_t value) {
	(void)n;
	if (value & (CTRL_RST | CTRL_LRST) && !nic_fault(nic, FAULT_RESET_STUCK)) {
		nic_reset(nic);
		return;
	}
	/*
	 * A DMA that never ends keeps the master enabled, and then one reset is not enough: the
	 * first leaves it stuck in the NIC, section 5.2.5.3.2.
	 */
	if (value & CTRL_MASTER_DISABLE && nic_fault(nic, FAULT_MASTER_STUCK)) {
		nic->wedged = 2;
		nic->reset_at = 0;
	}
	NIC_REG(nic, CTRL) = value;
}

uint32_t nic_read_status(struct softnic *nic, unsigned n, uint32_t stored) {
	uint32_t ctrl = NIC_REG(nic, CTRL);

	(void)n;
	if (nic_link_up(nic)) stored |= STATUS_LINK_UP;
	if (ctrl & CTRL_MASTER_DISABLE && !nic_fault(nic, FAULT_MASTER_STUCK))
		stored &= ~(uint32_t)STATUS_MASTER_ENABLE;
	return stored;
}

uint32_t nic_read_eec(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n;
	return nic_fault(nic, FAULT_EEPROM_STUCK) ? stored & ~(uint32_t)EEC_ARD : stored;
}

/* A read takes the semaphore if it was free, section 8.2.3.4.9. */
uint32_t nic_read_swsm(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n;
	NIC_REG(nic, SWSM) |= SWSM_SMBI;
	return nic_fault(nic, FAULT_SEMAPHORE_HELD) ? stored | SWSM_SMBI : stored;
}

uint32_t nic_read_rdrxctl(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n;
	return nic_fault(nic, FAULT_DMAI_STUCK) ? stored & ~(uint32_t)RDRXCTL_DMAIDONE : stored;
}

uint32_t nic_read_secrxstat(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n;
	return nic_fault(nic, FAULT_SECRX_STUCK) ? stored & ~(uint32_t)SECRXSTAT_RDY : stored;
}

uint32_t nic_read_links(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n;
	if (nic_link_up(nic)) stored |= LINKS_UP | FIELD(LINKS_SPEED, LINKS_SPEED_10G);
	return stored;
}

void nic_write_eicr(struct softnic *nic, unsigned n, uint32_t value) {
	(void)n;
	NIC_REG(nic, EICR) &= ~value;
}

void nic_write_eimc(struct softnic *nic, unsigned n, uint32_t value) {
	(void)n;
	NIC_REG(nic, EIMS) &= ~value;
}

/* The first 16 vectors are the same bits as in EIMC, section 8.2.3.5.9. */
void nic_write_eimc_ex(struct softnic *nic, unsigned n, uint32_t value) {
	if (n == 0) NIC_REG(nic, EIMS) &= ~(value & 0xFFFF);
}

void nic_write_fctrl(struct softnic *nic, unsigned n, uint32_t value) {
	uint32_t *fctrl = &NIC_REG(nic, FCTRL);

	(void)n;
	if (value != *fctrl && NIC_REG(nic, RXCTRL) & RXCTRL_RXEN &&
	    !(NIC_REG(nic, SECRXCTRL) & SECRXCTRL_RX_DIS))
		nic_violation(nic, VIOLATION_FCTRL_LIVE, REG_FCTRL,
			      "changed from 0x%08X to 0x%08X while frames are received: clear "
			      "RXCTRL.RXEN or set SECRXCTRL.RX_DIS first (8.2.3.7.1)",
			      *fctrl, value);
	*fctrl = value;
}

void nic_write_autoc(struct softnic *nic, unsigned n, uint32_t value) {
	(void)n;
	if (value & AUTOC_RESTART_AN) nic_link_restart(nic);
	NIC_REG(nic, AUTOC) = value & ~(uint32_t)AUTOC_RESTART_AN;
}
