/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registers that the NIC honours and the driver has no use for, in the form of IXDP_REGISTERS;
 * their fields; and the second addresses that some registers have.
 */
#pragma once

#include "../driver/regs.h"

#include <stddef.h>

struct softnic;

/* clang-format off */
#define NIC_REGISTERS(R) \
	R(SWSM,       0x10140,    0,   1, 0x00000000, RW,  "8.2.3.4.9",   "software semaphore") \
	R(SW_FW_SYNC, 0x10160,    0,   1, 0x00000000, RW,  "8.2.3.4.11",  "software-firmware synchronization") \
	R(DTXTCPFLGL, 0x04A88,    0,   1, 0x0F760FF6, RW,  "8.2.3.9.3",   "TCP flags of first and middle segments") \
	R(DTXTCPFLGH, 0x04A8C,    0,   1, 0x00000F7F, RW,  "8.2.3.9.4",   "TCP flags of the last segment") \
	R(TORL,       0x040C0,    0,   1, 0x00000000, RC,  "8.2.3.23",    "total octets received low") \
	R(TORH,       0x040C4,    0,   1, 0x00000000, RC,  "8.2.3.23",    "total octets received high, 4 bits") \
	R(QBRCL,      0x01034, 0x40,  16, 0x00000000, RC,  "8.2.3.23",    "queue octets received low") \
	R(QBRCH,      0x01038, 0x40,  16, 0x00000000, RC,  "8.2.3.23",    "queue octets received high, 4 bits") \
	R(QBTCL,      0x08700,    8,  16, 0x00000000, RC,  "8.2.3.23",    "queue octets transmitted low") \
	R(QBTCH,      0x08704,    8,  16, 0x00000000, RC,  "8.2.3.23",    "queue octets transmitted high, 4 bits") \
	R(TQSM,       0x08600,    4,  32, 0x00000000, RW,  "8.2.3.23",    "transmit queue to statistics counter")

#define NIC_FIELDS(F) \
	F(SWSM,       SMBI,            0,  1) /* a read sets it */ \
	F(SWSM,       SWESMBI,         1,  1) \
	F(SW_FW_SYNC, SW_MAC_CSR,      3,  1) \
	F(SW_FW_SYNC, FW_MAC_CSR,      8,  1) \
	F(MFLCN,      PMCF,            0,  1) /* may be set, changes nothing: so may DPF */ \
	F(MFLCN,      DPF,             1,  1) \
	F(DTXTCPFLGL, FIRST,           0, 12) \
	F(DTXTCPFLGL, MIDDLE,         16, 12) \
	F(DTXTCPFLGH, LAST,            0, 12)

/* Second addresses of registers: A(name, offset, stride, how many of them). */
#define NIC_ALIASES(A) \
	A(CTRL,       0x00004,    0,  1) \
	A(SRRCTL,     0x02100,    4, 16) \
	A(DCA_RXCTRL, 0x02200,    4, 16) \
	A(RAL,        0x05400,    8, 16) \
	A(RAH,        0x05404,    8, 16) \
	A(MRQC,       0x05818,    0,  1) \
	A(RETA,       0x05C00,    4, 32) \
	A(RSSRK,      0x05C80,    4, 10) \
	A(QPTC,       0x06030, 0x40, 16)

/* Registers of receive queues 64 to 127, which are not behind those of 0 to 63: M(name, offset). */
#define NIC_MORE_QUEUES(M) \
	M(RDBAL,      0x0D000) \
	M(RDBAH,      0x0D004) \
	M(RDLEN,      0x0D008) \
	M(DCA_RXCTRL, 0x0D00C) \
	M(RDH,        0x0D010) \
	M(SRRCTL,     0x0D014) \
	M(RDT,        0x0D018) \
	M(RXDCTL,     0x0D028)
/* clang-format on */

enum {
#define R(name, offset, stride, count, reset, access, section, what)                               \
	REG_##name = offset, REG_##name##_STRIDE = stride, REG_##name##_COUNT = count,
	NIC_REGISTERS(R)
#undef R
#define F(reg, field, low, width)                                                                  \
	reg##_##field = (0xFFFFFFFFu >> (32 - (width))) << (low), reg##_##field##_LOW = low,
	    NIC_FIELDS(F)
#undef F
};

/* Register of receive queue n: a queue's registers lie together, all queues' the same way. */
#define NIC_RXQ_REG(name, n)                                                                       \
	(REG_##name + REG_##name##_STRIDE * (uint32_t)(n) +                                        \
	 ((n) < REG_RDBAL_COUNT ? 0 : 0x0D000 - REG_N(RDBAL, REG_RDBAL_COUNT)))

/* --- table.c --- */

enum nic_access { NIC_RW, NIC_RO, NIC_RC, NIC_W1S, NIC_W1C };

/* One register, or an array of them. */
struct nic_reg {
	const char *name;
	uint32_t offset, stride, count, reset;
	uint32_t more; /* where an array goes on, with as many again; 0: it does not */
	enum nic_access access;
	uint32_t fields; /* all of its fields; 0: none are defined, every bit may be written */
	uint32_t fixed;	 /* bits that a write does not change */

	/* Replace what the access kind does, with register n of an array. NULL: nothing special. */
	uint32_t (*read)(struct softnic *nic, unsigned n, uint32_t stored);
	void (*write)(struct softnic *nic, unsigned n, uint32_t value);
};

/* The register at an offset, aliases resolved: which one of an array. NULL: not in the table. */
const struct nic_reg *nic_reg_find(uint32_t offset, unsigned *n);

/* Where register n of an array is stored. */
static inline uint32_t nic_reg_offset(const struct nic_reg *reg, unsigned n) {
	return n < reg->count ? reg->offset + reg->stride * n
			      : reg->more + reg->stride * (n - reg->count);
}

/* Gives all registers their reset values, and junk to those that the datasheet leaves undefined. */
void nic_reg_reset(struct softnic *nic);

/* "RDT[3]", "CTRL"; "0x05F00" for a register that is not in the table. */
void nic_reg_name(uint32_t offset, char *text, size_t size);
