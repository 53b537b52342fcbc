/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports: opening a NIC, receiving and sending packets, link, addresses, statistics.
 */
#pragma once

#include "packet.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ixdp_port;

enum {
	IXDP_MIN_RING = 64,   /* descriptors */
	IXDP_MAX_RING = 4096, /* descriptors */
	IXDP_MAX_RX_QUEUES = 16,
	IXDP_MAX_TX_QUEUES = 64,
	IXDP_NAME_MAX = 64, /* bytes of a port's short name, its NUL included */
};

/* How a port shall be. Set it up with ixdp_config_init(), then change what shall differ. */
struct ixdp_config {
	unsigned rx_queues; /* 0 to IXDP_MAX_RX_QUEUES; 0: the port only sends; all frames go to
				queue 0 so far, as nothing spreads them */
	unsigned tx_queues; /* 0 to IXDP_MAX_TX_QUEUES; 0: the port only receives */
	unsigned
	    rx_ring; /* descriptors per RX ring: a power of two, IXDP_MIN_RING to IXDP_MAX_RING */
	unsigned tx_ring; /* descriptors per TX ring, likewise */
	bool promiscuous; /* take frames for any address */
	bool force;	  /* take a NIC although its interface is up or another driver holds it */
	struct ixdp_pool *pool; /* buffers for all queues; NULL: the pool that the process shares */
};

/* Defaults: one RX and one TX queue of 512 descriptors, promiscuous, the process's pool. */
IXDP_API void ixdp_config_init(struct ixdp_config *cfg);

/*
 * How many buffers a port of this configuration can hold at once, what its callers and the
 * caches of one thread a queue hold included: below that a pool could run dry for good.
 */
IXDP_API unsigned ixdp_pool_needed(const struct ixdp_config *cfg);

/*
 * Opens a NIC: takes it over, resets it, sets up its rings, enables it. Link may come up later.
 * port: receives it.
 * name: a PCI address ("0000:03:00.0", "03:00.0") or a software port ("soft:NAME[,key=value...]").
 * cfg: NULL for the defaults; not kept.
 * Returns 0, or -errno with ixdp_error() saying what failed, where, and what to do; nothing is left
 * changed then: -EINVAL (name or configuration), -ENODEV (no such device, not an 82599, does not
 * answer), -EBUSY (in use: see force), -EACCES or -EPERM (privileges), -ENOMEM, -ENOBUFS (pool too
 * small), -ETIMEDOUT (the card did not do what it must; register and bit are named), -EIO.
 */
IXDP_API int ixdp_open(struct ixdp_port **port, const char *name, const struct ixdp_config *cfg);

/*
 * Stops the NIC, waits (bounded) until it is quiet, returns all buffers of its rings to the pool,
 * gives the device back to the driver that had it. No other thread may use the port any more.
 */
IXDP_API void ixdp_close(struct ixdp_port *port);

/*
 * Receives packets. Never waits.
 * pkts: n elements to fill; the buffers are the caller's afterwards, to be sent or freed.
 * Returns the number of elements filled, in order of arrival; 0 when there is nothing;
 * -EINVAL for a queue that the port does not have.
 * One thread at a time per queue.
 */
IXDP_API int ixdp_rx(struct ixdp_port *port, unsigned queue, struct ixdp_pkt *pkts, unsigned n);

/*
 * Sends packets. Never waits.
 * pkts: n elements. Buffers must come from the port's pool; whole frames only.
 * Returns how many elements were taken, from the front: those are the port's and return to the pool
 * when sent. The rest stays the caller's. Fewer than n: the ring is full.
 * -EINVAL: no such queue; or, when the first element is at fault, it has less than 17 bytes (the
 * NIC pads to 60, but not from less), ends behind its buffer (headroom + len above IXDP_HEADROOM +
 * IXDP_DATA_SIZE), or has IXDP_PKT_CONTD set. A later one at fault ends the batch in front of it.
 * One thread at a time per queue.
 */
IXDP_API int ixdp_tx(struct ixdp_port *port, unsigned queue, const struct ixdp_pkt *pkts,
		     unsigned n);

/*
 * Returns to the pool what the queue has sent by now, the last few packets included, which an idle
 * queue otherwise keeps (up to 31) until the next send. Reads a register: not for every batch.
 * Returns how many elements, or -EINVAL. One thread at a time per queue, sending included.
 */
IXDP_API int ixdp_tx_clean(struct ixdp_port *port, unsigned queue);

/* The port's short name: the PCI address in full, or a software port's name without options. */
IXDP_API const char *ixdp_port_name(const struct ixdp_port *port);

/* The pool that the port's buffers come from. */
IXDP_API struct ixdp_pool *ixdp_port_pool(const struct ixdp_port *port);

struct ixdp_link {
	bool up;
	unsigned mbps; /* Mbit/s; 0 when down */
};

/* Link state now (LINKS, section 8.2.3.22.20). Any thread. Returns 0, or -ENODEV (NIC gone). */
IXDP_API int ixdp_link_get(struct ixdp_port *port, struct ixdp_link *link);

/*
 * Waits until link is up, at most timeout_ms milliseconds. Any thread.
 * Returns 0 (link is filled), -ETIMEDOUT (still down), or -ENODEV.
 */
IXDP_API int ixdp_link_wait(struct ixdp_port *port, unsigned timeout_ms, struct ixdp_link *link);

/*
 * Takes frames for any address (on), or only those for the port's own and broadcasts (off).
 * Reception pauses for the change (section 8.2.3.7.1). One thread at a time. 0 or -errno.
 */
IXDP_API int ixdp_promiscuous_set(struct ixdp_port *port, bool on);

/* The port's address: receive address 0. Any thread. */
IXDP_API void ixdp_mac_get(const struct ixdp_port *port, uint8_t mac[6]);

/*
 * Sets the port's address until it is closed; the permanent one returns then. One thread at a time.
 * Returns 0, or -EINVAL for a multicast address or zero.
 */
IXDP_API int ixdp_mac_set(struct ixdp_port *port, const uint8_t mac[6]);

/* Totals since open. Bytes are without FCS. */
struct ixdp_stats {
	uint64_t rx_packets; /* given to callers of ixdp_rx() */
	uint64_t rx_bytes;
	uint64_t tx_packets; /* put on the wire */
	uint64_t tx_bytes;
	uint64_t tx_taken; /* taken by ixdp_tx(): those above, and those still waiting to be sent */
	uint64_t rx_dropped; /* sum of the reasons below that lose a frame */

	uint64_t rx_missed;    /* no room in the NIC's packet buffer (MPC) */
	uint64_t rx_no_desc;   /* no free descriptor in the ring of its queue (QPRDC) */
	uint64_t rx_crc;       /* FCS wrong (CRCERRS) */
	uint64_t rx_undersize; /* shorter than 64 B with FCS (RUC) */
	uint64_t rx_oversize;  /* longer than the maximum (ROC), or than one buffer */
	uint64_t rx_len_zero;  /* descriptor done with length 0 */
	uint64_t rx_errors;    /* descriptor done with an error flag */
	uint64_t rx_nobuf;     /* refills that found the pool short: no loss by themselves */
};

/*
 * Totals since open. The NIC's counters clear when read: the port keeps 64-bit totals, and is their
 * only reader. Call it at least every 30 s: at 10 Gbit/s the NIC's octet counter, of 36 bits, is
 * full after 55 s, and stays so. Any thread; between threads that send or receive, a snapshot.
 * Returns 0 or -ENODEV.
 */
IXDP_API int ixdp_stats_get(struct ixdp_port *port, struct ixdp_stats *stats);

#ifdef __cplusplus
}
#endif
