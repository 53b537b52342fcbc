/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC from whatever state it is in to running queues, in the order of datasheet section 4.6.3,
 * with 4.6.7 for receive and 4.6.8 for transmit; and back to silence. device_reset() ends what it
 * did before, for us or for a process that died. device_init() sets it up.
 * Where the datasheet leaves a choice or errs, the comment says so: CHOICE, UNCLEAR.
 */
#include "port.h"

#include <errno.h>

/* Packet buffers of the NIC in KB, as after reset: all in the first of eight. */
enum { RX_PACKET_BUFFER_KB = 512, TX_PACKET_BUFFER_KB = 160 };

enum {
	FCRTH_DISTANCE = 0x6000,     /* bytes left in an RX packet buffer that is full, 4.6.3.2 */
	FCRTL_DISTANCE = 0xC000,     /* and in one that has become empty enough again */
	TXPBTHRESH_DISTANCE_KB = 10, /* room for a frame of any size, section 8.2.3.9.16 */
	PAUSE_TIME = 0xFFFF,	     /* for how long to ask: as long as possible, in 51.2 ns */
	PAUSE_REFRESH = 0x8000,	     /* and when to ask again: well before that is over */
	DEFAULT_TX_QUEUES = 64,	     /* that MTQC's default mode can reach */
	TX_PTHRESH = 36, /* descriptors fetched ahead, section 7.2.3.4; with WTHRESH at most 40 */
	TX_HTHRESH = 8,	 /* and how many it takes to bother */
};

int reg_wait(struct ixdp_port *port, uint32_t reg, uint32_t mask, bool set, unsigned timeout_us,
	     const char *what) {
	const struct ixdp_bus_ops *ops = port->bus->ops;
	uint64_t deadline = ops->now_ns(port->bus) + timeout_us * UINT64_C(1000);
	bool late = false;
	for (;;) {
		uint32_t value = reg_read(port, reg);
		if ((value & mask) == (set ? mask : 0) && value != UINT32_MAX) return 0;
		if (value == UINT32_MAX && reg_read(port, REG_STATUS) == UINT32_MAX)
			return ixdp_fail(ENODEV, "%s: device has gone while waiting for %s",
					 port->bus->name, what);
		if (late) break;
		/* Looks once more after the deadline: we may have been preempted before it. */
		late = ops->now_ns(port->bus) >= deadline;
		delay_us(port, 100);
	}
	return ixdp_fail(ETIMEDOUT, "%s: %s (register 0x%05x, bits 0x%08x) is still %s after %u ms",
			 port->bus->name, what, reg, mask, set ? "clear" : "set",
			 timeout_us / 1000);
}

/* Section 4.6.3.1. The bits of all vectors; EIMC alone holds the first 31 of them. */
static void interrupts_off(struct ixdp_port *port) {
	reg_write(port, REG_EIMC, EIMC_ALL);
	reg_write(port, REG_N(EIMC_EX, 0), EIMC_EX_ALL);
	reg_write(port, REG_N(EIMC_EX, 1), EIMC_EX_ALL);
}

/* All queues: an earlier user may have left others on. ENABLE clears after all write-backs. */
static int queues_off(struct ixdp_port *port) {
	static const uint32_t first[] = {REG_RXDCTL, REG_RXDCTL_HIGH, REG_TXDCTL,
					 REG_N(TXDCTL, 64)};
	int err = 0;
	for (unsigned i = 0; i < 4 * 64 && !err; i++) {
		uint32_t reg = first[i / 64] + REG_RXDCTL_STRIDE * (i % 64);
		if (!(reg_read(port, reg) & RXDCTL_ENABLE)) continue;
		reg_clear(port, reg, RXDCTL_ENABLE);
		err = reg_wait(port, reg, RXDCTL_ENABLE, false, 10000,
			       i < 128 ? "RXDCTL.ENABLE" : "TXDCTL.ENABLE");
	}
	delay_us(port, 100); /* more, before the memory has another use: 4.6.7.1.2 (TX: 4.6.8.1) */
	return err;
}

