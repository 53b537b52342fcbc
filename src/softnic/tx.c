/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmitting, in the order of section 7.2: descriptors are gathered up to one with EOP, the frame
 * leaves (padded) or is held, descriptors with RS get DD, the head moves. What cannot go on, goes
 * on in a later step from the same descriptor.
 */
#include "nic.h"

#include <string.h>

enum {
	MAX_DESCRIPTORS = 40, /* of one frame, or of a packet to be cut into segments */
	/* Without WTHRESH at most so many descriptors may follow each other without RS (erratum).
	 */
	RS_DISTANCE_MAX = 40,
	PADDED = NIC_FRAME_MIN - NIC_FCS,
	/* Of a step, where PAUSE frames count: after its XOFF the other end has room for 24 KB. */
	PAUSE_FRAMES = 2,
};

/* What sends a frame the long way, in advanced descriptors and in legacy ones. */
#define OFFLOADS (TXD_VLE | TXD_TSE | TXD_IXSM | TXD_TXSM)
#define OFFLOADS_LEGACY (TXD_VLE | TXD_IC)

/* What lies between two heads: a frame, or a context descriptor without one. */
struct gathered {
	unsigned count; /* descriptors */
	uint64_t qw1[MAX_DESCRIPTORS];
	struct desc *desc[MAX_DESCRIPTORS];
	const uint8_t *data;
	size_t len; /* 0: no frame */
};

static bool is_context(uint64_t qw1) {
	return qw1 & TXD_DEXT && (qw1 & TXD_DTYP) == TXD_DTYP_CONTEXT;
}

bool nic_tx_hang(struct softnic *nic, const struct nic_ring *ring, enum nic_violation kind,
		 const char *why, unsigned long long value) {
	nic_violation(nic, kind, ring->tail_reg, "descriptor %u: %s (0x%llx): the queue hangs",
		      *ring->head, why, value);
	ring->queue->hung = true;
	return false;
}

/* Adds a descriptor's buffer to the frame. The first stays where it is if it is in one piece. */
static bool add_data(struct softnic *nic, const struct nic_ring *ring, struct gathered *g,
		     uint64_t iova, size_t len) {
	unsigned *hint = &ring->queue->data_region;

	if (!(g->qw1[0] & TXD_DEXT && g->qw1[0] & TXD_TSE) &&
	    g->len + len > NIC_FRAME_MAX - NIC_FCS)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR, "frame longer than 15.5 KB",
				   g->len + len);
	if (g->len + len > NIC_PACKET_MAX)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR, "packet longer than 256 KB",
				   g->len + len);
	if (g->len == 0 && !nic_fault(nic, FAULT_IOMMU)) {
		g->data = nic_dma_look(nic, iova, len, hint);
		if (likely(g->data)) {
			g->len = len;
			return true;
		}
	}
	if (g->len > 0 && g->data != nic->scratch) memcpy(nic->scratch, g->data, g->len);
	g->data = nic->scratch;
	if (!nic_dma_read(nic, iova, nic->scratch + g->len, len, hint, ring->base_reg)) {
		ring->queue->hung = true;
		return false;
	}
	g->len += len;
	return true;
}

/* Checks a data descriptor, advanced or legacy. False: the queue hangs. */
static bool check_data(struct softnic *nic, const struct nic_ring *ring, uint64_t qw1) {
	if (qw1 & TXD_DEXT && (qw1 & TXD_DTYP) != TXD_DTYP_DATA)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR, "of unknown type", qw1);
	if (qw1 & TXD_DEXT && qw1 & TXD_IPSEC)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
				   "wants an offload that this NIC does not have", qw1);
	return true;
}

/*
 * Gathers the frame, or context descriptor, at the head. False: it is not all there yet, or the
 * queue hangs.
 */
