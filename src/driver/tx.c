/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending, section 7.2. Software appends descriptors at `next` and tells the NIC by TDT; the NIC
 * sends in order. It reports (DD) only on descriptors that ask for it by RS: every 32nd, at indices
 * 31, 63, ... Everything up to a done one is done, so one look takes back 32 buffers. The distance
 * must not exceed 40 while TXDCTL.WTHRESH is 0, or the NIC stops.
 */
#include "port.h"

#include <errno.h>

/* Descriptors between two with RS, aligned. A chunk of the pool, so that it is one copy. */
enum { RS_DISTANCE = POOL_CHUNK };

enum {
	TX_MIN = 17, /* bytes: less is no valid PAYLEN of an advanced descriptor, 7.2.3.2.4 */
	TX_END = IXDP_HEADROOM + IXDP_DATA_SIZE, /* of what a buffer holds */
};

/* What the data descriptor of a packet in one piece says besides its length, section 7.2.3.2.4. */
#define TXD_PACKET (TXD_DTYP_DATA | TXD_DEXT | TXD_IFCS | TXD_EOP)

/*
 * Takes back the buffers of completed chunks. A DD left from an earlier lap cannot be mistaken for
 * a new one: a chunk is looked at only when all of it is in use, so its last descriptor was
 * rewritten.
 */
static void tx_reclaim(struct tx_ring *ring) {
	for (;;) {
		uint32_t n = RS_DISTANCE - ring->clean % RS_DISTANCE;
		uint32_t first = ring->clean & ring->mask;
		if (ring->next - ring->clean < n) return;
		/* Acquire: the NIC has read the buffers before it said so; they change after. */
		if (!(desc_look(&ring->desc[first + n - 1]) & TXD_DD)) return;
		pool_give(ring->pool, &ring->buf[first], n, OWNER_RING);
		ring->clean += n;
	}
}

static int refuse(const struct ixdp_port *port, const struct ixdp_pkt *pkt) {
	return ixdp_fail(EINVAL,
			 "%s: packet of %u bytes at %u, flags 0x%x: must be %u bytes or more, end "
			 "within %u, in one element, in a buffer of the caller's",
			 port->bus->name, pkt->len, pkt->headroom, pkt->flags, TX_MIN, TX_END);
}

int ixdp_tx(struct ixdp_port *port, unsigned queue, const struct ixdp_pkt *pkts, unsigned n) {
	if (unlikely(queue >= port->cfg.tx_queues))
		return ixdp_fail(EINVAL, "%s: no TX queue %u, the port has %u", port->bus->name,
				 queue, port->cfg.tx_queues);

	struct tx_ring *ring = &port->tx[queue];
	tx_reclaim(ring);

	/* In locals, as the compiler must assume that the stores below could change the ring. */
	const struct iova_table iova = ring->iova;
	struct desc *desc = ring->desc;
	uint8_t **buf = ring->buf;
	uint32_t mask = ring->mask;
	uint32_t next = ring->next;
	/* One descriptor stays unused: a full ring would look like an empty one, TDT == TDH. */
	uint32_t room = mask - (next - ring->clean);
	unsigned taken;
	if (n > room) n = room;
	for (taken = 0; taken < n; taken++) {
		const struct ixdp_pkt *pkt = &pkts[taken];
		uint32_t slot = (next + taken) & mask;
		uint64_t len = pkt->len;
		if (unlikely(
			len < TX_MIN || pkt->headroom + len > TX_END ||
			pkt->flags & IXDP_PKT_CONTD ||
			!pool_handover(ring->pool, ixdp_pkt_buffer(pkt), OWNER_CALLER, OWNER_RING)))
			break;
		buf[slot] = ixdp_pkt_buffer(pkt);
		desc[slot].qw0 = htole64(iova_of(&iova, pkt->data));
		/* PAYLEN is the whole frame's length. DD of the last lap goes with the rest. */
		desc[slot].qw1 = htole64(TXD_PACKET | len | len << TXD_PAYLEN_LOW);
	}
	if (unlikely(taken == 0)) return n > 0 ? refuse(port, pkts) : 0;

	for (uint32_t i = next | (RS_DISTANCE - 1); i - next < taken; i += RS_DISTANCE)
		desc[i & mask].qw1 |= htole64(TXD_RS);
	ring->next = next + taken;
	doorbell_ring(ring->doorbell, ring->next & mask);
	counter_add(&ring->taken, taken);
	return taken;
}

/* Takes back n buffers from clean on, over the end of the ring if need be. */
static void tx_take_back(struct tx_ring *ring, uint32_t n) {
	for (; n > 0; n--)
		pool_give(ring->pool, &ring->buf[ring->clean++ & ring->mask], 1, OWNER_RING);
}

int ixdp_tx_clean(struct ixdp_port *port, unsigned queue) {
	if (queue >= port->cfg.tx_queues)
		return ixdp_fail(EINVAL, "%s: no TX queue %u, the port has %u", port->bus->name,
				 queue, port->cfg.tx_queues);

	struct tx_ring *ring = &port->tx[queue];
	uint32_t before = ring->clean;
	tx_reclaim(ring);
	/*
	 * What is left is less than a chunk, or not sent yet. The NIC moves TDH when the data is in
	 * its FIFO (section 8.2.3.9.8), so buffers in front of it are free even without DD. A gone
	 * device reads as all ones, which is beyond any ring.
	 */
	uint32_t head = reg_read(port, REG_N(TDH, queue));
	uint32_t done = (head - ring->clean) & ring->mask;
	if (head <= ring->mask && done <= ring->next - ring->clean) tx_take_back(ring, done);
	return ring->clean - before;
}

void tx_ring_empty(struct tx_ring *ring) {
	tx_take_back(ring, ring->next - ring->clean);
	ring->next = ring->clean = 0;
}
