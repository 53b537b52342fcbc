/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a program over what a queue receives. Frames that go on are gathered per target, and sent
 * once a chunk: one lock, one run of descriptors, one doorbell.
 */
#include "xdp.h"

#include <errno.h>
#include <stdlib.h>

/* Frames received and run at once, so that what is gathered stays on the stack. */
enum { CHUNK = 64, TX_MIN = 17 /* bytes that the NIC sends, section 7.2.3.2.4 */ };

/* Verdicts of a chunk, until they are carried out. */
struct gathered {
	struct ixdp_pkt tx[CHUNK], redirect[CHUNK], done[CHUNK];
	struct ixdp_port *target[CHUNK]; /* of redirect */
	unsigned n_tx, n_redirect, n_done;
};

static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

int ixdp_xdp_open(struct ixdp_port **port, const char *name, const struct ixdp_config *cfg) {
	unsigned threads = workers_count();
	struct ixdp_config mine;
	ixdp_config_init(&mine);
	if (cfg) mine = *cfg;
	if (threads == 0)
		return ixdp_fail(EINVAL, "%s: ixdp_xdp_workers() has not said how many", name);
	if (mine.xdp_queues > IXDP_XDP_MAX_QUEUES)
		return ixdp_fail(EINVAL, "%s: %u XDP TX queues: there are at most %d", name,
				 mine.xdp_queues, IXDP_XDP_MAX_QUEUES);
	if (mine.xdp_queues == 0)
		mine.xdp_queues = IXDP_XDP_MAX_QUEUES - min(mine.tx_queues, IXDP_XDP_MAX_QUEUES);
	mine.xdp_queues = min(mine.xdp_queues, threads);
	mine.threads = threads;

	struct xdp *xdp = aligned_alloc(alignof(struct xdp), sizeof(*xdp));
	if (!xdp) return ixdp_fail(ENOMEM, "%s: out of memory", name);
	memset(xdp, 0, sizeof(*xdp));
	pthread_mutex_init(&xdp->attaching, NULL);
	xdp->claims = threads > mine.rx_queues;
	int err = ixdp_open(port, name, &mine);
	if (err) {
		free(xdp);
		return err;
	}
	xdp_queues_init(*port, xdp, threads);
	__atomic_store_n(&(*port)->xdp, xdp, __ATOMIC_RELEASE);
	return 0;
}

static int not_open(const struct ixdp_port *port) {
	return ixdp_fail(EINVAL, "%s: not opened for XDP: ixdp_xdp_open()", port->bus->name);
}

int ixdp_xdp_attach(struct ixdp_port *port, ixdp_xdp_prog *prog, void *arg) {
	struct xdp *xdp = port->xdp;
	if (!xdp) return not_open(port);
	if (worker_inside()) return workers_wait(); /* which says why it does not */
	if (prog && port->cfg.mtu + ETHERNET_MAX > IXDP_DATA_SIZE)
		return ixdp_fail(EMSGSIZE, "%s: MTU %u: with an XDP program at most %d",
				 port->bus->name, port->cfg.mtu, IXDP_DATA_SIZE - ETHERNET_MAX);
	pthread_mutex_lock(&xdp->attaching);
	/* The place of the one before last is free, unless a worker stayed inside for too long. */
	int err = xdp->stuck ? workers_wait() : 0;
	if (!err) {
		struct program *next = &xdp->programs[xdp->program == &xdp->programs[0]];
		*next = (struct program){prog, arg};
		port->one_buffer = prog;
		atomic_store_explicit(&xdp->program, prog ? next : NULL, memory_order_release);
		err = workers_wait();
		xdp->stuck = err;
	}
	pthread_mutex_unlock(&xdp->attaching);
	return err;
}

/* The NIC pads frames, but not the shortest. False: there is no room for it. */
static bool pad(struct ixdp_pkt *pkt) {
	if (pkt->headroom + TX_MIN > IXDP_HEADROOM + IXDP_DATA_SIZE) return false;
	memset(pkt->data + pkt->len, 0, TX_MIN - pkt->len);
	pkt->len = TX_MIN;
	return true;
}

