/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of a port and of its queues. Every one is a line here: S(name, what it counts). From
 * these lines come the structures, whose members are uint64_t and nothing else, and the lists of
 * names, so that a program can print all of them and knows none.
 */
#pragma once

#include "packet.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ixdp_port;

/*
 * Registers are those of section 8.2.3.23 of the datasheet. Bytes are without FCS; sizes with it.
 * A frame that arrived is in rx_packets, in one of the reasons that rx_dropped sums up, in rx_xon
 * or rx_xoff, or still waits in a ring.
 */
/* clang-format off */
#define IXDP_STATS(S) \
	S(rx_packets,   "frames given to callers") \
	S(rx_bytes,     "their bytes") \
	S(rx_dropped,   "frames lost: the sum of the next eleven") \
	S(rx_missed,    "no room in the NIC's packet buffer (MPC)") \
	S(rx_no_desc,   "no free descriptor in the ring of its queue (QPRDC)") \
	S(rx_crc,       "wrong FCS (CRCERRS)") \
	S(rx_undersize, "shorter than 64 B (RUC)") \
	S(rx_fragments, "shorter than 64 B, with a wrong FCS (RFC)") \
	S(rx_oversize,  "longer than the maximum (ROC), or than what a ring can take") \
	S(rx_jabber,    "longer than the maximum, with a wrong FCS (RJC)") \
	S(rx_length,    "other than its length field says (RLEC)") \
	S(rx_filtered,  "for nobody here: no filter took it (TPR without all others)") \
	S(rx_len_zero,  "descriptor done with length 0") \
	S(rx_errors,    "descriptor done with an error flag") \
	S(rx_nobuf,     "refills that found the pool short: no loss by themselves") \
	S(rx_multicast, "good multicast frames that arrived (MPRC)") \
	S(rx_broadcast, "good broadcast frames that arrived (BPRC)") \
	S(rx_64,        "good frames that arrived, of 64 B (PRC64)") \
	S(rx_127,       "of 65 to 127 B") \
	S(rx_255,       "of 128 to 255 B") \
	S(rx_511,       "of 256 to 511 B") \
	S(rx_1023,      "of 512 to 1,023 B") \
	S(rx_max,       "of 1,024 B and more") \
	S(rx_xon,       "PAUSE frames that let us go on (LXONRXCNT)") \
	S(rx_xoff,      "PAUSE frames that ask us to pause (LXOFFRXCNT)") \
	S(tx_packets,   "frames put on the wire, without PAUSE frames (GPTC)") \
	S(tx_bytes,     "their bytes (GOTC)") \
	S(tx_taken,     "frames taken by ixdp_tx(): sent, pending or dropped") \
	S(tx_pending,   "taken and not sent so far: a state, not a count") \
	S(tx_dropped,   "taken and never sent: they were in a ring when the port was stopped") \
	S(tx_full,      "elements that ixdp_tx() left with its caller: the ring was full") \
	S(tx_multicast, "multicast frames sent (MPTC)") \
	S(tx_broadcast, "broadcast frames sent (BPTC)") \
	S(tx_64,        "frames sent, of 64 B (PTC64)") \
	S(tx_127,       "of 65 to 127 B") \
	S(tx_255,       "of 128 to 255 B") \
	S(tx_511,       "of 256 to 511 B") \
	S(tx_1023,      "of 512 to 1,023 B") \
	S(tx_max,       "of 1,024 B and more") \
	S(tx_xon,       "PAUSE frames sent, to let the peer go on (LXONTXC)") \
	S(tx_xoff,      "PAUSE frames sent, to ask the peer to pause (LXOFFTXC)") \
	S(tx_paused,    "1 while the peer has paused us (TFCS): a state") \
	S(saturated,    "reads of a register that was full: what it missed is unknown")

#define IXDP_RX_QUEUE_STATS(S) \
	S(packets,  "frames given to callers") \
	S(bytes,    "their bytes") \
	S(no_desc,  "lost: no free descriptor (QPRDC)") \
	S(oversize, "lost: longer than what the ring can take") \
	S(len_zero, "lost: descriptor done with length 0") \
	S(errors,   "lost: descriptor done with an error flag") \
	S(nobuf,    "refills that found the pool short")

#define IXDP_TX_QUEUE_STATS(S) \
	S(taken, "frames taken by ixdp_tx()") \
	S(bytes, "their bytes") \
	S(full,  "elements left with the caller: the ring was full")
/* clang-format on */

#define IXDP_STATS_MEMBER(name, what) uint64_t name;
struct ixdp_stats {
	IXDP_STATS(IXDP_STATS_MEMBER)
};
struct ixdp_rx_queue_stats {
	IXDP_RX_QUEUE_STATS(IXDP_STATS_MEMBER)
};
struct ixdp_tx_queue_stats {
	IXDP_TX_QUEUE_STATS(IXDP_STATS_MEMBER)
};
#undef IXDP_STATS_MEMBER

/* Name i is that of the i-th uint64_t of the structure. n: receives how many there are. */
IXDP_API const char *const *ixdp_stats_names(unsigned *n);
IXDP_API const char *const *ixdp_rx_queue_stats_names(unsigned *n);
IXDP_API const char *const *ixdp_tx_queue_stats_names(unsigned *n);

/*
 * Totals since open or clear. The NIC's counters clear when read: the port keeps 64-bit totals, and
 * is their only reader. Call it at least every 30 s: at 10 Gbit/s the NIC's octet counter, of 36
 * bits, is full after 55 s, and stays so. Any thread; between threads that send or receive, a
 * snapshot. No count ever falls but by clear. An RX queue that nobody polls while frames for it are
 * dropped is named in the log, once.
 * Returns 0 or -ENODEV.
 */
IXDP_API int ixdp_stats_get(struct ixdp_port *port, struct ixdp_stats *stats);

/* The same for one queue. Returns 0, -ENODEV, or -EINVAL for a queue that the port does not have.
 */
IXDP_API int ixdp_rx_queue_stats_get(struct ixdp_port *port, unsigned queue,
				     struct ixdp_rx_queue_stats *stats);
IXDP_API int ixdp_tx_queue_stats_get(struct ixdp_port *port, unsigned queue,
				     struct ixdp_tx_queue_stats *stats);

/* All counts, the queues' too, begin at 0 again. Any thread. Returns 0 or -ENODEV. */
IXDP_API int ixdp_stats_clear(struct ixdp_port *port);

#ifdef __cplusplus
}
#endif
