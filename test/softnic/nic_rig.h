/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software NIC alone, without a driver: memory that it may touch, at device addresses that are
 * no virtual ones, and the few register writes that get queues going.
 */
#pragma once

#include "softnic/nic.h"
#include "softnic/softnic.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <ixdp/ixdp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 64, ROOM = 4096, QUEUES = 4 };

#define IOVA UINT64_C(0x123450000000)

/* All memory of the NIC. Each queue (of more than QUEUES, those q % QUEUES) has a ring, each
 * descriptor a place for a buffer. */
struct nic_memory {
	struct desc rx[QUEUES][RING];
	struct desc tx[QUEUES][RING];
	uint8_t rx_data[QUEUES][RING][ROOM];
	uint8_t tx_data[QUEUES][RING][ROOM];
};

struct nic_rig {
	struct softnic *nic;
	struct nic_memory *mem;
	unsigned sent; /* frames that left, and the latest of them */
	bool hold;     /* they are not let out */
	uint8_t frame[ROOM * 4];
	size_t len;
};

static struct nic_rig rig;

static inline uint64_t iova_of(const void *addr) {
	return IOVA + (uint64_t)((const uint8_t *)addr - (const uint8_t *)rig.mem);
}

static inline bool on_sent(const uint8_t *frame, size_t len, void *arg) {
	(void)arg;
	if (rig.hold) return false;
	rig.sent++;
	memcpy(rig.frame, frame, len);
	rig.len = len;
	return true;
}

static inline uint32_t rd(uint32_t reg) { return softnic_read32(rig.nic, reg); }

static inline void wr(uint32_t reg, uint32_t value) { softnic_write32(rig.nic, reg, value); }

static inline void rig_close(void) {
	softnic_close(rig.nic);
	free(rig.mem);
}

/* The filters that a reset leaves undefined. */
static inline void rig_clear_tables(void) {
	for (unsigned n = 0; n < 128; n++) {
		softnic_poke(rig.nic, REG_N(MTA, n), 0);
		softnic_poke(rig.nic, REG_N(UTA, n), 0);
		softnic_poke(rig.nic, REG_N(VFTA, n), 0);
	}
}

/* Opens the NIC "t" with the options, e.g. ",strict=off", its memory mapped, DMA allowed. */
static inline void rig_open(const char *options) {
	char name[128];

	snprintf(name, sizeof(name), "t%s", options);
	softnic_set_stepped(true);
	if (softnic_find("t")) /* a test before this one failed */
		rig_close();
	memset(&rig, 0, sizeof(rig));
	rig.mem = aligned_alloc(4096, sizeof(*rig.mem));
	assert_non_null(rig.mem);
	memset(rig.mem, 0xEE, sizeof(*rig.mem));
	if (softnic_open(&rig.nic, name) != 0) fail_msg("%s: %s", name, ixdp_error());
	rig_clear_tables();
	softnic_tap(rig.nic, on_sent, NULL);
	assert_int_equal(softnic_dma_map(rig.nic, rig.mem, sizeof(*rig.mem), IOVA), 0);
	softnic_bus_master(rig.nic, true);
}

/* Ends a test of correct use: there was nothing to complain about. */
static inline void rig_close_clean(void) {
	if (softnic_violations(rig.nic) > 0) fail_msg("%s", softnic_last_violation(rig.nic));
	rig_close();
}

/* Everything of a receive queue up to ENABLE. kb: size of its buffers. */
static inline void rx_prepare(unsigned q, unsigned kb, unsigned type, bool drop) {
	wr(NIC_RXQ_REG(RDBAL, q), (uint32_t)iova_of(rig.mem->rx[q % QUEUES]));
	wr(NIC_RXQ_REG(RDBAH, q), iova_of(rig.mem->rx[q % QUEUES]) >> 32);
	wr(NIC_RXQ_REG(RDLEN, q), sizeof(rig.mem->rx[q % QUEUES]));
	wr(NIC_RXQ_REG(RDH, q), 0);
	wr(NIC_RXQ_REG(RDT, q), 0);
	wr(NIC_RXQ_REG(SRRCTL, q), FIELD(SRRCTL_BSIZEPKT, kb) | FIELD(SRRCTL_BSIZEHDR, 4) |
				       FIELD(SRRCTL_DESCTYPE, type) | (drop ? SRRCTL_DROP_EN : 0));
	wr(NIC_RXQ_REG(DCA_RXCTRL, q),
	   rd(NIC_RXQ_REG(DCA_RXCTRL, q)) & ~(uint32_t)DCA_RXCTRL_MUST_BE_0);
}