static void warn(struct ixdp_port *port, uint32_t verdict) {
	if (!atomic_exchange(&port->xdp->warned, true))
		ixdp_log(IXDP_LOG_WARNING, "%s: XDP program returned %u, no verdict: aborted",
			 port->bus->name, verdict);
}

/* Runs the program over n frames; those that pass move to the front. Returns how many do. */
static unsigned run(const struct program *program, struct xdp_rx *rx, struct ixdp_xdp_buff *buff,
		    struct ixdp_pkt *pkts, unsigned n, struct gathered *out) {
	unsigned passed = 0, dropped = 0, aborted = 0;
	out->n_tx = out->n_redirect = out->n_done = 0;
	for (unsigned i = 0; i < n; i++) {
		struct ixdp_pkt pkt = pkts[i];
		buff->buffer = ixdp_pkt_buffer(&pkt);
		buff->data = buff->data_meta = pkt.data;
		buff->data_end = pkt.data + pkt.len;
		buff->target = NULL;
		uint32_t verdict = program->fn(buff, program->arg);
		pkt.data = buff->data;
		pkt.len = buff->data_end - buff->data;
		pkt.headroom = buff->data - buff->buffer;
		bool sends = verdict == XDP_TX || verdict == XDP_REDIRECT;
		if (unlikely(sends && pkt.len < TX_MIN && !pad(&pkt))) verdict = XDP_ABORTED;
		switch (verdict) {
		case XDP_PASS:
			pkts[passed++] = pkt;
			continue;
		case XDP_TX:
			out->tx[out->n_tx++] = pkt;
			continue;
		case XDP_REDIRECT:
			out->target[out->n_redirect] = buff->target;
			out->redirect[out->n_redirect++] = pkt;
			continue;
		case XDP_DROP:
			dropped++;
			break;
		default:
			warn(buff->port, verdict);
			/* fall through */
		case XDP_ABORTED:
			aborted++;
		}
		out->done[out->n_done++] = pkt;
	}
	counter_add(&rx->stats.pass, passed);
	counter_add(&rx->stats.drop, dropped);
	counter_add(&rx->stats.aborted, aborted);
	return passed;
}

/* Sends n frames, frees what is not taken, and counts both. to: NULL where nothing can be sent. */
static void send_or_free(struct ixdp_xdp_buff *buff, struct xdp *to, const struct ixdp_pkt *pkts,
			 unsigned n, uint64_t *sent, uint64_t *rest) {
	int taken = to && to->n_queues ? xdp_queue_send(to, buff->worker, pkts, n) : 0;
	if (taken < 0) taken = 0;
	counter_add(sent, taken);
	counter_add(rest, n - taken);
	if (unlikely((unsigned)taken < n)) ixdp_free(buff->port->pool, pkts + taken, n - taken);
}

/*
 * Where frames can be sent that are redirected there, or NULL, and where to count those that are
 * not sent. A buffer returns to the pool of the port that sends it, so that must be its own.
 */
static struct xdp *find_target(const struct ixdp_port *port, struct ixdp_port *target,
			       struct ixdp_xdp_stats *stats, uint64_t **rest) {
	*rest = &stats->redirect_closed;
	if (!port_is_open(target)) return NULL;
	struct xdp *to = __atomic_load_n(&target->xdp, __ATOMIC_ACQUIRE);
	*rest = &stats->redirect_unprepared;
	if (!to || to->n_queues == 0 || target->pool != port->pool) return NULL;
	*rest = port_sends(target) ? &stats->redirect_full : &stats->redirect_down;
	return *rest == &stats->redirect_full ? to : NULL;
}