/* Section 5.2.5.3.2: it finishes what it asked of memory and asks no more. False: it does not. */
static bool master_disable(struct ixdp_port *port) {
	reg_set(port, REG_CTRL, CTRL_MASTER_DISABLE);
	if (reg_wait(port, REG_STATUS, STATUS_MASTER_ENABLE, false, 80000,
		     "STATUS.MASTER_ENABLE") == 0)
		return true;

	ixdp_log(IXDP_LOG_WARNING, "%s; transactions are %spending; flushing and resetting twice",
		 ixdp_error(), port->bus->ops->transactions_pending(port->bus) ? "" : "not ");
	/* Packets that flow control or a dead link holds back go away when looped back. */
	reg_set(port, REG_HLREG0, HLREG0_LPBK);
	reg_clear(port, REG_RXCTRL, RXCTRL_RXEN);
	reg_set(port, REG_GCR_EXT, GCR_EXT_BUFFERS_CLEAR);
	delay_us(port, 20);
	reg_clear(port, REG_HLREG0, HLREG0_LPBK);
	reg_clear(port, REG_GCR_EXT, GCR_EXT_BUFFERS_CLEAR);
	return false;
}

/* Section 4.2.1.6.1. CHOICE: RST, as LRST cuts a management controller's link off too. */
static int software_reset(struct ixdp_port *port) {
	reg_set(port, REG_CTRL, CTRL_RST);
	/* Section 8.2.3.1.1: touch nothing for 1 ms, not even to look. */
	delay_us(port, 1000);

	int err = reg_wait(port, REG_CTRL, CTRL_RST, false, 100000, "CTRL.RST");
	delay_us(port, 10000); /* for a smooth start, section 4.6.3.2 */
	return err;
}

int device_reset(struct ixdp_port *port) {
	/* No register of an 82599 that answers has all bits set. */
	if (reg_read(port, REG_STATUS) == UINT32_MAX)
		return ixdp_fail(ENODEV, "%s: device does not answer: STATUS reads 0xffffffff",
				 port->bus->name);

	interrupts_off(port);
	reg_clear(port, REG_RXCTRL, RXCTRL_RXEN);
	/* A queue that hangs is no reason to give up: the reset ends it as well. */
	if (queues_off(port) != 0) ixdp_log(IXDP_LOG_WARNING, "%s; resetting", ixdp_error());
	bool quiet = master_disable(port);
	stats_collect(port); /* the reset clears the NIC's counters */
	int err = software_reset(port);
	if (err == 0 && !quiet) err = software_reset(port);
	if (err == 0) interrupts_off(port); /* causes may have latched meanwhile, section 4.6.3.1 */
	return err;
}

/* The EEPROM has been read and is good; DMA is initialised. Section 4.6.3.2. */
static int wait_ready(struct ixdp_port *port) {
	int err = reg_wait(port, REG_EEC, EEC_ARD, true, 500000, "EEC.ARD");
	if (err) return err;
	/* UNCLEAR: ARD is also set when there is no EEPROM or a bad one, so ask for both. */
	if (!(reg_read(port, REG_EEC) & EEC_PRES))
		return ixdp_fail(EIO, "%s: EEC.PRES (register 0x%05x) is clear: no valid EEPROM",
				 port->bus->name, REG_EEC);

	uint32_t fwsm = reg_read(port, REG_FWSM);
	if (fwsm & FWSM_EXT_ERR)
		return ixdp_fail(EIO, "%s: FWSM.EXT_ERR (register 0x%05x): firmware error %u",
				 port->bus->name, REG_FWSM, FIELD_GET(FWSM_EXT_ERR, fwsm));
	return reg_wait(port, REG_RDRXCTL, RDRXCTL_DMAIDONE, true, 500000, "RDRXCTL.DMAIDONE");
}

/* An array of n registers: a value for the first, 0 for the others. */
static void write_array(struct ixdp_port *port, uint32_t reg, unsigned n, uint32_t value) {
	for (unsigned i = 0; i < n; i++)
		reg_write(port, reg + 4 * i, i == 0 ? value : 0);
}

/* Filters that ixdp does not use: undefined after reset, sections 8.2.3.7 and 8.2.3.27. */
static void clear_tables(struct ixdp_port *port) {
	write_array(port, REG_UTA, REG_UTA_COUNT, 0);
	write_array(port, REG_VLVF, REG_VLVF_COUNT, 0);
	write_array(port, REG_VLVFB, REG_VLVFB_COUNT, 0);
	write_array(port, REG_MPSAR, REG_MPSAR_COUNT, 0);
	write_array(port, REG_FTQF, REG_FTQF_COUNT, 0);
}

/* Where a ring is; the registers from RDBAL on are like those from TDBAL on. It is empty. */
static void init_ring(struct ixdp_port *port, uint32_t reg, const struct desc *desc, unsigned n) {
	uint64_t base = iova_of(&port->ring_iova, desc);
	reg_write(port, reg, base & UINT32_MAX);
	reg_write(port, reg + REG_RDBAH - REG_RDBAL, base >> 32);
	reg_write(port, reg + REG_RDLEN - REG_RDBAL, n * sizeof(*desc));
	reg_write(port, reg + REG_RDH - REG_RDBAL, 0);
	reg_write(port, reg + REG_RDT - REG_RDBAL, 0);
}