static bool gather(struct softnic *nic, const struct nic_ring *ring, uint32_t tail,
		   struct gathered *g) {
	g->count = 0;
	g->data = NULL;
	g->len = 0;
	for (uint32_t index = *ring->head; index != tail; index = nic_ring_next(ring, index)) {
		struct desc *d = nic_ring_desc(nic, ring, index);
		uint64_t qw1;

		if (!d) return false;
		if (g->count == MAX_DESCRIPTORS)
			return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
					   "frame of more descriptors than 40", g->count + 1);
		qw1 = le64toh(__atomic_load_n(&d->qw1, __ATOMIC_RELAXED));
		g->desc[g->count] = d;
		g->qw1[g->count++] = qw1;
		if (g->count == 1 && is_context(qw1)) return true;
		if (!check_data(nic, ring, qw1)) return false;
		if (qw1 & TXD_DTALEN &&
		    !add_data(nic, ring, g, le64toh(__atomic_load_n(&d->qw0, __ATOMIC_RELAXED)),
			      qw1 & TXD_DTALEN))
			return false;
		if (qw1 & TXD_EOP) return true;
	}
	return false;
}

/* False: the erratum strikes. The count goes on behind the frame once that has left. */
static bool check_rs_distance(struct softnic *nic, const struct nic_ring *ring, unsigned n,
			      const struct gathered *g) {
	unsigned without = ring->queue->without_rs;
	uint64_t most = RS_DISTANCE_MAX;

	if (nic_fault(nic, FAULT_RS_HANG))
		most = nic->fault_arg[FAULT_RS_HANG];
	else if (FIELD_GET(TXDCTL_WTHRESH, NIC_REG_N(nic, TXDCTL, n)) > 0)
		return true;
	for (unsigned i = 0; i < g->count; i++) {
		without = g->qw1[i] & TXD_RS ? 0 : without + 1;
		if (without > most)
			return nic_tx_hang(
			    nic, ring, VIOLATION_RS_DISTANCE,
			    nic_fault(nic, FAULT_RS_HANG)
				? "more descriptors without RS than fault=rs-hang says"
				: "more descriptors without RS than 40, while WTHRESH is 0",
			    without);
	}
	return true;
}

/* What a driver should not ask for, although it works, or almost. */
static void check_frame(struct softnic *nic, const struct nic_ring *ring,
			const struct gathered *g) {
	uint64_t first = g->qw1[0];
	size_t paylen = first >> TXD_PAYLEN_LOW;

	if ((g->qw1[g->count - 1] & TXD_DTALEN) == 0)
		nic_violation(nic, VIOLATION_DESCRIPTOR, ring->tail_reg,
			      "descriptor %u: ends a frame with no bytes", *ring->head);
	/* Of a packet to be cut into segments it leaves the headers out: offload.c. */
	if (first & TXD_DEXT && !(first & TXD_TSE) && paylen != g->len)
		nic_violation(nic, VIOLATION_PAYLEN, ring->tail_reg,
			      "descriptor %u: PAYLEN is %zu for a frame of %zu bytes (7.2.3.2.4)",
			      *ring->head, paylen, g->len);
}

/* A frame leaves, padded. False: it is held, and tried again. */
static bool send_frame(struct softnic *nic, unsigned n, const uint8_t *data, size_t len,
		       uint64_t now) {
	unsigned counter = nic_tx_counter(nic, n);
	uint8_t padded[PADDED] = {0};

	if (len < PADDED && NIC_REG(nic, HLREG0) & HLREG0_TXPADEN) {
		memcpy(padded, data, len);
		data = padded;
		len = PADDED;
	}
	if (unlikely(NIC_REG(nic, HLREG0) & HLREG0_LPBK)) /* through the filters, as any other */
		nic_rx_arrive(nic, data, len, false);
	else if (!nic->wire->ops->send(nic->wire, data, len, now))
		return false;
	if (!nic_fault(nic, FAULT_MISCOUNT) || ++nic->sent % nic->fault_arg[FAULT_MISCOUNT])
		nic_count_sent(nic, data, len);
	nic_count(nic, REG_N(QPTC, counter), 1);
	nic_count_octets(nic, REG_N(QBTCL, counter), len + NIC_FCS);
	return true;
}

/* Sends what the offloads make of a packet, as far as it gets. */
static bool send_offloaded(struct softnic *nic, unsigned n, const struct nic_ring *ring,
			   const struct gathered *g, uint64_t now) {
	struct nic_queue *queue = ring->queue;
	struct nic_offload offload;

	if (!nic_offload_read(nic, ring, g->qw1[0], g->qw1[g->count - 1], g->len, &offload))
		return false;
	for (; queue->segments < offload.frames; queue->segments++) {
		size_t len = nic_offload_frame(nic, &offload, g->data, g->len, queue->segments);

		if (!send_frame(nic, n, nic->segment, len, now)) return false;
	}
	queue->segments = 0;
	return true;
}

