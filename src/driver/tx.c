/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending, section 7.2. Software appends descriptors at `next` and tells the NIC by TDT; the NIC
 * sends in order. It reports (DD) only on descriptors that ask for it by RS: every 32nd, at indices
 * 31, 63, ... Everything up to a done one is done, so one look takes back 32 buffers. The distance
 * must not exceed 40 while TXDCTL.WTHRESH is 0, or the NIC stops.
 *
 * A frame of several elements has a descriptor for each, and if the NIC shall do more to it than
 * send it, a context descriptor in front. RS stands on its last one, so that one reports for a
 * chunk which the chunk's end lies in.
 */
#include "port.h"

#include <errno.h>

/* Descriptors between two with RS, aligned. A chunk of the pool, so that it is one copy. */
enum { RS_DISTANCE = POOL_CHUNK };

enum {
	TX_MIN = 17, /* bytes: less is no valid PAYLEN of an advanced descriptor, 7.2.3.2.4 */
	TX_MAX = IXDP_MAX_MTU + ETHERNET_MAX,
	TX_END = IXDP_HEADROOM + IXDP_DATA_SIZE, /* of what a buffer holds */
	TX_ELEMENTS = 9, /* descriptors of a frame: 31 without RS may be in front of it */
	/* Flags that take more than a data descriptor. */
	TX_WORK = IXDP_PKT_CONTD | IXDP_PKT_VLAN | IXDP_PKT_IP_CSUM | IXDP_PKT_L4_CSUM,
};

/* What every data descriptor says, section 7.2.3.2.4. */
#define TXD_PACKET (TXD_DTYP_DATA | TXD_DEXT | TXD_IFCS)

/* Takes back the buffers of n descriptors from clean on, and returns how many there were. */
static unsigned tx_take_back(struct tx_ring *ring, uint32_t n) {
	unsigned given = 0;
	for (uint32_t step; n > 0; n -= step, ring->clean += step) {
		uint8_t **bufs = &ring->buf[ring->clean & ring->mask];
		uint32_t chunk = RS_DISTANCE - ring->clean % RS_DISTANCE;
		step = n < chunk ? n : chunk;
		uint32_t have = unlikely(ring->contexts) ? 0 : step;
		for (uint32_t i = have; i < step; i++)
			if (bufs[i]) bufs[have++] = bufs[i];
		pool_give(ring->pool, bufs, have, OWNER_RING);
		given += have;
	}
	return given;
}

/* Whether the chunk up to `last` has been sent. The end of a frame that goes on behind it reports.
 */
static inline bool tx_done(const struct tx_ring *ring, uint32_t last) {
	uint64_t qw1;
	do /* Acquire: the NIC has read the buffers before it said so; they change after. */
		qw1 = desc_look(&ring->desc[last & ring->mask]);
	while (!(qw1 & (TXD_DD | TXD_EOP)) && ++last != ring->next);
	return qw1 & TXD_DD;
}

/*
 * Takes back the buffers of completed chunks. Only those in use as a whole are looked at: their
 * last descriptors were rewritten, so no DD is one of an earlier lap.
 */
static unsigned tx_reclaim(struct tx_ring *ring) {
	for (unsigned given = 0;;) {
		/* Where each frame reports, one by one: a frame of 40 may need room below a
		 * chunk's. */
		uint32_t n = ring->report ? RS_DISTANCE - ring->clean % RS_DISTANCE : 1;
		if (ring->next - ring->clean < n || !tx_done(ring, ring->clean + n - 1))
			return given;
		given += tx_take_back(ring, n);
	}
}

static int refuse(const struct tx_ring *ring, const struct ixdp_pkt *pkt, const char *why) {
	return ixdp_fail(EINVAL, "%s: cannot send a frame of %u bytes at %u, flags 0x%x: %s",
			 ring->port, pkt->len, pkt->headroom, pkt->flags, why);
}

