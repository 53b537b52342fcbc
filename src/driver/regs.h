/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 82599 as its datasheet describes it, as far as ixdp uses it: registers, their fields, and
 * the descriptors. Driver and software NIC meet here and nowhere else.
 *
 * A register is one line of IXDP_REGISTERS:
 *     R(name, offset, stride, count, reset value, access, datasheet section, what it is)
 * `stride` is the distance in bytes between instances of an array of `count` registers (0: one).
 * A field is one line of IXDP_FIELDS:
 *     F(register, field, lowest bit, width)
 * and gives REGISTER_FIELD, the field's mask in place.
 *
 * Access kinds: RW storage; RO writes ignored; RC a read clears; W1S writing 1 sets; W1C writing 1
 * clears. SC marks single fields that the device clears by itself, in the comment beside them.
 */
#pragma once

#include <endian.h>
#include <stdint.h>

/* clang-format off */
#define IXDP_REGISTERS(R) \
	/* General control, section 8.2.3.1 */ \
	R(CTRL,       0x00000,    0,   1, 0x00000000, RW,  "8.2.3.1.1",   "device control") \
	R(STATUS,     0x00008,    0,   1, 0x00080000, RO,  "8.2.3.1.2",   "device status") \
	R(CTRL_EXT,   0x00018,    0,   1, 0x00000000, RW,  "8.2.3.1.3",   "extended device control") \
	/* EEPROM, firmware, semaphores, PCIe, sections 8.2.3.2 and 8.2.3.4 */ \
	R(EEC,        0x10010,    0,   1, 0x00001730, RW,  "8.2.3.2.1",   "EEPROM control") \
	R(FWSM,       0x10148,    0,   1, 0x00008000, RO,  "8.2.3.4.10",  "firmware semaphore") \
	R(GCR_EXT,    0x11050,    0,   1, 0x00000000, RW,  "8.2.3.4.12",  "PCIe control extended") \
	/* Interrupts, section 8.2.3.5 */ \
	R(EICR,       0x00800,    0,   1, 0x00000000, RC,  "8.2.3.5.1",   "interrupt causes") \
	R(EIMS,       0x00880,    0,   1, 0x00000000, W1S, "8.2.3.5.3",   "interrupt mask set") \
	R(EIMC,       0x00888,    0,   1, 0x00000000, W1C, "8.2.3.5.4",   "interrupt mask clear") \
	R(EIMC_EX,    0x00AB0,    4,   2, 0x00000000, W1C, "8.2.3.5.9",   "interrupt mask clear, all vectors") \
	/* Flow control, section 8.2.3.3 */ \
	R(FCTTV,      0x03200,    4,   4, 0x00000000, RW,  "8.2.3.3.2",   "flow control transmit timer value") \
	R(FCRTL,      0x03220,    4,   8, 0x00000000, RW,  "8.2.3.3.3",   "flow control receive threshold low") \
	R(FCRTH,      0x03260,    4,   8, 0x00000000, RW,  "8.2.3.3.4",   "flow control receive threshold high") \
	R(FCRTV,      0x032A0,    0,   1, 0x00000000, RW,  "8.2.3.3.5",   "flow control refresh threshold value") \
	R(FCCFG,      0x03D00,    0,   1, 0x00000000, RW,  "8.2.3.3.7",   "flow control configuration") \
	R(TFCS,       0x0CE00,    0,   1, 0x00000000, RO,  "8.2.3.3.6",   "transmit flow control status") \
	R(MFLCN,      0x04294,    0,   1, 0x00000000, RW,  "8.2.3.22.34", "MAC flow control") \
	/* Receive filters, section 8.2.3.7 (the virtualization ones: 8.2.3.27) */ \
	R(FCTRL,      0x05080,    0,   1, 0x00000000, RW,  "8.2.3.7.1",   "filter control") \
	R(VLNCTRL,    0x05088,    0,   1, 0x00008100, RW,  "8.2.3.7.2",   "VLAN control") \
	R(MCSTCTRL,   0x05090,    0,   1, 0x00000000, RW,  "8.2.3.7.3",   "multicast control") \
	R(MTA,        0x05200,    4, 128, 0x00000000, RW,  "8.2.3.7.7",   "multicast table array") \
	R(RAL,        0x0A200,    8, 128, 0x00000000, RW,  "8.2.3.7.8",   "receive address low") \
	R(RAH,        0x0A204,    8, 128, 0x00000000, RW,  "8.2.3.7.9",   "receive address high") \
	R(MPSAR,      0x0A600,    4, 256, 0x00000000, RW,  "8.2.3.7.10",  "MAC pool select array") \
	R(VFTA,       0x0A000,    4, 128, 0x00000000, RW,  "8.2.3.7.11",  "VLAN filter table array") \
	R(FTQF,       0x0E600,    4, 128, 0x00000000, RW,  "8.2.3.7.19",  "five-tuple queue filter") \
	R(RXCSUM,     0x05000,    0,   1, 0x00000000, RW,  "8.2.3.7.5",   "receive checksum control") \
	R(RSSRK,      0x0EB80,    4,  10, 0x00000000, RW,  "8.2.3.7.14",  "RSS random key") \
	R(RETA,       0x0EB00,    4,  32, 0x00000000, RW,  "8.2.3.7.15",  "redirection table") \
	R(MRQC,       0x0EC80,    0,   1, 0x00000000, RW,  "8.2.3.7.12",  "multiple receive queues command") \
	R(VLVF,       0x0F100,    4,  64, 0x00000000, RW,  "8.2.3.27.15", "VLAN pool filter") \
	R(VLVFB,      0x0F200,    4, 128, 0x00000000, RW,  "8.2.3.27.16", "VLAN pool filter bitmap") \
	R(UTA,        0x0F400,    4, 128, 0x00000000, RW,  "8.2.3.27.17", "unicast table array") \
	/* Receive DMA, sections 8.2.3.8 and 8.2.3.11; security block 8.2.3.12 */ \
	R(RDBAL,      0x01000, 0x40,  64, 0x00000000, RW,  "8.2.3.8.1",   "receive descriptor base address low") \
	R(RDBAH,      0x01004, 0x40,  64, 0x00000000, RW,  "8.2.3.8.2",   "receive descriptor base address high") \
	R(RDLEN,      0x01008, 0x40,  64, 0x00000000, RW,  "8.2.3.8.3",   "receive descriptor length") \
	R(DCA_RXCTRL, 0x0100C, 0x40,  64, 0x0000B200, RW,  "8.2.3.11.1",  "receive DCA control") \
	R(RDH,        0x01010, 0x40,  64, 0x00000000, RW,  "8.2.3.8.4",   "receive descriptor head") \
	R(SRRCTL,     0x01014, 0x40,  64, 0x00000402, RW,  "8.2.3.8.7",   "split receive control") \
	R(RDT,        0x01018, 0x40,  64, 0x00000000, RW,  "8.2.3.8.5",   "receive descriptor tail") \
	R(RXDCTL,     0x01028, 0x40,  64, 0x00000000, RW,  "8.2.3.8.6",   "receive descriptor control") \
	R(RXDCTL_HIGH, 0x0D028, 0x40, 64, 0x00000000, RW,  "8.2.3.8.6",   "receive descriptor control, queues 64 to 127") \
	R(RDRXCTL,    0x02F00,    0,   1, 0x00108808, RW,  "8.2.3.8.8",   "receive DMA control") \
	R(RXCTRL,     0x03000,    0,   1, 0x00000000, RW,  "8.2.3.8.10",  "receive control") \
	R(RXPBSIZE,   0x03C00,    4,   8, 0x00080000, RW,  "8.2.3.8.9",   "receive packet buffer size") \
	R(SECRXCTRL,  0x08D00,    0,   1, 0x00000001, RW,  "8.2.3.12.5",  "security receive control") \
	R(SECRXSTAT,  0x08D04,    0,   1, 0x00000003, RO,  "8.2.3.12.6",  "security receive status") \
	/* Transmit DMA, sections 8.2.3.9 to 8.2.3.11 */ \
	R(RTTDCS,     0x04900,    0,   1, 0x00C00000, RW,  "8.2.3.10.2",  "transmit descriptor plane control") \
	R(TXPBTHRESH, 0x04950,    4,   8, 0x00000000, RW,  "8.2.3.9.16",  "transmit packet buffer threshold") \
	R(DMATXCTL,   0x04A80,    0,   1, 0x81000004, RW,  "8.2.3.9.2",   "transmit DMA control") \
	R(TDBAL,      0x06000, 0x40, 128, 0x00000000, RW,  "8.2.3.9.5",   "transmit descriptor base address low") \
	R(TDBAH,      0x06004, 0x40, 128, 0x00000000, RW,  "8.2.3.9.6",   "transmit descriptor base address high") \
	R(TDLEN,      0x06008, 0x40, 128, 0x00000000, RW,  "8.2.3.9.7",   "transmit descriptor length") \
	R(DCA_TXCTRL, 0x0600C, 0x40, 128, 0x00002A00, RW,  "8.2.3.11.2",  "transmit DCA control") \
	R(TDH,        0x06010, 0x40, 128, 0x00000000, RW,  "8.2.3.9.8",   "transmit descriptor head") \
	R(TDT,        0x06018, 0x40, 128, 0x00000000, RW,  "8.2.3.9.9",   "transmit descriptor tail") \
	R(TXDCTL,     0x06028, 0x40, 128, 0x00000000, RW,  "8.2.3.9.10",  "transmit descriptor control") \
	R(DTXMXSZRQ,  0x08100,    0,   1, 0x00000010, RW,  "8.2.3.9.1",   "transmit DMA max outstanding requests") \
	R(MTQC,       0x08120,    0,   1, 0x00000000, RW,  "8.2.3.9.15",  "multiple transmit queues command") \
	R(TXPBSIZE,   0x0CC00,    4,   8, 0x00028000, RW,  "8.2.3.9.13",  "transmit packet buffer size") \
	/* MAC and link, section 8.2.3.22 */ \
	R(HLREG0,     0x04240,    0,   1, 0x08012C0B, RW,  "8.2.3.22.8",  "MAC core control 0") \
	R(MAXFRS,     0x04268,    0,   1, 0x05EE0000, RW,  "8.2.3.22.13", "max frame size") \
	R(AUTOC,      0x042A0,    0,   1, 0xC09C6004, RW,  "8.2.3.22.19", "auto-negotiation control") \
	R(LINKS,      0x042A4,    0,   1, 0x00000000, RO,  "8.2.3.22.20", "link status") \
	/* Statistics, section 8.2.3.23 */ \
	R(CRCERRS,    0x04000,    0,   1, 0x00000000, RC,  "8.2.3.23",    "CRC errors") \
	R(MPC,        0x03FA0,    4,   8, 0x00000000, RC,  "8.2.3.23",    "missed packets") \
	R(RLEC,       0x04040,    0,   1, 0x00000000, RC,  "8.2.3.23",    "receive length errors") \
	R(GPRC,       0x04074,    0,   1, 0x00000000, RC,  "8.2.3.23",    "good packets received") \
	R(BPRC,       0x04078,    0,   1, 0x00000000, RC,  "8.2.3.23",    "broadcast packets received") \
	R(MPRC,       0x0407C,    0,   1, 0x00000000, RC,  "8.2.3.23",    "multicast packets received") \
	R(GPTC,       0x04080,    0,   1, 0x00000000, RC,  "8.2.3.23",    "good packets transmitted") \
	R(GORCL,      0x04088,    0,   1, 0x00000000, RC,  "8.2.3.23",    "good octets received low") \
	R(GORCH,      0x0408C,    0,   1, 0x00000000, RC,  "8.2.3.23",    "good octets received high, 4 bits") \
	R(GOTCL,      0x04090,    0,   1, 0x00000000, RC,  "8.2.3.23",    "good octets transmitted low") \
	R(GOTCH,      0x04094,    0,   1, 0x00000000, RC,  "8.2.3.23",    "good octets transmitted high, 4 bits") \
	R(RUC,        0x040A4,    0,   1, 0x00000000, RC,  "8.2.3.23",    "receive undersize") \
	R(ROC,        0x040AC,    0,   1, 0x00000000, RC,  "8.2.3.23",    "receive oversize") \
	R(TPR,        0x040D0,    0,   1, 0x00000000, RC,  "8.2.3.23",    "total packets received") \
	R(TPT,        0x040D4,    0,   1, 0x00000000, RC,  "8.2.3.23",    "total packets transmitted") \
	R(RFC,        0x040A8,    0,   1, 0x00000000, RC,  "8.2.3.23",    "receive fragments: undersize and CRC error") \
	R(RJC,        0x040B0,    0,   1, 0x00000000, RC,  "8.2.3.23",    "receive jabber: oversize and CRC error") \
	R(PRC,        0x0405C,    4,   6, 0x00000000, RC,  "8.2.3.23",    "packets received of 64, to 127, 255, 511, 1023 bytes, more") \
	R(PTC,        0x040D8,    4,   6, 0x00000000, RC,  "8.2.3.23",    "packets transmitted, likewise") \
	R(MPTC,       0x040F0,    0,   1, 0x00000000, RC,  "8.2.3.23",    "multicast packets transmitted") \
	R(BPTC,       0x040F4,    0,   1, 0x00000000, RC,  "8.2.3.23",    "broadcast packets transmitted") \
	R(LXONTXC,    0x03F60,    0,   1, 0x00000000, RC,  "8.2.3.23",    "link XON transmitted") \
	R(LXOFFTXC,   0x03F68,    0,   1, 0x00000000, RC,  "8.2.3.23",    "link XOFF transmitted") \
	R(LXONRXCNT,  0x041A4,    0,   1, 0x00000000, RC,  "8.2.3.23",    "link XON received") \
	R(LXOFFRXCNT, 0x041A8,    0,   1, 0x00000000, RC,  "8.2.3.23",    "link XOFF received") \
	R(RQSMR,      0x02300,    4,  32, 0x00000000, RW,  "8.2.3.23",    "receive queue to statistics counter") \
	R(QPRC,       0x01030, 0x40,  16, 0x00000000, RC,  "8.2.3.23",    "queue packets received") \
	R(QPRDC,      0x01430, 0x40,  16, 0x00000000, RC,  "8.2.3.23",    "queue packets received, dropped") \
	R(QPTC,       0x08680,    4,  16, 0x00000000, RC,  "8.2.3.23",    "queue packets transmitted")

