/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that receive, run an XDP program, and send: as many as opts.threads says. The main thread
 * does not work, it watches: it ends the run, and prints.
 */
#pragma once

#include "run.h"
#include "xdp_report.h"

#include <ixdp/xdp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdatomic.h>

enum { WORKERS_MAX = 1024 };

/* What becomes of received frames. */
enum workers_prog {
	WORKERS_DROP,
	WORKERS_PASS, /* to the worker, which frees them */
	WORKERS_TX,
	WORKERS_SWAP,	  /* its MAC addresses exchanged, as WORKERS_TX */
	WORKERS_REDIRECT, /* out of the other port; out of the only one */
};

struct workers;

/*
 * Those who poll the same RX queues do so in turn; the others sleep until theirs comes. Fewer
 * workers than RX queues: each has several of them.
 */
struct worker {
	alignas(64) struct xdp_worker count;
	struct workers *all;
	unsigned index;
	pthread_t thread;
	sem_t turn;
};

/* Of those who poll the same RX queues. */
struct workers_group {
	alignas(64) atomic_uint rounds; /* over all of its queues */
	unsigned seen;			/* rounds when the main thread last knew what they found */
};

/* What the program of a port gets. */
struct workers_port {
	struct workers *workers;
	struct ixdp_port *other; /* where to redirect */
	unsigned index;
};

struct workers {
	struct run *run;
	unsigned n, n_groups;
	atomic_bool stop, deaf; /* see struct run */
	struct worker *worker;
	struct workers_group groups[IXDP_MAX_RX_QUEUES];
	struct workers_port ports[REPORT_MAX_PORTS];
	uint64_t frames; /* received, as last looked at */
	struct xdp_report report;
};

/*
 * The rest of a program after run_open(): waits for link, attaches, works until it is time to end,
 * closes. Says how many workers share which queues. Returns the exit code.
 */
int workers_main(struct workers *workers, struct run *run, enum workers_prog prog);
