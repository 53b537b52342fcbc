/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving, section 7.1. Software puts buffers into a ring of descriptors, the NIC fills them in
 * order. Three places in the ring, each chasing the one before it:
 *
 *	RDH     where the NIC is: it owns [RDH, RDT)
 *	next    the next frame that we look at
 *	refill  descriptors in [refill, next) have lost their buffer to a caller and need a new one
 *
 * RDT is always refill - 1. The descriptor at RDT has a buffer, but is not the NIC's: with
 * RDT == RDH the NIC would own nothing instead of everything. So one descriptor in the ring is
 * always new and never done, and `next` cannot run past it into old ones.
 */
#include "port.h"

#include <errno.h>

/* Gives new buffers to the descriptors in [refill, next), in chunks; one doorbell for all. */
static void rx_refill(struct rx_ring *ring) {
	/* In locals, as the compiler must assume that the stores below could change the ring. */
	const struct iova_table iova = ring->iova;
	struct desc *desc = ring->desc;
	uint8_t **buf = ring->buf, *bufs[POOL_CHUNK];
	uint32_t mask = ring->mask, refill = ring->refill;
	do {
		unsigned n = pool_take(ring->pool, bufs, POOL_CHUNK, OWNER_RING);
		for (unsigned i = 0; i < n; i++) {
			uint32_t slot = (refill + i) & mask;

			/* The write-back has overwritten the address, so both words are renewed. */
			buf[slot] = bufs[i];
			desc[slot].qw0 = htole64(iova_of(&iova, bufs[i] + IXDP_HEADROOM));
			desc[slot].qw1 = 0;
		}
		refill += n;
		if (unlikely(n < POOL_CHUNK)) {
			counter_add(&ring->nobuf, 1);
			break;
		}
	} while (ring->next - refill >= POOL_CHUNK);

	if (likely(refill != ring->refill)) {
		ring->refill = refill;
		doorbell_ring(ring->doorbell, (refill - 1) & mask);
	}
}

/* Counts why k descriptors hold no frame, and recycles them. done: of the last; len: of all. */
static void rx_discard(struct rx_ring *ring, uint32_t next, unsigned k, uint64_t done,
		       unsigned len) {
	bool last = done & RXD_EOP;
	if (ring->skipping)
		; /* counted when it began */
	else if (last && done & RXD_ERR_FRAME)
		counter_add(&ring->errors, 1);
	else
		counter_add(last && len <= ring->longest ? &ring->len_zero : &ring->oversize, 1);
	ring->skipping = !last;
	for (; k > 0; k--)
		pool_give(ring->pool, &ring->buf[next++ & ring->mask], 1, OWNER_RING);
}

/* The end of a batch: it took the descriptors up to next. */
static void rx_end(struct rx_ring *ring, uint32_t next, unsigned packets, uint64_t bytes) {
	ring->next = next;
	/* Whatever came, so that a ring which ran dry for want of buffers comes back to life. */
	if (next - ring->refill >= POOL_CHUNK) rx_refill(ring);
	counter_add(&ring->packets, packets);
	counter_add(&ring->bytes, bytes);
}

/* ixdp_rx() where every frame fits one buffer and nobody asks for more than the frame. */
static int rx_plain(struct rx_ring *ring, struct ixdp_pkt *pkts, struct ixdp_rx_hash *hashes,
		    unsigned n) {
	const struct desc *desc = ring->desc; /* locals as above */
	uint8_t *const *bufs = ring->buf;
	uint32_t mask = ring->mask, next = ring->next;
	/* So many descriptors have a buffer, whatever a NIC that errs writes into the others. */
	unsigned room = ring->refill + mask + 1 - next;
	uint64_t bytes = 0;
	unsigned got = 0;
	(void)hashes;
	for (n = n < room ? n : room; got < n; next++) {
		uint64_t done = desc_look(&desc[next & mask]);
		uint8_t *buf = bufs[next & mask];
		uint16_t len = done >> RXD_LEN_LOW;
		if (!(done & RXD_DD)) break;
		if (unlikely((done & (RXD_EOP | RXD_ERR_FRAME)) != RXD_EOP ||
			     len - 1u >= IXDP_DATA_SIZE || ring->skipping)) {
			rx_discard(ring, next, 1, done, len);
			n = n < --room ? n : room;
			continue;
		}
		pool_handover(ring->pool, buf, OWNER_RING, OWNER_CALLER);
		pkts[got++] = (struct ixdp_pkt){buf + IXDP_HEADROOM, len, IXDP_HEADROOM, 0};
		bytes += len;
	}
	rx_end(ring, next, got, bytes);
	return got;
}

/* What a frame's last descriptor says of its VLAN tag and its checksums, as flags. */
static uint32_t rx_flags(unsigned offloads, uint64_t qw0, uint64_t done) {
	uint32_t flags = 0;
	if (offloads & IXDP_OFFLOAD_VLAN_STRIP && done & RXD_VP)
		flags |= IXDP_PKT_VLAN | (uint32_t)(done >> RXD_VLAN_LOW) << 16;
	if (!(offloads & IXDP_OFFLOAD_CSUM)) return flags;

	/* UNCLEAR: fragments may show IPE (specification update 66), so without a transport it
	 * says nothing; and L4E is shown for UDP without a checksum. */
	uint64_t types = qw0 >> RXD_TYPE_LOW;
	bool whole = types & (RXD_TYPE_TCP | RXD_TYPE_UDP | RXD_TYPE_SCTP);
	if (done & RXD_IPCS && (whole || !(done & RXD_IPE)))
		flags |= done & RXD_IPE ? IXDP_PKT_IP_CSUM_BAD : IXDP_PKT_IP_CSUM_GOOD;
	if (done & RXD_L4CS && !(types & RXD_TYPE_UDP && done & RXD_L4E))
		flags |= done & RXD_L4E ? IXDP_PKT_L4_CSUM_BAD : IXDP_PKT_L4_CSUM_GOOD;
	return flags;
}

