/* SPDX-License-Identifier: BSD-3-Clause */
#include "workers.h"

#include <errno.h>
#include <net/ethernet.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	TURN = 4,	/* rounds that brought frames, until it is another worker's turn */
	PATIENCE = 100, /* rounds that brought none, until it is time to sleep in between */
	SLEEP_US = 100, /* a ring of 512 descriptors lasts so long at 3 Mpps and more */
	LOOK_US = 500,	/* between looks of the main thread */
};

/* Plain additions, as each of these has one writer. */
static void count(_Atomic uint64_t *counter) {
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static void sleep_us(unsigned us) { nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL); }

/* --- programs, called for each received frame ---------------------------------------------- */

/* Counts a frame, for the worker that runs the program. arg: of the frame's port. */
static void see(const struct ixdp_xdp_buff *xdp, void *arg, bool send) {
	const struct workers_port *port = arg;
	struct xdp_worker *me = &port->workers->worker[xdp->worker].count;

	count(&me->frames);
	if (send) count(&me->sends[port->index]);
}

static uint32_t prog_drop(struct ixdp_xdp_buff *xdp, void *arg) {
	see(xdp, arg, false);
	return XDP_DROP;
}

static uint32_t prog_pass(struct ixdp_xdp_buff *xdp, void *arg) {
	see(xdp, arg, false);
	return XDP_PASS;
}

static uint32_t prog_tx(struct ixdp_xdp_buff *xdp, void *arg) {
	see(xdp, arg, true);
	return XDP_TX;
}

static uint32_t prog_swap(struct ixdp_xdp_buff *xdp, void *arg) {
	struct ether_header *ether = (struct ether_header *)xdp->data;
	const struct ether_header old = *ether;

	see(xdp, arg, true);
	memcpy(ether->ether_dhost, old.ether_shost, ETH_ALEN);
	memcpy(ether->ether_shost, old.ether_dhost, ETH_ALEN);
	return XDP_TX;
}

static uint32_t prog_redirect(struct ixdp_xdp_buff *xdp, void *arg) {
	see(xdp, arg, true);
	return ixdp_xdp_redirect(xdp, ((struct workers_port *)arg)->other);
}

static ixdp_xdp_prog *const progs[] = {
    [WORKERS_DROP] = prog_drop, [WORKERS_PASS] = prog_pass,	    [WORKERS_TX] = prog_tx,
    [WORKERS_SWAP] = prog_swap, [WORKERS_REDIRECT] = prog_redirect,
};

/* --- threads ------------------------------------------------------------------------------- */

/* Once over the worker's RX queues of all ports. Frames that pass end here. */
static void do_round(struct worker *me) {
	const struct workers *all = me->all;
	const struct report *report = &all->run->report;
	const unsigned batch = all->run->opts->batch;
	struct ixdp_pkt pkts[OPTIONS_MAX_BATCH];

	for (unsigned queue = me->index % all->n_groups; queue < all->run->opts->config.rx_queues;
	     queue += all->n_groups)
		for (unsigned i = 0; i < report->n_ports; i++) {
			struct ixdp_port *port = report->ports[i].port;
			const int n = ixdp_xdp_poll(port, queue, me->index, pkts, batch);

			/* A program that wants frames for itself would look at them here. */
			if (n > 0) ixdp_free(ixdp_port_pool(port), pkts, (unsigned)n);
		}
}

/* The worker whose turn it is after this one's: the next one with the same RX queues. */
static struct worker *successor(const struct worker *me) {
	const struct workers *all = me->all;
	const unsigned next = me->index + all->n_groups;

	return &all->worker[next < all->n ? next : me->index % all->n_groups];
}

/*
 * A turn: rounds until some have brought frames. Were there no turns, a few workers would get all
 * frames, and the others burn CPUs by asking for them.
 */
static void take_turn(struct worker *me) {
	struct workers *all = me->all;
	struct workers_group *group = &all->groups[me->index % all->n_groups];
	unsigned idle = 0;

	for (unsigned busy = 0; busy < TURN && !all->stop;) {
		const uint64_t before = me->count.frames;

		if (!all->deaf) do_round(me);
		group->rounds++;
		if (me->count.frames != before) {
			idle = 0;
			busy++;
		} else if (++idle < PATIENCE) {
			sched_yield();
		} else {
			sleep_us(SLEEP_US);
		}
	}
}