static inline void rx_enable(unsigned q) {
	wr(NIC_RXQ_REG(RXDCTL, q), rd(NIC_RXQ_REG(RXDCTL, q)) | RXDCTL_ENABLE);
	assert_true(rd(NIC_RXQ_REG(RXDCTL, q)) & RXDCTL_ENABLE);
}

/* The port receives, everything. */
static inline void rx_on(void) {
	wr(REG_FCTRL, FCTRL_UPE | FCTRL_MPE | FCTRL_BAM);
	wr(REG_RXCTRL, RXCTRL_RXEN);
}

static inline void rx_start(unsigned q, unsigned kb, unsigned type, bool drop) {
	rx_prepare(q, kb, type, drop);
	rx_enable(q);
	rx_on();
}

static inline void ring_doorbell(uint32_t reg, uint32_t value) {
	__atomic_store_n(softnic_doorbell(rig.nic, reg), value, __ATOMIC_RELEASE);
}

/* Fresh descriptors from `from` up to `to`, which becomes the tail. */
static inline void rx_give(unsigned q, unsigned from, unsigned to) {
	for (unsigned i = from; i != to; i = (i + 1) % RING)
		rig.mem->rx[q % QUEUES][i] =
		    (struct desc){htole64(iova_of(rig.mem->rx_data[q % QUEUES][i])), htole64(0)};
	ring_doorbell(NIC_RXQ_REG(RDT, q), to);
}

static inline uint64_t rx_status(unsigned q, unsigned i) {
	return desc_look(&rig.mem->rx[q % QUEUES][i]);
}

static inline size_t rx_len(unsigned q, unsigned i) {
	return (rx_status(q, i) & RXD_LEN) >> RXD_LEN_LOW;
}

static inline void tx_prepare(unsigned q) {
	wr(REG_N(TDBAL, q), (uint32_t)iova_of(rig.mem->tx[q % QUEUES]));
	wr(REG_N(TDBAH, q), iova_of(rig.mem->tx[q % QUEUES]) >> 32);
	wr(REG_N(TDLEN, q), sizeof(rig.mem->tx[q % QUEUES]));
	wr(REG_N(TDH, q), 0);
	wr(REG_N(TDT, q), 0);
}

static inline void tx_start(unsigned q) {
	tx_prepare(q);
	wr(REG_DMATXCTL, rd(REG_DMATXCTL) | DMATXCTL_TE);
	wr(REG_N(TXDCTL, q), TXDCTL_ENABLE);
	assert_true(rd(REG_N(TXDCTL, q)) & TXDCTL_ENABLE);
}

enum { TX_EOP_IFCS = TXD_EOP | TXD_IFCS };

/* Advanced data descriptor i with `len` bytes of its buffer, of a frame of `paylen` bytes. */
static inline void tx_put(unsigned q, unsigned i, size_t len, size_t paylen, uint64_t bits) {
	rig.mem->tx[q][i] = (struct desc){
	    htole64(iova_of(rig.mem->tx_data[q][i])),
	    htole64(TXD_DEXT | TXD_DTYP_DATA | len | (uint64_t)paylen << TXD_PAYLEN_LOW | bits)};
}

/* One whole frame in one descriptor. */
static inline void tx_frame(unsigned q, unsigned i, size_t len) {
	tx_put(q, i, len, len, TXD_EOP | TXD_IFCS | TXD_RS);
}

static inline bool tx_done(unsigned q, unsigned i) {
	return desc_look(&rig.mem->tx[q][i]) & TXD_DD;
}

/* A frame to a unicast address, whose bytes follow from the seed. */
static inline void make_frame(uint8_t *frame, size_t len, unsigned seed) {
	for (size_t i = 0; i < len; i++)
		frame[i] = (uint8_t)(i * 7 + seed);
	memcpy(frame, "\x02\x11\x22\x33\x44\x55\x02\x66\x77\x88\x99\xaa\x88\xb5",
	       len < 14 ? len : 14);
}

static inline void inject(size_t len, unsigned seed) {
	uint8_t frame[ROOM * 4];

	make_frame(frame, len, seed);
	assert_true(softnic_inject(rig.nic, frame, len));
}

static inline unsigned step(void) { return softnic_step(rig.nic, 256); }

/* The descriptor's buffer starts with that frame. */
static inline void assert_frame(const uint8_t *data, size_t len, unsigned seed) {
	uint8_t frame[ROOM * 4];

	make_frame(frame, len, seed);
	assert_memory_equal(data, frame, len);
}