/*
 * ixdp_rx() for any frame: of several elements, with its flags, with its hash. One that has no end
 * yet, or no room in pkts, is looked at again next time.
 */
static int rx_any(struct rx_ring *ring, struct ixdp_pkt *pkts, struct ixdp_rx_hash *hashes,
		  unsigned n) {
	const struct desc *desc = ring->desc; /* all as above */
	uint8_t *const *bufs = ring->buf;
	uint32_t mask = ring->mask, next = ring->next;
	unsigned room = ring->refill + mask + 1 - next, elements = ring->elements;
	unsigned got = 0, packets = 0;
	uint64_t bytes = 0;
	if (n > 0 && n < elements)
		return ixdp_fail(EMSGSIZE, "%s: receiving %u elements at once: a frame may have %u",
				 ring->port, n, elements);
	for (;;) {
		struct ixdp_pkt *frame = &pkts[got];
		uint64_t done = 0;
		unsigned k = 0, len = 0;
		bool good = !ring->skipping;
		while (!(done & RXD_EOP) && k < elements && k < room && got + k < n) {
			uint64_t part = desc_look(&desc[(next + k) & mask]);
			uint8_t *buf = bufs[(next + k) & mask];
			uint16_t part_len = part >> RXD_LEN_LOW;
			if (!(part & RXD_DD)) break;
			done = part;
			frame[k++] = (struct ixdp_pkt){buf + IXDP_HEADROOM, part_len, IXDP_HEADROOM,
						       IXDP_PKT_CONTD};
			good &= part_len > 0;
			len += part_len <= IXDP_DATA_SIZE ? part_len : UINT16_MAX;
		}
		if (!(done & RXD_EOP) && k < elements) break;
		if (unlikely(!good || (done & (RXD_EOP | RXD_ERR_FRAME)) != RXD_EOP ||
			     len > ring->longest)) {
			rx_discard(ring, next, k, done, len);
			next += k;
			room -= k;
			continue;
		}
		uint64_t qw0 = le64toh(desc[(next + k - 1) & mask].qw0);
		frame[k - 1].flags = 0;
		frame->flags |= rx_flags(ring->offloads, qw0, done);
		if (hashes)
			hashes[got] = (struct ixdp_rx_hash){qw0 >> RXD_HASH_LOW,
							    1u << (qw0 & RXD_RSS) & IXDP_RSS_ALL};
		for (room -= k, got += k; k > 0; k--)
			pool_handover(ring->pool, bufs[next++ & mask], OWNER_RING, OWNER_CALLER);
		bytes += len;
		packets++;
	}
	rx_end(ring, next, packets, bytes);
	return got;
}

static int rx_stopped(struct rx_ring *ring, struct ixdp_pkt *pkts, struct ixdp_rx_hash *hashes,
		      unsigned n) {
	(void)pkts, (void)hashes, (void)n;
	return ixdp_fail(ENETDOWN, "%s: port is stopped", ring->port);
}

int ixdp_rx(struct ixdp_port *port, unsigned queue, struct ixdp_pkt *pkts, unsigned n) {
	if (unlikely(queue >= port->cfg.rx_queues))
		return port_no_queue(port, "RX", queue, port->cfg.rx_queues);
	return port->rx[queue].receive(&port->rx[queue], pkts, NULL, n);
}

int ixdp_rx_hashed(struct ixdp_port *port, unsigned queue, struct ixdp_pkt *pkts,
		   struct ixdp_rx_hash *hashes, unsigned n) {
	if (unlikely(queue >= port->cfg.rx_queues))
		return port_no_queue(port, "RX", queue, port->cfg.rx_queues);
	struct rx_ring *ring = &port->rx[queue];
	return (ring->receive == rx_stopped ? rx_stopped : rx_any)(ring, pkts, hashes, n);
}

/* A ring without buffers: as if a whole lap had been received, and nothing refilled. */
void rx_ring_reset(struct rx_ring *ring) {
	ring->receive = rx_stopped;
	ring->next = ring->mask + 1;
	ring->refill = 0;
	ring->skipping = false;
}

/* From now on frames are received, as the port's configuration says. */
void rx_ring_start(struct rx_ring *ring, const struct ixdp_config *cfg) {
	ring->offloads = cfg->offloads;
	ring->longest = cfg->mtu + ETHERNET_MAX;
	ring->elements = (ring->longest + IXDP_DATA_SIZE - 1) / IXDP_DATA_SIZE;
	ring->receive = ring->elements > 1 || cfg->offloads ? rx_any : rx_plain;
}

/* Once the queue is enabled: a buffer behind every descriptor; 0 or -ENOBUFS. */
int rx_ring_fill(struct rx_ring *ring) {
	rx_refill(ring);
	unsigned have = ring->refill;
	if (have == ring->next) return 0;
	rx_ring_empty(ring);
	return ixdp_fail(ENOBUFS, "%s: RX ring of %u needs as many buffers, the pool gave %u",
			 ring->port, ring->mask + 1, have);
}

void rx_ring_empty(struct rx_ring *ring) {
	/* [next, refill + size) have buffers: received and not looked at, or still empty. */
	for (uint32_t i = ring->next; i != ring->refill + ring->mask + 1; i++)
		pool_give(ring->pool, &ring->buf[i & ring->mask], 1, OWNER_RING);
	rx_ring_reset(ring);
}