#define IXDP_FIELDS(F) \
	F(CTRL,       MASTER_DISABLE,  2,  1) \
	F(CTRL,       LRST,            3,  1) /* SC */ \
	F(CTRL,       RST,            26,  1) /* SC */ \
	F(STATUS,     LAN_ID,          2,  2) \
	F(STATUS,     LINK_UP,         7,  1) \
	F(STATUS,     MASTER_ENABLE,  19,  1) \
	F(CTRL_EXT,   PFRSTD,         14,  1) \
	F(CTRL_EXT,   NS_DIS,         16,  1) \
	F(CTRL_EXT,   RO_DIS,         17,  1) \
	F(CTRL_EXT,   DRV_LOAD,       28,  1) \
	F(EEC,        PRES,            8,  1) \
	F(EEC,        ARD,             9,  1) \
	F(FWSM,       FW_VALID,       15,  1) \
	F(FWSM,       EXT_ERR,        19,  6) \
	F(GCR_EXT,    BUFFERS_CLEAR,  30,  1) \
	F(EICR,       RTXQ,            0, 16) \
	F(EICR,       RX_MISS,        17,  1) \
	F(EICR,       LSC,            20,  1) \
	F(EIMC,       ALL,             0, 31) \
	F(EIMC_EX,    ALL,             0, 32) \
	F(FCTTV,      TTV0,            0, 16) \
	F(FCTTV,      TTV1,           16, 16) \
	F(FCRTL,      RTL,             5, 14) \
	F(FCRTL,      XONE,           31,  1) \
	F(FCRTH,      RTH,             5, 14) \
	F(FCRTH,      FCEN,           31,  1) \
	F(FCRTV,      REFRESH,         0, 16) \
	F(FCCFG,      TFCE,            3,  2) \
	F(TFCS,       TC_XOFF,         0,  1) \
	F(MFLCN,      RFCE,            3,  1) \
	F(FCTRL,      SBP,             1,  1) \
	F(FCTRL,      MPE,             8,  1) \
	F(FCTRL,      UPE,             9,  1) \
	F(FCTRL,      BAM,            10,  1) \
	F(VLNCTRL,    VET,             0, 16) \
	F(VLNCTRL,    CFI,            28,  1) \
	F(VLNCTRL,    CFIEN,          29,  1) \
	F(VLNCTRL,    VFE,            30,  1) \
	F(MCSTCTRL,   MO,              0,  2) \
	F(MCSTCTRL,   MFE,             2,  1) \
	F(RAH,        ADDR,            0, 16) \
	F(RAH,        AV,             31,  1) \
	F(FTQF,       QUEUE_ENABLE,   31,  1) \
	F(RXCSUM,     IPPCSE,         12,  1) \
	F(RXCSUM,     PCSD,           13,  1) \
	F(RETA,       ENTRY0,          0,  4) \
	F(RETA,       ENTRY1,          8,  4) \
	F(RETA,       ENTRY2,         16,  4) \
	F(RETA,       ENTRY3,         24,  4) \
	F(MRQC,       MRQE,            0,  4) \
	F(MRQC,       TCP_IPV4,       16,  1) \
	F(MRQC,       IPV4,           17,  1) \
	F(MRQC,       IPV6,           20,  1) \
	F(MRQC,       TCP_IPV6,       21,  1) \
	F(MRQC,       UDP_IPV4,       22,  1) \
	F(MRQC,       UDP_IPV6,       23,  1) \
	F(RDBAL,      BASE,            7, 25) \
	F(RDLEN,      LEN,             7, 13) \
	F(DCA_RXCTRL, MUST_BE_0,      12,  1) \
	F(RDH,        INDEX,           0, 16) \
	F(SRRCTL,     BSIZEPKT,        0,  5) \
	F(SRRCTL,     BSIZEHDR,        8,  6) \
	F(SRRCTL,     RDMTS,          22,  3) \
	F(SRRCTL,     DESCTYPE,       25,  3) \
	F(SRRCTL,     DROP_EN,        28,  1) \
	F(RDT,        INDEX,           0, 16) \
	F(RXDCTL,     ENABLE,         25,  1) \
	F(RXDCTL,     VME,            30,  1) \
	F(RDRXCTL,    CRCSTRIP,        1,  1) \
	F(RDRXCTL,    DMAIDONE,        3,  1) \
	F(RDRXCTL,    RSCFRSTSIZE,    17,  5) \
	F(RDRXCTL,    RSCACKC,        25,  1) \
	F(RDRXCTL,    FCOE_WRFIX,     26,  1) \
	F(RXCTRL,     RXEN,            0,  1) \
	F(RXPBSIZE,   SIZE,           10, 10) \
	F(SECRXCTRL,  SECRX_DIS,       0,  1) \
	F(SECRXCTRL,  RX_DIS,          1,  1) \
	F(SECRXSTAT,  RDY,             0,  1) \
	F(SECRXSTAT,  OFF_DIS,         1,  1) \
	F(RTTDCS,     ARBDIS,          6,  1) \
	F(TXPBTHRESH, THRESH,          0, 10) \
	F(DMATXCTL,   TE,              0,  1) \
	F(DMATXCTL,   GDV,             3,  1) \
	F(DMATXCTL,   VT,             16, 16) \
	F(TDBAL,      BASE,            7, 25) \
	F(TDLEN,      LEN,             7, 13) \
	F(DCA_TXCTRL, DESC_WB_RO,     11,  1) \
	F(TDH,        INDEX,           0, 16) \
	F(TDT,        INDEX,           0, 16) \
	F(TXDCTL,     PTHRESH,         0,  7) \
	F(TXDCTL,     HTHRESH,         8,  7) \
	F(TXDCTL,     WTHRESH,        16,  7) \
	F(TXDCTL,     ENABLE,         25,  1) \
	F(TXDCTL,     SWFLSH,         26,  1) /* SC */ \
	F(DTXMXSZRQ,  MAX_BYTES,       0, 12) \
	F(MTQC,       RT_ENA,          0,  1) \
	F(MTQC,       VT_ENA,          1,  1) \
	F(MTQC,       NUM_TC_OR_Q,     2,  2) \
	F(TXPBSIZE,   SIZE,           10, 10) \
	F(HLREG0,     TXCRCEN,         0,  1) \
	F(HLREG0,     RXCRCSTRP,       1,  1) \
	F(HLREG0,     JUMBOEN,         2,  1) \
	F(HLREG0,     TXPADEN,        10,  1) \
	F(HLREG0,     LPBK,           15,  1) \
	F(HLREG0,     MDCSPD,         16,  1) \
	F(HLREG0,     RXLNGTHERREN,   27,  1) \
	F(MAXFRS,     MFS,            16, 16) \
	F(AUTOC,      FLU,             0,  1) \
	F(AUTOC,      RESTART_AN,     12,  1) /* SC */ \
	F(AUTOC,      LMS,            13,  3) \
	F(LINKS,      SPEED,          28,  2) \
	F(LINKS,      UP,             30,  1) \
	F(RQSMR,      MAP0,            0,  4) \
	F(RQSMR,      MAP1,            8,  4) \
	F(RQSMR,      MAP2,           16,  4) \
	F(RQSMR,      MAP3,           24,  4)