/* Section 4.6.7.1.1: one queue's registers, then on, and only then buffers and tail. */
static int init_rx_queue(struct ixdp_port *port, unsigned q) {
	init_ring(port, REG_N(RDBAL, q), port->rx[q].desc, port->rx[q].mask + 1);
	/* Without DROP_EN a queue that nobody serves stops all; with it the peer never pauses. */
	reg_write(port, REG_N(SRRCTL, q),
		  FIELD(SRRCTL_BSIZEPKT, IXDP_DATA_SIZE / 1024) |
		      FIELD(SRRCTL_DESCTYPE, SRRCTL_DESCTYPE_ADVANCED) |
		      (port->cfg.pause & IXDP_PAUSE_TX ? 0 : SRRCTL_DROP_EN));
	/* UNCLEAR: reserved, set after reset, and payload is damaged on some hosts unless clear. */
	reg_clear(port, REG_N(DCA_RXCTRL, q), DCA_RXCTRL_MUST_BE_0);
	bool strip = port->cfg.offloads & IXDP_OFFLOAD_VLAN_STRIP;
	reg_set(port, REG_N(RXDCTL, q), RXDCTL_ENABLE | (strip ? RXDCTL_VME : 0));
	int err = reg_wait(port, REG_N(RXDCTL, q), RXDCTL_ENABLE, true, 10000, "RXDCTL.ENABLE");
	return err ? err : rx_ring_fill(&port->rx[q]);
}

/* Cuts no packet in two: held in front of the security block, sections 4.6.7 and 8.2.3.12.5. */
static int rx_enable(struct ixdp_port *port, bool on) {
	reg_set(port, REG_SECRXCTRL, SECRXCTRL_RX_DIS);
	int err = reg_wait(port, REG_SECRXSTAT, SECRXSTAT_RDY, true, 40000, "SECRXSTAT.RDY");
	reg_write(port, REG_RXCTRL, on ? RXCTRL_RXEN : 0);
	reg_clear(port, REG_SECRXCTRL, SECRXCTRL_RX_DIS);
	return err;
}

int rx_paused(struct ixdp_port *port, void (*change)(struct ixdp_port *port)) {
	if (!port->running) return 0;
	int err = rx_enable(port, false);
	if (err == 0) change(port);
	int again = port->cfg.rx_queues > 0 ? rx_enable(port, true) : 0;
	return err ? err : again;
}

/* Section 4.6.7. */
static int init_rx(struct ixdp_port *port) {
	filters_write(port);
	rss_write(port);

	/* JUMBOEN: MAXFRS counts. CRC is stripped in two places, which must agree (8.2.3.22.8). */
	reg_set(port, REG_HLREG0, HLREG0_RXCRCSTRP | HLREG0_JUMBOEN);
	uint32_t rdrxctl = reg_read(port, REG_RDRXCTL) & ~(uint32_t)RDRXCTL_RSCFRSTSIZE;
	/* The other two: section 8.2.3.8.8 wants them set, and RSCFRSTSIZE 0, by software. */
	reg_write(port, REG_RDRXCTL,
		  rdrxctl | RDRXCTL_CRCSTRIP | RDRXCTL_RSCACKC | RDRXCTL_FCOE_WRFIX);

	/* With header and FCS; VLAN tags come on top. */
	reg_write(port, REG_MAXFRS, FIELD(MAXFRS_MFS, port->cfg.mtu + 14 + 4));
	write_array(port, REG_RXPBSIZE, REG_RXPBSIZE_COUNT,
		    FIELD(RXPBSIZE_SIZE, RX_PACKET_BUFFER_KB));

	/* Snooping stays on for all that the NIC writes: buffers are in our caches. */
	reg_set(port, REG_CTRL_EXT, CTRL_EXT_NS_DIS);

	int err = 0;
	for (unsigned q = 0; q < port->cfg.rx_queues && !err; q++)
		err = init_rx_queue(port, q);
	return err || port->cfg.rx_queues == 0 ? err : rx_enable(port, true);
}