/* Redirected frames, one target after the other; each keeps its order. */
static void redirect(struct ixdp_xdp_buff *buff, struct ixdp_xdp_stats *stats,
		     struct gathered *out) {
	while (out->n_redirect > 0) {
		struct ixdp_port *target = out->target[0];
		struct ixdp_pkt batch[CHUNK];
		unsigned n = 0, rest = 0;
		for (unsigned i = 0; i < out->n_redirect; i++) {
			if (out->target[i] == target) {
				batch[n++] = out->redirect[i];
			} else {
				out->target[rest] = out->target[i];
				out->redirect[rest++] = out->redirect[i];
			}
		}
		out->n_redirect = rest;
		uint64_t *unsent,
		    *sent = target == buff->port ? &stats->redirect_self : &stats->redirect;
		struct xdp *to = find_target(buff->port, target, stats, &unsent);
		send_or_free(buff, to, batch, n, sent, unsent);
	}
}

int ixdp_xdp_poll(struct ixdp_port *port, unsigned queue, unsigned worker, struct ixdp_pkt *pkts,
		  unsigned n) {
	struct xdp *xdp = port->xdp;
	if (unlikely(!xdp)) return not_open(port);
	if (unlikely(queue >= port->cfg.rx_queues || worker >= workers_count()))
		return ixdp_fail(EINVAL, "%s: worker %u on RX queue %u: there are %u and %u",
				 port->bus->name, worker, queue, workers_count(),
				 port->cfg.rx_queues);
	struct xdp_rx *rx = &xdp->rx[queue];
	struct ixdp_xdp_buff buff = {.port = port, .queue = queue, .worker = worker};
	unsigned passed = 0, want;
	int got;
	if (xdp->claims && atomic_flag_test_and_set_explicit(&rx->claimed, memory_order_acquire))
		return 0;
	worker_enter(worker);
	do {
		struct gathered out;
		const struct program *program =
		    atomic_load_explicit(&xdp->program, memory_order_acquire);
		want = min(n, CHUNK);
		got = ixdp_rx(port, queue, pkts + passed, want);
		if (got <= 0) break;
		n -= got;
		if (unlikely(!program)) {
			for (unsigned end = passed + got; passed < end; passed++)
				counter_add(&rx->stats.pass,
					    !(pkts[passed].flags & IXDP_PKT_CONTD));
			continue;
		}
		passed += run(program, rx, &buff, pkts + passed, got, &out);
		if (out.n_tx)
			send_or_free(&buff, xdp, out.tx, out.n_tx, &rx->stats.tx,
				     &rx->stats.tx_full);
		redirect(&buff, &rx->stats, &out);
		ixdp_free(port->pool, out.done, out.n_done);
	} while (n > 0 && (unsigned)got == want);
	worker_leave(worker);
	if (xdp->claims) atomic_flag_clear_explicit(&rx->claimed, memory_order_release);
	return got < 0 && passed == 0 ? got : (int)passed;
}

int ixdp_xdp_xmit(struct ixdp_port *port, unsigned worker, const struct ixdp_pkt *pkts, unsigned n,
		  unsigned flags) {
	if (worker >= workers_count() || flags & ~(unsigned)IXDP_XMIT_FLUSH)
		return ixdp_fail(EINVAL, "%s: worker %u of %u, flags 0x%x: 0x%x at most",
				 port->bus->name, worker, workers_count(), flags, IXDP_XMIT_FLUSH);
	if (ixdp_xdp_queues(port) == 0)
		return ixdp_fail(ENXIO, "%s: has no XDP TX queues", port->bus->name);
	if (!port_sends(port))
		return ixdp_fail(ENETDOWN, "%s: stopped or without link", port->bus->name);
	return xdp_queue_send(port->xdp, worker, pkts, n);
}

int ixdp_xdp_stats_get(const struct ixdp_port *port, unsigned rx_queue,
		       struct ixdp_xdp_stats *stats) {
	if (!port->xdp || rx_queue >= port->cfg.rx_queues)
		return ixdp_fail(EINVAL, "%s: no RX queue %u with XDP", port->bus->name, rx_queue);
	const struct ixdp_xdp_stats *from = &port->xdp->rx[rx_queue].stats;
#define S(name, what) stats->name = counter_get(&from->name);
	IXDP_XDP_STATS(S)
#undef S
	return 0;
}