static void *work(void *arg) {
	struct worker *me = arg;

	do {
		while (sem_wait(&me->turn))
			;
		take_turn(me);
		sem_post(&successor(me)->turn);
	} while (!me->all->stop);
	return NULL;
}

static void join(struct workers *workers, unsigned started) {
	workers->stop = true;
	for (unsigned i = 0; i < started; i++)
		sem_post(&workers->worker[i].turn);
	for (unsigned i = 0; i < started; i++)
		pthread_join(workers->worker[i].thread, NULL);
	for (unsigned i = 0; i < workers->n; i++)
		sem_destroy(&workers->worker[i].turn);
}

/* Signals are for the main thread. */
static int start_threads(struct workers *workers) {
	sigset_t all, old;
	unsigned started = 0;
	int err = 0;

	for (unsigned i = 0; i < workers->n; i++) {
		struct worker *worker = &workers->worker[i];

		worker->all = workers;
		worker->index = i;
		sem_init(&worker->turn, 0, i < workers->n_groups);
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (started < workers->n && !err) {
		struct worker *worker = &workers->worker[started];

		err = pthread_create(&worker->thread, NULL, work, worker);
		started += !err;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err) return 0;
	report_error("thread %u of %u: %s; fewer --threads?", started + 1, workers->n,
		     strerror(err));
	join(workers, started);
	return -err;
}

static int attach(struct workers *workers, enum workers_prog prog) {
	const struct report *report = &workers->run->report;

	for (unsigned i = 0; i < report->n_ports; i++) {
		struct workers_port *port = &workers->ports[i];

		*port = (struct workers_port){
		    .workers = workers,
		    .other = report->ports[report->n_ports - 1 - i].port,
		    .index = i,
		};
		const int err = ixdp_xdp_attach(report->ports[i].port, progs[prog], port);

		if (err) {
			report_error("%s", ixdp_error());
			return err;
		}
	}
	return 0;
}

static int prepare(struct workers *workers, struct run *run) {
	const unsigned n = run->opts->threads, rx_queues = run->opts->config.rx_queues;

	*workers = (struct workers){.run = run, .n = n};
	workers->n_groups = n < rx_queues ? n : rx_queues;
	workers->worker = aligned_alloc(alignof(struct worker), n * sizeof(struct worker));
	int err = workers->worker ? 0 : -ENOMEM;

	if (!err) {
		memset(workers->worker, 0, n * sizeof(struct worker));
		err = xdp_report_init(&workers->report, &run->report, rx_queues, n,
				      &workers->worker->count, sizeof(struct worker));
	}
	if (err) report_error("%u threads: out of memory", n);
	return err;
}

/*
 * How many frames workers have received since the last call. 1 in the place of 0 as long as some
 * RX queue has not been asked: what is in there unseen is still under way.
 */
static unsigned look(struct workers *workers) {
	bool all_asked = true;
	uint64_t frames = 0;

	/* Two rounds: one of them has begun since. */
	for (unsigned i = 0; i < workers->n_groups; i++)
		all_asked &= workers->groups[i].rounds - workers->groups[i].seen >= 2;
	for (unsigned i = 0; i < workers->n; i++)
		frames += workers->worker[i].count.frames;
	const unsigned moved = (unsigned)(frames - workers->frames);

	workers->frames = frames;
	if (!all_asked) return moved ? moved : 1;
	for (unsigned i = 0; i < workers->n_groups; i++)
		workers->groups[i].seen = workers->groups[i].rounds;
	return moved;
}

static void work_till_the_end(struct workers *workers) {
	struct run *run = workers->run;
	unsigned moved;

	do {
		sleep_us(LOOK_US);
		moved = look(workers);
		xdp_report_refused(&workers->report, &run->report);
		if (run->opts->count && workers->frames >= run->opts->count) run_end(run);
		workers->deaf = run->deaf;
	} while (run_goes_on(run, moved));
	join(workers, workers->n);
	xdp_report_refused(&workers->report, &run->report);
}

int workers_main(struct workers *workers, struct run *run, enum workers_prog prog) {
	int err = prepare(workers, run);

	if (!err) err = attach(workers, prog);
	if (!err) {
		xdp_report_sharing(&workers->report);
		run_begin(run);
		err = start_threads(workers);
	}
	if (err)
		run->failed = true;
	else
		work_till_the_end(workers);
	const int code = run_close(run);

	xdp_report_free(&workers->report);
	free(workers->worker);
	return code;
}