/* clang-format on */

/* REG_CTRL and so on: the offset of a register in BAR0, of the first one of an array. */
enum ixdp_reg {
#define R(name, offset, stride, count, reset, access, section, what) REG_##name = offset,
	IXDP_REGISTERS(R)
#undef R
};

/* REG_CTRL_STRIDE and so on. */
enum {
#define R(name, offset, stride, count, reset, access, section, what)                               \
	REG_##name##_STRIDE = stride, REG_##name##_COUNT = count,
	IXDP_REGISTERS(R)
#undef R
};

/* CTRL_RST and so on: a field's mask in place. CTRL_RST_LOW: its lowest bit. */
enum {
#define F(reg, field, low, width) reg##_##field = (0xFFFFFFFFu >> (32 - (width))) << (low),
	IXDP_FIELDS(F)
#undef F
};
enum {
#define F(reg, field, low, width) reg##_##field##_LOW = low,
	IXDP_FIELDS(F)
#undef F
};

/* Register n of an array. */
#define REG_N(name, n) (REG_##name + REG_##name##_STRIDE * (uint32_t)(n))

/* A value put into a field's place: FIELD(SRRCTL_BSIZEPKT, 2). */
#define FIELD(field, value) ((uint32_t)(value) << field##_LOW & (uint32_t)(field))