/* How many elements the frame has, of n; or why it cannot be sent. context: descriptors for it. */
static int tx_check(const struct tx_ring *ring, const struct ixdp_pkt *pkts, unsigned n,
		    unsigned context, unsigned *len) {
	unsigned k = 0;
	*len = 0;
	do {
		if (context + k == ring->elements) return refuse(ring, pkts, "too many elements");
		if (k == n) return refuse(ring, pkts, "its last element is missing");
		if (pkts[k].len == 0 || pkts[k].headroom + pkts[k].len > TX_END)
			return refuse(ring, &pkts[k], "it is empty or ends behind its buffer");
		*len += pkts[k].len;
	} while (pkts[k++].flags & IXDP_PKT_CONTD);
	if (*len < TX_MIN) return refuse(ring, pkts, "less than 17 bytes");
	if (*len > TX_MAX) return refuse(ring, pkts, "longer than an MTU of 9000 allows");
	return k;
}

static uint32_t tx_room(const struct tx_ring *ring) {
	/* One descriptor stays unused: a full ring would look like an empty one, TDT == TDH. */
	return ring->mask - (ring->next - ring->clean);
}

/* It is sent by one data descriptor. */
static inline bool tx_is_plain(const struct ixdp_pkt *pkt) {
	uint64_t len = pkt->len;
	return len >= TX_MIN && pkt->headroom + len <= TX_END && !(pkt->flags & TX_WORK);
}

/* As tx_any(), of plain packets, up to one that is not. Not inline: it has all registers so. */
static __attribute__((noinline)) int tx_plain(struct tx_ring *ring, const struct ixdp_pkt *pkts,
					      unsigned n) {
	/* In locals, as the compiler must assume that the stores below could change the ring. */
	const struct iova_table iova = ring->iova;
	struct desc *desc = ring->desc;
	uint8_t **buf = ring->buf;
	uint32_t mask = ring->mask, next = ring->next, room = tx_room(ring);
	const struct ixdp_pkt *pkt = pkts, *end = pkts + (n < room ? n : room);
	uint64_t bytes = 0;
	for (; pkt != end; pkt++, next++) {
		uint64_t len = pkt->len;
		if (unlikely(!tx_is_plain(pkt))) break;
		if (!pool_handover(ring->pool, ixdp_pkt_buffer(pkt), OWNER_CALLER, OWNER_RING)) {
			if (pkt == pkts) return refuse(ring, pkt, "the buffer is not the caller's");
			break;
		}
		tx_ring_check(ring);
		uint32_t slot = next & mask;
		buf[slot] = ixdp_pkt_buffer(pkt);
		desc[slot].qw0 = htole64(iova_of(&iova, pkt->data));
		/* PAYLEN is the whole frame's length. DD of the last lap goes with the rest. */
		desc[slot].qw1 = htole64(TXD_PACKET | TXD_EOP | len | len << TXD_PAYLEN_LOW);
		bytes += len;
	}
	ring->next = next;
	counter_add(&ring->taken, pkt - pkts);
	counter_add(&ring->bytes, bytes);
	return pkt - pkts;
}

/* Appends any frame. Returns its elements; 0 when the ring is full; or -EINVAL. */
static int tx_any(struct tx_ring *ring, const struct ixdp_pkt *pkts, unsigned n) {
	unsigned len, context = (pkts->flags & TX_WORK) > IXDP_PKT_CONTD ? 1 : 0;
	uint64_t bits = 0;
	int elements = tx_check(ring, pkts, n, context, &len);
	if (elements < 0) return elements;
	if (tx_room(ring) < elements + context) return 0;
	if (context) {
		uint32_t slot = ring->next & ring->mask;
		if (!tx_context(pkts, len, &ring->desc[slot], &bits))
			return refuse(ring, pkts, "no headers for what the flags ask for");
		ring->buf[slot] = NULL;
	}
	bits |= TXD_PACKET | (uint64_t)len << TXD_PAYLEN_LOW;
	for (int i = 0; i < elements; i++) {
		uint32_t slot = (ring->next + context + i) & ring->mask;
		uint8_t *buf = ixdp_pkt_buffer(&pkts[i]);
		if (!pool_handover(ring->pool, buf, OWNER_CALLER, OWNER_RING)) {
			while (i-- > 0)
				pool_handover(ring->pool, ixdp_pkt_buffer(&pkts[i]), OWNER_RING,
					      OWNER_CALLER);
			return refuse(ring, pkts, "a buffer is not the caller's");
		}
		tx_ring_check(ring);
		ring->buf[slot] = buf;
		ring->desc[slot].qw0 = htole64(iova_of(&ring->iova, pkts[i].data));
		ring->desc[slot].qw1 =
		    htole64(bits | pkts[i].len | (i == elements - 1 ? TXD_EOP : 0));
	}
	ring->contexts |= context;
	ring->next += context + elements;
	counter_add(&ring->taken, 1);
	counter_add(&ring->bytes, len);
	return elements;
}

