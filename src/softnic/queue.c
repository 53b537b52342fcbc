/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What receive and transmit queues have in common: the ring in memory, its head and tail, and
 * switching it on and off. The device owns the descriptors in [head, tail), nothing else.
 */
#include "nic.h"

#include <string.h>

_Static_assert((int)RXDCTL_ENABLE == (int)TXDCTL_ENABLE, "one code for both kinds of queue");
enum { ENABLE = RXDCTL_ENABLE };

uint32_t nic_ring_tail(struct softnic *nic, const struct nic_ring *ring) {
	struct nic_queue *queue = ring->queue;
	/* Pairs with the driver's release store: the descriptors up to the tail are seen whole. */
	uint32_t tail = __atomic_load_n(&queue->doorbell, __ATOMIC_ACQUIRE) & 0xFFFF;
	bool news = tail != queue->tail;

	queue->tail = tail;
	if (tail >= ring->size) {
		if (news)
			nic_violation(nic, VIOLATION_TAIL_OUTSIDE, ring->tail_reg,
				      "%u is outside the ring of %u descriptors", tail, ring->size);
		return *ring->head;
	}
	/*
	 * The device owned something or nothing before; a tail that moves onto the head adds a
	 * whole ring to that, and the device takes it for an empty one.
	 */
	if (news && tail == *ring->head)
		nic_violation(
		    nic, VIOLATION_TAIL_IS_HEAD, ring->tail_reg,
		    "moved onto the head, %u: that gives the device nothing instead of the "
		    "whole ring; keep one descriptor back",
		    tail);
	return tail;
}

void nic_ring_stray(struct softnic *nic, const struct nic_ring *ring, uint32_t index) {
	unsigned long long iova = ring->base + index * sizeof(struct desc);

	nic_violation(nic, VIOLATION_STRAY_DMA, ring->base_reg,
		      "stray DMA to descriptor %u at 0x%llx, which is %s", index, iova,
		      index >= ring->size	    ? "outside the ring"
		      : nic_fault(nic, FAULT_IOMMU) ? "not mapped, or refused (fault=iommu)"
						    : "not mapped");
	ring->queue->hung = true;
}

/* A queue goes into operation: its ring must be in order by now. */
static void start(struct softnic *nic, const struct nic_ring *ring) {
	struct nic_queue *queue = ring->queue;
	uint32_t tail = __atomic_load_n(&queue->doorbell, __ATOMIC_ACQUIRE) & 0xFFFF;

	queue->hung = false;
	queue->without_rs = 0;
	queue->segments = 0;
	memset(queue->contexts, 0, sizeof(queue->contexts));
	queue->tail = tail;
	queue->looked = 0;
	if (tail != *ring->head)
		nic_violation(nic, VIOLATION_TAIL_EARLY, ring->tail_reg,
			      "written before the queue was enabled: head is %u, tail %u",
			      *ring->head, tail);
	if (ring->size == 0 || !nic_dma_mapped(nic, ring->base, ring->size * sizeof(struct desc))) {
		nic_violation(nic, VIOLATION_RING_UNMAPPED, ring->base_reg,
			      "queue enabled with a ring of %u descriptors at 0x%llx, which is not "
			      "mapped",
			      ring->size, (unsigned long long)ring->base);
		queue->hung = true;
	}
}

static void start_rx(struct softnic *nic, unsigned n) {
	struct nic_ring ring = nic_rx_ring(nic, n);
	uint32_t srrctl = NIC_RXQ(nic, SRRCTL, n);
	unsigned type = FIELD_GET(SRRCTL_DESCTYPE, srrctl);

	start(nic, &ring);
	if (FIELD_GET(SRRCTL_BSIZEPKT, srrctl) == 0 ||
	    (type != SRRCTL_DESCTYPE_LEGACY && type != SRRCTL_DESCTYPE_ADVANCED)) {
		nic_violation(nic, VIOLATION_RX_BUFFERS, NIC_RXQ_REG(SRRCTL, n),
			      "0x%08X: needs a buffer size, and a descriptor type of 0 or 1 (this "
			      "NIC does not split headers)",
			      srrctl);
		ring.queue->hung = true;
	}
}