/* What a field of a register's value holds. */
#define FIELD_GET(field, regvalue) (((regvalue) & (uint32_t)(field)) >> field##_LOW)

/* LINKS.SPEED, section 8.2.3.22.20. */
enum { LINKS_SPEED_100M = 1, LINKS_SPEED_1G = 2, LINKS_SPEED_10G = 3 };

/* MRQC.MRQE, section 8.2.3.7.12. */
enum { MRQC_MRQE_NONE = 0, MRQC_MRQE_RSS = 1 };

/* MTQC.NUM_TC_OR_Q with RT_ENA, section 8.2.3.9.15. */
enum { MTQC_4_TCS_128_QUEUES = 2 };

/* SRRCTL.DESCTYPE, section 8.2.3.8.7. */
enum { SRRCTL_DESCTYPE_LEGACY = 0, SRRCTL_DESCTYPE_ADVANCED = 1 };

/*
 * A descriptor is 16 bytes, little endian (sections 7.1.5, 7.1.6 and 7.2.3.2). Device and driver
 * hand it to each other through its second quad word, which desc_publish() stores last and
 * desc_look() loads first.
 */
struct desc {
	uint64_t qw0;
	uint64_t qw1;
};

/* Advanced receive descriptor, read format: qw0 the packet buffer, qw1 the header buffer (0). */