static int tx_send(struct tx_ring *ring, const struct ixdp_pkt *pkts, unsigned n) {
	uint32_t first = ring->next, mask = ring->mask;
	unsigned taken = 0;
	int more = 0;
	tx_reclaim(ring);
	for (; taken < n; taken += more) {
		more = likely(tx_is_plain(&pkts[taken])) ? tx_plain(ring, &pkts[taken], n - taken)
							 : tx_any(ring, &pkts[taken], n - taken);
		if (unlikely(more <= 0)) break;
	}
	if (unlikely(taken < n) && more == 0) counter_add(&ring->full, n - taken);
	if (unlikely(taken == 0)) return more;

	uint32_t next = ring->next;
	for (uint32_t i = first | ring->report; i - first < next - first;
	     i = (i + 1) | ring->report) {
		while (i + 1 != next && !(ring->desc[i & mask].qw1 & htole64(TXD_EOP)))
			i++;
		ring->desc[i & mask].qw1 |= htole64(TXD_RS);
	}
	tx_ring_check(ring);
	doorbell_ring(ring->doorbell, next & mask);
	return taken;
}

static int tx_stopped(struct tx_ring *ring, const struct ixdp_pkt *pkts, unsigned n) {
	(void)pkts, (void)n;
	return ixdp_fail(ENETDOWN, "%s: port is stopped", ring->port);
}

int ixdp_tx(struct ixdp_port *port, unsigned queue, const struct ixdp_pkt *pkts, unsigned n) {
	if (unlikely(queue >= port->cfg.tx_queues))
		return port_no_queue(port, "TX", queue, port->cfg.tx_queues);
	return port->tx[queue].send(&port->tx[queue], pkts, n);
}

int ixdp_tx_clean(struct ixdp_port *port, unsigned queue) {
	if (queue >= port->cfg.tx_queues)
		return port_no_queue(port, "TX", queue, port->cfg.tx_queues);
	struct tx_ring *ring = &port->tx[queue];
	unsigned given = tx_reclaim(ring);
	/*
	 * What is left is less than a chunk, or not sent yet. The NIC moves TDH when the data is in
	 * its FIFO (8.2.3.9.8): buffers in front of it are free. A gone device is beyond any ring.
	 */
	uint32_t head = reg_read(port, REG_N(TDH, queue));
	uint32_t done = (head - ring->clean) & ring->mask;
	if (head > ring->mask || done > ring->next - ring->clean) return given;
	/* Not beyond a DD that has yet to come: it would be taken for that of the next lap. */
	for (uint32_t i = 0; i < done; i++) {
		uint64_t qw1 = desc_look(&ring->desc[(ring->clean + i) & ring->mask]);
		if ((qw1 & (TXD_RS | TXD_DD)) == TXD_RS) done = i;
	}
	return given + tx_take_back(ring, done);
}

void tx_ring_empty(struct tx_ring *ring) {
	tx_take_back(ring, ring->next - ring->clean);
	ring->next = ring->clean = 0;
	ring->contexts = false;
	ring->send = tx_stopped;
}

/* From now on frames are sent, as the port's configuration says. */
void tx_ring_start(struct tx_ring *ring, const struct ixdp_config *cfg) {
	/* Jumbo frames, of more than TX_ELEMENTS, report each. */
	bool jumbo = cfg->mtu + ETHERNET_MAX > IXDP_DATA_SIZE;
	ring->report = jumbo ? 0 : RS_DISTANCE - 1;
	ring->elements = jumbo ? IXDP_MAX_ELEMENTS : TX_ELEMENTS;
	ring->send = tx_send;
}
