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

/* A descriptor that holds no frame for the caller: counts why, and recycles its buffer. */
static void rx_discard(struct rx_ring *ring, uint8_t *buf, uint64_t done) {
	bool last = done & RXD_EOP;
	if (ring->skipping)
		ring->skipping = !last;
	else if (!last) {
		ring->skipping = true;
		counter_add(&ring->oversize, 1);
	} else if (done & RXD_ERR_FRAME)
		counter_add(&ring->errors, 1);
	else
		counter_add(done & RXD_LEN ? &ring->oversize : &ring->len_zero, 1);
	pool_give(ring->pool, &buf, 1, OWNER_RING);
}

int ixdp_rx(struct ixdp_port *port, unsigned queue, struct ixdp_pkt *pkts, unsigned n) {
	if (unlikely(queue >= port->cfg.rx_queues))
		return ixdp_fail(EINVAL, "%s: no RX queue %u, the port has %u", port->bus->name,
				 queue, port->cfg.rx_queues);

	struct rx_ring *ring = &port->rx[queue];

	const struct desc *desc = ring->desc; /* locals as above */
	uint8_t *const *bufs = ring->buf;
	uint32_t mask = ring->mask, next = ring->next;
	/* So many descriptors have a buffer, whatever a NIC that errs writes into the others. */
	unsigned room = ring->refill + mask + 1 - next;
	uint64_t bytes = 0;
	unsigned got = 0;
	for (n = n < room ? n : room; got < n; next++) {
		uint64_t done = desc_look(&desc[next & mask]);
		uint8_t *buf = bufs[next & mask];
		uint16_t len = done >> RXD_LEN_LOW;
		if (!(done & RXD_DD)) break;
		if (unlikely((done & (RXD_EOP | RXD_ERR_FRAME)) != RXD_EOP ||
			     len - 1u >= IXDP_DATA_SIZE || ring->skipping)) {
			rx_discard(ring, buf, done);
			n = n < --room ? n : room;
			continue;
		}
		pool_handover(ring->pool, buf, OWNER_RING, OWNER_CALLER);
		pkts[got].data = buf + IXDP_HEADROOM;
		pkts[got].len = len;
		pkts[got].headroom = IXDP_HEADROOM;
		pkts[got++].flags = 0;
		bytes += len;
	}

	ring->next = next;
	/* Whatever came, so that a ring which ran dry for want of buffers comes back to life. */
	if (next - ring->refill >= POOL_CHUNK) rx_refill(ring);
	counter_add(&ring->packets, got);
	counter_add(&ring->bytes, bytes);
	return got;
}

/* A ring without buffers: as if a whole lap had been received, and nothing refilled. */
void rx_ring_reset(struct rx_ring *ring) {
	ring->next = ring->mask + 1;
	ring->refill = 0;
}

/* Once the queue is enabled: a buffer behind every descriptor; 0 or -ENOBUFS. */
int rx_ring_fill(struct rx_ring *ring) {
	rx_refill(ring);
	if (ring->refill != ring->next) {
		unsigned have = ring->refill;
		rx_ring_empty(ring);
		return ixdp_fail(ENOBUFS,
				 "RX ring of %u needs as many buffers, the pool gave %u: free some",
				 ring->mask + 1, have);
	}
	return 0;
}

void rx_ring_empty(struct rx_ring *ring) {
	/* [next, refill + size) have buffers: received and not looked at, or still empty. */
	for (uint32_t i = ring->next; i != ring->refill + ring->mask + 1; i++)
		pool_give(ring->pool, &ring->buf[i & ring->mask], 1, OWNER_RING);
	rx_ring_reset(ring);
}