/* Advanced receive descriptor, write-back format, section 7.1.6.2: bits of qw1. */
#define RXD_DD (UINT64_C(1) << 0)
#define RXD_EOP (UINT64_C(1) << 1)
#define RXD_VP (UINT64_C(1) << 3)	/* has a VLAN tag */
#define RXD_UDPCS (UINT64_C(1) << 4)	/* checksums that were looked at: UDP */
#define RXD_L4CS (UINT64_C(1) << 5)	/* TCP, UDP, SCTP */
#define RXD_IPCS (UINT64_C(1) << 6)	/* IPv4 */
#define RXD_PIF (UINT64_C(1) << 7)	/* passed an inexact filter */
#define RXD_ERR_CE (UINT64_C(1) << 24)	/* CRC */
#define RXD_ERR_LE (UINT64_C(1) << 25)	/* length */
#define RXD_ERR_PE (UINT64_C(1) << 27)	/* MAC packet error */
#define RXD_ERR_OSE (UINT64_C(1) << 28) /* oversize */
#define RXD_ERR_USE (UINT64_C(1) << 29) /* undersize */
/* Checksums inside the frame that are wrong; the frame itself is whole. */
#define RXD_L4E (UINT64_C(1) << 30)
#define RXD_IPE (UINT64_C(1) << 31)
#define RXD_ERR_FRAME (RXD_ERR_CE | RXD_ERR_LE | RXD_ERR_PE | RXD_ERR_OSE | RXD_ERR_USE)
#define RXD_LEN_LOW 32
#define RXD_LEN (UINT64_C(0xFFFF) << RXD_LEN_LOW)
#define RXD_VLAN_LOW 48