/* True: the frame has gone. False: it is held, or the queue hangs. */
static bool transmit(struct softnic *nic, unsigned n, const struct nic_ring *ring,
		     const struct gathered *g, uint64_t now) {
	uint64_t first = g->qw1[0], last = g->qw1[g->count - 1];

	if (unlikely(!((first | last) & TXD_IFCS))) {
		/* What its last 4 bytes are, the receiver takes for the FCS, and discards the
		 * frame. */
		nic_violation(nic, VIOLATION_NO_FCS, ring->tail_reg,
			      "descriptor %u: sent without FCS, no receiver takes it: set IFCS",
			      *ring->head);
		return true;
	}
	if (unlikely(first & TXD_DEXT ? first & OFFLOADS : last & OFFLOADS_LEGACY))
		return send_offloaded(nic, n, ring, g, now);
	return send_frame(nic, n, g->data, g->len, now);
}

/* Gives the descriptors back: the head first moves past each, then DD is seen where RS was set. */
static void complete(struct softnic *nic, const struct nic_ring *ring, const struct gathered *g) {
	for (unsigned i = 0; i < g->count; i++) {
		uint32_t index = *ring->head;

		*ring->head = nic_ring_next(ring, index);
		ring->queue->without_rs++;
		if (g->qw1[i] & TXD_RS) {
			ring->queue->without_rs = 0;
			nic_write_back(nic, ring, index, g->desc[i], g->qw1[i] | TXD_DD);
		}
	}
}

static unsigned run_queue(struct softnic *nic, unsigned n, unsigned frames, uint64_t now) {
	struct nic_ring ring = nic_tx_ring(nic, n);
	struct gathered g;
	unsigned moved = 0;
	uint32_t tail;

	if (ring.queue->hung || (n >= 64 && NIC_REG(nic, MTQC) != NIC_MTQC_128_QUEUES)) return 0;
	tail = nic_ring_tail(nic, &ring);
	while (moved < frames && *ring.head != tail && gather(nic, &ring, tail, &g)) {
		if (!check_rs_distance(nic, &ring, n, &g)) break;
		if (is_context(g.qw1[0])) {
			if (!nic_context_write(nic, &ring, g.desc[0])) break;
		} else {
			if (g.len > 0 && !transmit(nic, n, &ring, &g, now)) break;
			check_frame(nic, &ring, &g);
		}
		complete(nic, &ring, &g);
		moved++;
	}
	return moved;
}

/* The first enabled queue at or after n, around the end. There is one. */
static unsigned next_queue(const struct softnic *nic, unsigned n) {
	while (!(nic->tx_on[n / 64] >> n % 64 & 1))
		n = (n + 1) % NIC_TX_QUEUES;
	return n;
}

/* Every enabled queue has the same share, and each is the first in its turn. */
unsigned nic_tx_run(struct softnic *nic, unsigned frames, uint64_t now) {
	unsigned queues = 0, moved = 0, share;
	bool loopback = NIC_REG(nic, HLREG0) & HLREG0_LPBK;

	for (unsigned i = 0; i < NIC_TX_QUEUES / 64; i++)
		queues += __builtin_popcountll(nic->tx_on[i]);
	if (queues == 0 || !(NIC_REG(nic, DMATXCTL) & DMATXCTL_TE) || !nic_dma_on(nic) ||
	    nic_fault(nic, FAULT_TX_STOP) ||
	    !(loopback || (nic_link_up(nic) && !nic_flow_paused(nic, now))))
		return 0;
	if (NIC_REG(nic, MFLCN) & MFLCN_RFCE && frames > PAUSE_FRAMES) frames = PAUSE_FRAMES;
	share = frames / queues ? frames / queues : 1;
	for (unsigned i = 0; i < queues && moved < frames; i++) {
		unsigned n = next_queue(nic, nic->tx_turn);

		moved += run_queue(nic, n, share, now);
		nic->tx_turn = (n + 1) % NIC_TX_QUEUES;
	}
	return moved;
}
