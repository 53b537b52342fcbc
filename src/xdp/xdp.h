/* SPDX-License-Identifier: BSD-3-Clause */
/* XDP from the inside: what a port has for it, and the workers of the process. */
#pragma once

#include <ixdp/xdp.h>
#include <stdatomic.h>

#include "../driver/port.h"

struct program {
	ixdp_xdp_prog *fn;
	void *arg;
};

/* Of an RX queue; on lines of its own, as another worker serves its neighbour. */
struct xdp_rx {
	alignas(64) atomic_flag claimed; /* by the worker that polls it, if several may */
	struct ixdp_xdp_stats stats;	 /* written by that worker only */
};

/* An XDP TX queue: a ring of the driver, shared or not. */
struct xdp_queue {
	alignas(64) pthread_spinlock_t lock;
	bool shared; /* decided by numbers that never change while the port is open; so is: */
	int (*send)(struct xdp_queue *queue, const struct ixdp_pkt *pkts, unsigned n);
	struct tx_ring *ring;
	uint64_t locked, contended, yields; /* written under the lock */
};

struct xdp {
	struct program *_Atomic program; /* one of the two, the other is being replaced */
	struct program programs[2];
	pthread_mutex_t attaching;
	bool stuck;	    /* a worker stayed inside the program that was replaced last */
	bool claims;	    /* there are more workers than RX queues */
	atomic_bool warned; /* of a verdict that is none */
	unsigned n_queues;
	struct xdp_rx rx[IXDP_MAX_RX_QUEUES];
	struct xdp_queue queues[IXDP_XDP_MAX_QUEUES];
};

/* workers.c. How many workers there are; 0: not said yet. */
unsigned workers_count(void);

/* A worker is about to use programs and ports of others, and has finished. */
void worker_enter(unsigned worker);
void worker_leave(unsigned worker);

/* Whether the running thread is between the two. */
bool worker_inside(void);

/*
 * Waits until all workers that were inside have left once: what they could not find any more when
 * it was called they do not use any more. 0; -ETIMEDOUT (after workers_wait_ms), -EDEADLK (called
 * by a worker that is inside) or -ENOMEM with ixdp_error().
 */
int workers_wait(void);
extern unsigned workers_wait_ms;

/* queue.c. Sends on the worker's queue: as tx_ring.send. */
int xdp_queue_send(struct xdp *xdp, unsigned worker, const struct ixdp_pkt *pkts, unsigned n);
void xdp_queues_init(struct ixdp_port *port, struct xdp *xdp, unsigned threads);
