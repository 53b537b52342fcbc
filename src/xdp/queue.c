/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More workers than XDP TX queues: worker w sends on queue w mod n. A queue which several workers
 * come to that way has a lock, around cleaning and sending of a whole batch; any other has none.
 * Linux locks all queues as soon as there are more CPUs than queues; here with 65 workers on 64
 * queues, one of them locks.
 */
#include "xdp.h"

#include <errno.h>
#include <sched.h>

/* A thread that holds the lock may be preempted, which a kernel's cannot: then let it run. */
enum { LOCK_TRIES = 200 };

static void lock(struct xdp_queue *queue) {
	uint64_t tries = 0;
	while (pthread_spin_trylock(&queue->lock) != 0)
		if (++tries % LOCK_TRIES == 0) sched_yield();
	tx_ring_own(queue->ring, true);
	counter_add(&queue->locked, 1);
	if (unlikely(tries > 0)) {
		counter_add(&queue->contended, 1);
		counter_add(&queue->yields, tries / LOCK_TRIES);
	}
}

static int send_locked(struct xdp_queue *queue, const struct ixdp_pkt *pkts, unsigned n) {
	lock(queue);
	int sent = queue->ring->send(queue->ring, pkts, n);
	tx_ring_own(queue->ring, false);
	pthread_spin_unlock(&queue->lock);
	return sent;
}

static int send_alone(struct xdp_queue *queue, const struct ixdp_pkt *pkts, unsigned n) {
	return queue->ring->send(queue->ring, pkts, n);
}

void xdp_queues_init(struct ixdp_port *port, struct xdp *xdp, unsigned threads) {
	xdp->n_queues = port->cfg.xdp_queues;
	for (unsigned q = 0; q < xdp->n_queues; q++) {
		struct xdp_queue *queue = &xdp->queues[q];
		queue->ring = &port->tx[port->cfg.tx_queues + q];
		queue->shared = q + xdp->n_queues < threads;
		queue->send = queue->shared ? send_locked : send_alone;
		pthread_spin_init(&queue->lock, PTHREAD_PROCESS_PRIVATE);
		if (queue->shared) tx_ring_locks(queue->ring);
	}
}

int xdp_queue_send(struct xdp *xdp, unsigned worker, const struct ixdp_pkt *pkts, unsigned n) {
	struct xdp_queue *queue = &xdp->queues[worker % xdp->n_queues];
	return queue->send(queue, pkts, n);
}

unsigned ixdp_xdp_queues(const struct ixdp_port *port) {
	return port->xdp ? port->xdp->n_queues : 0;
}

int ixdp_xdp_queue_stats_get(const struct ixdp_port *port, unsigned xdp_queue,
			     struct ixdp_xdp_queue_stats *stats) {
	if (xdp_queue >= ixdp_xdp_queues(port))
		return ixdp_fail(EINVAL, "%s: no XDP TX queue %u, the port has %u", port->bus->name,
				 xdp_queue, ixdp_xdp_queues(port));
	const struct xdp_queue *queue = &port->xdp->queues[xdp_queue];
	*stats = (struct ixdp_xdp_queue_stats){
	    counter_get(&queue->ring->taken), counter_get(&queue->locked),
	    counter_get(&queue->contended), counter_get(&queue->yields), queue->shared};
	return 0;
}
