/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets and the pools that their buffers come from.
 *
 * A packet is a value of 16 bytes which points into a packet buffer; arrays of them go in and out
 * of every call. A buffer has one owner at any time: its pool, a ring of a port, or the caller.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IXDP_API __attribute__((visibility("default")))

enum {
	IXDP_HEADROOM = 256, /* bytes in front of received data, for headers to be put before it */
	IXDP_DATA_SIZE = 2048, /* bytes that the NIC may fill: what SRRCTL.BSIZEPKT = 2 says */
	/*
	 * Bytes from one buffer to the next: an odd number of 64 B cache lines. With an even number
	 * the first lines of all packets compete for the same few sets of the cache.
	 */
	IXDP_BUFFER_STRIDE = 37 * 64,
	IXDP_MIN_FRAME = 60, /* shortest Ethernet frame, bytes without FCS; the NIC pads to it */
};

/*
 * Flags of a packet. All but IXDP_PKT_CONTD concern the whole frame, and stand in its first
 * element. Those of a received frame are there if the port has the offload (ixdp_config.offloads);
 * sending ignores them, so that a frame may be passed on as it came.
 */
enum {
	IXDP_PKT_CONTD = 1u << 0, /* the frame goes on in the next array element */
	/*
	 * The frame belongs to a VLAN, and its tag is not in it but in the upper half of flags:
	 * taken off by the receiving port, to be put in by the sending one. ixdp_pkt_vlan().
	 */
	IXDP_PKT_VLAN = 1u << 1,
	/* To be sent with its checksums filled in by the NIC: ixdp_tx() says of which frames. */
	IXDP_PKT_IP_CSUM = 1u << 2, /* of the IPv4 header */
	IXDP_PKT_L4_CSUM = 1u << 3, /* of TCP, UDP or SCTP */
	/* Received: the NIC has looked at a checksum and found it right, or wrong. None: unknown.
	 */
	IXDP_PKT_IP_CSUM_GOOD = 1u << 4,
	IXDP_PKT_IP_CSUM_BAD = 1u << 5,
	IXDP_PKT_L4_CSUM_GOOD = 1u << 6,
	IXDP_PKT_L4_CSUM_BAD = 1u << 7,
};

/* A packet, or one element of a frame that spans several. */
struct ixdp_pkt {
	uint8_t *data;	   /* first byte of the frame, or of this part of it */
	uint16_t len;	   /* bytes of it here, without FCS */
	uint16_t headroom; /* bytes from the start of the buffer to data */
	uint32_t flags;	   /* IXDP_PKT_*, and a VLAN tag in the upper 16 bits */
};

/* The VLAN tag beside a frame with IXDP_PKT_VLAN: priority, DEI, and the VLAN's id in 12 bits. */
static inline uint16_t ixdp_pkt_vlan(const struct ixdp_pkt *pkt) { return pkt->flags >> 16; }

/* Has the frame sent with a VLAN tag. */
static inline void ixdp_pkt_vlan_set(struct ixdp_pkt *pkt, uint16_t tag) {
	pkt->flags = (pkt->flags & 0xFFFF) | IXDP_PKT_VLAN | (uint32_t)tag << 16;
}

/* Start of the buffer that a packet lies in: what identifies it to its pool. */
static inline uint8_t *ixdp_pkt_buffer(const struct ixdp_pkt *pkt) {
	return pkt->data - pkt->headroom;
}

struct ixdp_pool;

struct ixdp_pool_config {
	unsigned buffers;    /* how many packet buffers */
	int numa_node;	     /* where their memory shall be; -1: anywhere */
	bool ordinary_pages; /* without huge pages take ordinary ones: good for software ports only
			      */
};

/*
 * Makes a pool of packet buffers.
 * pool: receives it; the caller owns it and gives it to ports by ixdp_config.pool.
 * Returns 0; -EINVAL (no buffers, too many, no such node), -ENOMEM (too few huge pages;
 * ixdp_error() says how many are needed and free), -ENOENT (no hugetlbfs mount), -EMFILE (too many
 * pools).
 * Any thread may call it.
 */
IXDP_API int ixdp_pool_create(struct ixdp_pool **pool, const struct ixdp_pool_config *cfg);

/*
 * Gives a pool's memory back. Returns 0, or -EBUSY while a port uses it or buffers are still with
 * the caller (their number is in ixdp_error()); the pool then stays as it was.
 */
IXDP_API int ixdp_pool_destroy(struct ixdp_pool *pool);

/*
 * Takes up to n buffers from the pool as empty packets: data behind IXDP_HEADROOM, len 0, flags 0.
 * pkts: n elements to fill; the caller owns the buffers afterwards.
 * Returns how many were taken: fewer than n when the pool is low, 0 when it is empty.
 * Any thread may call it.
 */
IXDP_API int ixdp_alloc(struct ixdp_pool *pool, struct ixdp_pkt *pkts, unsigned n);

/*
 * Gives n buffers of the caller back to the pool that they came from. Any thread may call it.
 * A debug build finds a buffer that is not the caller's or not the pool's, names it through the
 * log, counts it (ixdp_pool_stats.bad_frees), and leaves it where it is. In a release build the
 * behaviour is undefined.
 */
IXDP_API void ixdp_free(struct ixdp_pool *pool, const struct ixdp_pkt *pkts, unsigned n);

struct ixdp_pool_stats {
	unsigned buffers;   /* size of the pool */
	unsigned available; /* in the pool, those in thread caches included */
	unsigned cached;    /* of these, in thread caches */
	unsigned committed; /* buffers that its open ports may hold at once */
	uint64_t bad_frees; /* found by a debug build */
	bool huge_pages;    /* memory is huge pages of hugetlbfs */
};

/* Where a pool's buffers are. A snapshot: exact when no other thread uses the pool. */
IXDP_API void ixdp_pool_get_stats(const struct ixdp_pool *pool, struct ixdp_pool_stats *stats);

#ifdef __cplusplus
}
#endif