static void start_tx(struct softnic *nic, unsigned n) {
	struct nic_ring ring = nic_tx_ring(nic, n);

	start(nic, &ring);
	nic->tx_on[n / 64] |= UINT64_C(1) << n % 64;
	if (n >= 64 && NIC_REG(nic, MTQC) != NIC_MTQC_128_QUEUES)
		nic_violation(
		    nic, VIOLATION_QUEUE_64, REG_N(TXDCTL, n),
		    "queue enabled while MTQC is 0x%X, which serves queues 0 to 63: it stalls until "
		    "that is RT_ENA and 4 traffic classes, 0x9 (8.2.3.9.15)",
		    NIC_REG(nic, MTQC));
}

/* The arbiters must not be at work meanwhile. */
void nic_write_mtqc(struct softnic *nic, unsigned n, uint32_t value) {
	(void)n;
	if (value != NIC_REG(nic, MTQC) && !(NIC_REG(nic, RTTDCS) & RTTDCS_ARBDIS))
		nic_violation(nic, VIOLATION_MTQC_LIVE, REG_MTQC,
			      "changed from 0x%X to 0x%X while RTTDCS.ARBDIS is 0: set it first "
			      "(8.2.3.9.15)",
			      NIC_REG(nic, MTQC), value);
	if (value != 0 && value != NIC_MTQC_128_QUEUES)
		nic_violation(nic, VIOLATION_UNKNOWN_MODE, REG_MTQC,
			      "0x%X: this NIC has 64 queues (0) or 128 in 4 traffic classes (0x9)",
			      value);
	NIC_REG(nic, MTQC) = value;
}

static void stop_tx(struct softnic *nic, unsigned n) {
	nic->tx_on[n / 64] &= ~(UINT64_C(1) << n % 64);
}

/*
 * A write of a queue's control register. Returns what to store; the bit that tells whether the
 * queue is on changes later or never if a fault says so.
 */
static uint32_t control(struct softnic *nic, struct nic_queue *queue, uint32_t old,
			uint32_t value) {
	bool on = value & ENABLE;
	bool late = nic_fault(nic, on ? FAULT_ENABLE_LATE : FAULT_DISABLE_LATE);
	bool never = nic_fault(nic, on ? FAULT_ENABLE_NEVER : FAULT_DISABLE_NEVER);

	queue->switching = false;
	if ((value ^ old) & ENABLE && (late || never)) {
		queue->switching = !never;
		queue->polls = nic->fault_arg[on ? FAULT_ENABLE_LATE : FAULT_DISABLE_LATE];
		value ^= ENABLE;
	}
	return value;
}

/* A read of a queue's control register: the switch that was late may be over. */
static bool switched(struct nic_queue *queue) {
	if (likely(!queue->switching) || queue->polls-- > 0) return false;
	queue->switching = false;
	return true;
}

static void set_rxdctl(struct softnic *nic, unsigned n, uint32_t value) {
	uint32_t old = NIC_RXQ(nic, RXDCTL, n);

	NIC_RXQ(nic, RXDCTL, n) = value;
	if (value & ~old & ENABLE) start_rx(nic, n);
	/* Write-backs are over before the bit reads 0, section 8.2.3.8.6. */
	if (old & ~value & ENABLE) nic_late_run(nic, true);
}

static void set_txdctl(struct softnic *nic, unsigned n, uint32_t value) {
	uint32_t old = NIC_REG_N(nic, TXDCTL, n);

	NIC_REG_N(nic, TXDCTL, n) = value;
	if (value & ~old & ENABLE) start_tx(nic, n);
	if (old & ~value & ENABLE) {
		stop_tx(nic, n);
		nic_late_run(nic, true);
	}
}