/* Section 4.6.8.1. */
static int init_tx_queue(struct ixdp_port *port, unsigned q) {
	init_ring(port, REG_N(TDBAL, q), port->tx[q].desc, port->tx[q].mask + 1);
	/* Relaxed ordering would let DD of a later descriptor overtake an earlier one's. */
	reg_clear(port, REG_N(DCA_TXCTRL, q), DCA_TXCTRL_DESC_WB_RO);
	reg_write(port, REG_N(TXDCTL, q),
		  FIELD(TXDCTL_PTHRESH, TX_PTHRESH) | FIELD(TXDCTL_HTHRESH, TX_HTHRESH) |
		      TXDCTL_ENABLE);
	return reg_wait(port, REG_N(TXDCTL, q), TXDCTL_ENABLE, true, 10000, "TXDCTL.ENABLE");
}

/* Section 4.6.8. */
static int init_tx(struct ixdp_port *port) {
	/* The NIC appends the CRC and pads to 60 B. */
	reg_set(port, REG_HLREG0, HLREG0_TXCRCEN | HLREG0_TXPADEN);

	/* All this changes while the arbiter is off. UNCLEAR: queues above 63 exist with traffic
	 * classes only (7.2.1.2.1), of which just the first has a packet buffer, as in Linux. */
	bool many = port->tx_queues > DEFAULT_TX_QUEUES;
	reg_set(port, REG_RTTDCS, RTTDCS_ARBDIS);
	reg_write(port, REG_MTQC,
		  many ? MTQC_RT_ENA | FIELD(MTQC_NUM_TC_OR_Q, MTQC_4_TCS_128_QUEUES) : 0);
	write_array(port, REG_TXPBSIZE, REG_TXPBSIZE_COUNT,
		    FIELD(TXPBSIZE_SIZE, TX_PACKET_BUFFER_KB));
	write_array(port, REG_TXPBTHRESH, REG_TXPBTHRESH_COUNT,

		    FIELD(TXPBTHRESH_THRESH, TX_PACKET_BUFFER_KB - TXPBTHRESH_DISTANCE_KB));
	/* Section 8.2.3.9.1: all it can have, as there is no DCB to divide it. */
	reg_write(port, REG_DTXMXSZRQ, DTXMXSZRQ_MAX_BYTES);
	reg_clear(port, REG_RTTDCS, RTTDCS_ARBDIS);

	/* Before any queue: TXDCTL.ENABLE does not come on without it. */
	reg_set(port, REG_DMATXCTL, DMATXCTL_TE);
	int err = 0;
	for (unsigned q = 0; q < port->tx_queues && !err; q++)
		err = init_tx_queue(port, q);
	return err;
}

/* IEEE 802.3x flow control, section 4.6.3.2 for the thresholds: right even if it is off. */
static void init_pause(struct ixdp_port *port) {
	uint32_t full = RX_PACKET_BUFFER_KB * 1024 - FCRTH_DISTANCE;
	uint32_t empty = RX_PACKET_BUFFER_KB * 1024 - FCRTL_DISTANCE;
	bool ask = port->cfg.pause & IXDP_PAUSE_TX;
	reg_write(port, REG_FCTTV, FIELD(FCTTV_TTV0, PAUSE_TIME));
	reg_write(port, REG_FCRTV, FIELD(FCRTV_REFRESH, PAUSE_REFRESH));
	reg_write(port, REG_FCRTL, ask ? (empty & FCRTL_RTL) | FCRTL_XONE : 0);
	reg_write(port, REG_FCRTH, (full & FCRTH_RTH) | (ask ? FCRTH_FCEN : 0));
	reg_write(port, REG_FCCFG, ask ? FIELD(FCCFG_TFCE, 1) : 0);
	reg_write(port, REG_MFLCN, port->cfg.pause & IXDP_PAUSE_RX ? MFLCN_RFCE : 0);
}

int device_init(struct ixdp_port *port) {
	int err = wait_ready(port);
	if (err == 0) err = filters_init(port);
	if (err) return err;

	stats_init(port);
	init_pause(port);
	clear_tables(port);
	if (port->cfg.loopback) {
		reg_set(port, REG_HLREG0, HLREG0_LPBK); /* at the MAC, section 8.2.3.22.8 */
		/* CHOICE: a link without peer. No semaphores (10.5.4): the next reset undoes it. */
		reg_set(port, REG_AUTOC, AUTOC_FLU);
	}
	err = init_rx(port);
	if (err == 0) err = init_tx(port);
	/* Tells a management controller that a driver is there, section 8.2.3.1.3. */
	if (err == 0) reg_set(port, REG_CTRL_EXT, CTRL_EXT_DRV_LOAD);
	return err;
}