/* The same: bits of qw0. What the RSS hash, in its upper half, was made of: */
#define RXD_RSS UINT64_C(0xF)
enum rxd_rss {
	RXD_RSS_NONE = 0,
	RXD_RSS_TCP_IPV4 = 1,
	RXD_RSS_IPV4 = 2,
	RXD_RSS_TCP_IPV6 = 3,
	RXD_RSS_IPV6 = 5,
	RXD_RSS_UDP_IPV4 = 7,
	RXD_RSS_UDP_IPV6 = 8,
};
#define RXD_HASH_LOW 32

/* And the headers that were found, from bit 4 on. */
enum {
	RXD_TYPE_IPV4 = 1 << 0,
	RXD_TYPE_IPV4_OPTIONS = 1 << 1,
	RXD_TYPE_IPV6 = 1 << 2,
	RXD_TYPE_IPV6_EXTENSION = 1 << 3,
	RXD_TYPE_TCP = 1 << 4,
	RXD_TYPE_UDP = 1 << 5,
	RXD_TYPE_SCTP = 1 << 6,
};
#define RXD_TYPE_LOW 4

/* Advanced transmit data descriptor, section 7.2.3.2.4: bits of qw1. */
#define TXD_DTALEN (UINT64_C(0xFFFF) << 0)
#define TXD_DTYP (UINT64_C(0xF) << 20)
#define TXD_DTYP_CONTEXT (UINT64_C(2) << 20)
#define TXD_DTYP_DATA (UINT64_C(3) << 20)
#define TXD_EOP (UINT64_C(1) << 24)
#define TXD_IFCS (UINT64_C(1) << 25)
#define TXD_RS_LOW 27
#define TXD_RS (UINT64_C(1) << TXD_RS_LOW)
#define TXD_DEXT (UINT64_C(1) << 29)
#define TXD_VLE (UINT64_C(1) << 30)  /* puts in the context's VLAN tag */
#define TXD_DD (UINT64_C(1) << 32)   /* written back by the device */
#define TXD_IXSM (UINT64_C(1) << 40) /* fills in the checksum of IPv4 */
#define TXD_TXSM (UINT64_C(1) << 41) /* and of TCP, UDP, SCTP */
#define TXD_PAYLEN_LOW 46
#define TXD_PAYLEN (UINT64_C(0x3FFFF) << TXD_PAYLEN_LOW)

/* Context descriptor, section 7.2.3.2.3: what the data descriptors after it refer to. qw0: */
#define TXC_MACLEN_LOW 9
#define TXC_VLAN_LOW 16
/* qw1: */
#define TXC_IPV4 (UINT64_C(1) << 10)
#define TXC_L4T_LOW 11
enum txc_l4t { TXC_L4T_UDP, TXC_L4T_TCP, TXC_L4T_SCTP, TXC_L4T_NONE };
#define TXC_L4LEN_LOW 40

/*
 * The second quad word as the other side last published it. Acquire: everything that the other
 * side wrote before it (qw0, and the packet in the buffer) is seen by loads after this one; without
 * it an old length or old payload can be read under a new DD.
 */
static inline uint64_t desc_look(const struct desc *d) {
	return le64toh(__atomic_load_n(&d->qw1, __ATOMIC_ACQUIRE));
}

/* Stores the second quad word, after everything written before it: the pair of desc_look(). */
static inline void desc_publish(struct desc *d, uint64_t qw1) {
	__atomic_store_n(&d->qw1, htole64(qw1), __ATOMIC_RELEASE);
}