void nic_write_rxdctl(struct softnic *nic, unsigned n, uint32_t value) {
	set_rxdctl(nic, n, control(nic, &nic->rx[n], NIC_RXQ(nic, RXDCTL, n), value));
}

/* SWFLSH clears itself: nothing is ever held back that a flush could write. */
void nic_write_txdctl(struct softnic *nic, unsigned n, uint32_t value) {
	value &= ~(uint32_t)TXDCTL_SWFLSH;
	set_txdctl(nic, n, control(nic, &nic->tx[n], NIC_REG_N(nic, TXDCTL, n), value));
}

uint32_t nic_read_rxdctl(struct softnic *nic, unsigned n, uint32_t stored) {
	if (switched(&nic->rx[n])) set_rxdctl(nic, n, stored ^ ENABLE);
	return NIC_RXQ(nic, RXDCTL, n);
}

uint32_t nic_read_txdctl(struct softnic *nic, unsigned n, uint32_t stored) {
	if (switched(&nic->tx[n])) set_txdctl(nic, n, stored ^ ENABLE);
	return NIC_REG_N(nic, TXDCTL, n);
}

/*
 * The head is the device's while the queue is on. Drivers that write it then get away with it on
 * silicon, sometimes; with strict checks the queue stops.
 */
static void write_head(struct softnic *nic, const struct nic_ring *ring, uint32_t head_reg,
		       bool enabled, uint32_t value) {
	if (enabled) {
		nic_violation(nic, VIOLATION_HEAD_LIVE, head_reg,
			      "written (%u) while the queue is enabled", value);
		ring->queue->hung |= nic->strict;
	}
	*ring->head = value & 0xFFFF;
}

void nic_write_rdh(struct softnic *nic, unsigned n, uint32_t value) {
	struct nic_ring ring = nic_rx_ring(nic, n);

	write_head(nic, &ring, NIC_RXQ_REG(RDH, n), NIC_RXQ(nic, RXDCTL, n) & ENABLE, value);
}

void nic_write_tdh(struct softnic *nic, unsigned n, uint32_t value) {
	struct nic_ring ring = nic_tx_ring(nic, n);

	write_head(nic, &ring, REG_N(TDH, n), NIC_REG_N(nic, TXDCTL, n) & ENABLE, value);
}

static void write_tail(struct softnic *nic, const struct nic_ring *ring, bool enabled,
		       uint32_t value) {
	__atomic_store_n(&ring->queue->doorbell, value & 0xFFFF, __ATOMIC_RELEASE);
	if (!enabled) return;
	/* Unlike a store to the doorbell, a write that changes nothing is seen here. */
	if (value == ring->queue->tail && value == *ring->head)
		nic_violation(
		    nic, VIOLATION_TAIL_IS_HEAD, ring->tail_reg,
		    "written with the value of the head, %u: that gives the device nothing", value);
	nic_ring_tail(nic, ring);
}

void nic_write_rdt(struct softnic *nic, unsigned n, uint32_t value) {
	struct nic_ring ring = nic_rx_ring(nic, n);

	write_tail(nic, &ring, NIC_RXQ(nic, RXDCTL, n) & ENABLE, value);
}

void nic_write_tdt(struct softnic *nic, unsigned n, uint32_t value) {
	struct nic_ring ring = nic_tx_ring(nic, n);

	write_tail(nic, &ring, NIC_REG_N(nic, TXDCTL, n) & ENABLE, value);
}

uint32_t nic_read_rdt(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)stored;
	return __atomic_load_n(&nic->rx[n].doorbell, __ATOMIC_ACQUIRE);
}

uint32_t nic_read_tdt(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)stored;
	return __atomic_load_n(&nic->tx[n].doorbell, __ATOMIC_ACQUIRE);
}
