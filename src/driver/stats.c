/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics, section 8.2.3.23. The NIC's counters clear when read and are 32 bits wide (36 for
 * octets), which a 10 Gbit/s line fills in minutes: each read adds to 64-bit totals, under a lock,
 * so that there is one reader at a time and nothing is counted twice. Queues count in software, as
 * there are more of them than counters.
 */
#include "port.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

enum {
	STATS_COUNT = sizeof(struct ixdp_stats) / sizeof(uint64_t),
	FCS = 4,
	PAUSE_FRAME = 60,	  /* bytes */
	UNPOLLED_NS = 1000000000, /* a queue that lives is polled much more often */
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define INDEX(name) (offsetof(struct ixdp_stats, name) / sizeof(uint64_t))

#define NAME(name, what) #name,
#define NAMES_OF(kind, LIST)                                                                       \
	const char *const *kind##_names(unsigned *n) {                                             \
		static const char *const names[] = {LIST(NAME)};                                   \
		*n = LENGTH(names);                                                                \
		return names;                                                                      \
	}
NAMES_OF(ixdp_stats, IXDP_STATS)
NAMES_OF(ixdp_rx_queue_stats, IXDP_RX_QUEUE_STATS)
NAMES_OF(ixdp_tx_queue_stats, IXDP_TX_QUEUE_STATS)

/*
 * What is read, in this order, and the first of `n` totals that it adds to. derive() takes away
 * from a total only what is read after it: a frame between the two reads makes a difference too
 * small until the next time, never too large.
 */
/* clang-format off */
static const struct {
	uint32_t reg;
	unsigned total, n;
} counters[] = {
#define C(reg, total, n) {REG_##reg, INDEX(total), n}
	C(GOTCL, tx_bytes, 1),      C(GPTC, tx_packets, 1),   C(MPTC, tx_multicast, 1),
	C(BPTC, tx_broadcast, 1),   C(PTC, tx_64, 6),         C(LXONTXC, tx_xon, 1),
	C(LXOFFTXC, tx_xoff, 1),    C(TPR, rx_filtered, 1),   C(GPRC, rx_packets, 1),
	C(CRCERRS, rx_crc, 1),      C(RUC, rx_undersize, 1),  C(RFC, rx_fragments, 1),
	C(ROC, rx_oversize, 1),     C(RJC, rx_jabber, 1),     C(RLEC, rx_length, 1),
	C(LXONRXCNT, rx_xon, 1),    C(LXOFFRXCNT, rx_xoff, 1), C(MPC, rx_missed, 1),
	C(MPRC, rx_multicast, 1),   C(BPRC, rx_broadcast, 1), C(PRC, rx_64, 6),
#undef C
};
/* clang-format on */

/*
 * Adds a counter of 32 or 36 bits to a total: the low word first. One that is full stays so. All
 * ones may also be those of a device that has gone; all that was read before is good.
 */
static int take(struct ixdp_port *port, uint32_t reg, unsigned name, uint64_t *total) {
	bool wide = reg == REG_GOTCL;
	uint32_t low = reg_read(port, reg), high = wide ? reg_read(port, reg + 4) : low;
	if (high == UINT32_MAX && reg_read(port, REG_STATUS) == UINT32_MAX)
		return ixdp_fail(ENODEV, "%s: device has gone: STATUS reads 0xffffffff",
				 port->bus->name);
	if (!port->stats.counting) return 0;
	counter_add(total, wide ? (uint64_t)(high & 0xF) << 32 | low : low);
	if (low == UINT32_MAX && (high & 0xF) == 0xF && port->stats.raw.saturated++ == 0)
		ixdp_log(IXDP_LOG_WARNING,
			 "%s: the counter of %s was full: ask for statistics more often",
			 port->bus->name, ixdp_stats_names(&(unsigned){0})[name]);
	return 0;
}

static int take_all(struct ixdp_port *port) {
	uint64_t *raw = (uint64_t *)&port->stats.raw;
	int err = 0;
	for (unsigned i = 0; i < LENGTH(counters); i++)
		for (unsigned n = 0, total = counters[i].total; n < counters[i].n && !err;
		     n++, total++)
			err = take(port, counters[i].reg + 4 * n, total, &raw[total]);
	for (unsigned q = 0; q < port->cfg.rx_queues && !err; q++)
		err = take(port, REG_N(QPRDC, q), INDEX(rx_no_desc), &port->rx[q].no_desc);
	return err;
}

/*
 * A queue is not polled if none of its counters moves for long, the NIC has dropped frames for it,
 * and more than half of its ring waits (where the NIC hangs instead, it does not).
 */
static void watch(struct ixdp_port *port, unsigned q) {
	struct queue_watch *watch = &port->stats.watch[q];
	const struct rx_ring *ring = &port->rx[q];
	uint64_t now = port->bus->ops->now_ns(port->bus), lost = ring->no_desc, moved = -lost;
#define ADD_MOVED(name, what) moved += counter_get(&ring->name);
	IXDP_RX_QUEUE_STATS(ADD_MOVED)
	if (moved != watch->moved) *watch = (struct queue_watch){moved, lost, now, watch->told};
	if (watch->told || lost == watch->lost || now - watch->since < UNPOLLED_NS) return;

	uint32_t head = reg_read(port, REG_N(RDH, q)), tail = reg_read(port, REG_N(RDT, q));
	if (((tail - head) & ring->mask) > ring->mask / 2) return;
	watch->told = true;
	ixdp_log(IXDP_LOG_WARNING,
		 "%s: nobody polls RX queue %u: for %.1f s nothing was taken from it, and %" PRIu64
		 " frames were dropped for want of descriptors",
		 port->bus->name, q, (double)(now - watch->since) / 1e9, lost - watch->lost);
}

/* From what the NIC has counted to what it means. What has been shown never falls again. */
static void derive(struct port_stats *stats) {
	struct ixdp_stats s = stats->raw;
	uint64_t pauses = s.tx_xon + s.tx_xoff;
	s.tx_bytes -= s.tx_packets * FCS + pauses * PAUSE_FRAME;
	s.tx_packets -= pauses;
	s.tx_multicast -= pauses;
	s.tx_64 -= pauses;
	/* UNCLEAR: whether TPR counts PAUSE frames; without them it is too small by those. */
	s.rx_filtered -= s.rx_packets + s.rx_crc + s.rx_undersize + s.rx_fragments + s.rx_oversize +
			 s.rx_jabber + s.rx_length + s.rx_xon + s.rx_xoff;
	s.rx_packets = 0; /* the queues know it better: not all that is good finds a descriptor */

	for (unsigned i = 0; i < STATS_COUNT; i++) {
		uint64_t now = ((const uint64_t *)&s)[i], *shown = (uint64_t *)&stats->shown + i;
		if ((int64_t)(now - *shown) > 0) *shown = now;
	}
}

/* Adds what the NIC has counted since the last time. Called under the lock. */
static int collect(struct ixdp_port *port) {
	uint32_t tfcs = reg_read(port, REG_TFCS);
	int err = take_all(port);
	if (err) return err;
	port->stats.paused = tfcs & TFCS_TC_XOFF;
	derive(&port->stats);
	for (unsigned q = 0; q < port->cfg.rx_queues; q++)
		watch(port, q);
	return 0;
}

/* Frames that were taken, and neither sent nor given up so far. */
static uint64_t pending(const struct ixdp_port *port) {
	uint64_t done = port->stats.shown.tx_packets + port->stats.shown.tx_dropped, taken = 0;
	for (unsigned q = 0; q < port->tx_queues; q++)
		taken += counter_get(&port->tx[q].taken);
	return taken > done ? taken - done : 0;
}

void stats_init(struct ixdp_port *port) {
	/* A counter of QPRDC for each queue, section 8.2.3.23; after reset the first has all. */
	for (unsigned i = 0; i < IXDP_MAX_RX_QUEUES / 4; i++)
		reg_write(port, REG_N(RQSMR, i), 0x03020100 + i * 0x04040404);
	pthread_mutex_lock(&port->stats_lock);
	/* What they hold now is not ours, section 4.6.5. */
	take_all(port);
	for (unsigned q = 0; q < port->cfg.rx_queues; q++)
		port->stats.watch[q].since = port->bus->ops->now_ns(port->bus);
	port->stats.counting = true;
	pthread_mutex_unlock(&port->stats_lock);
}

void stats_collect(struct ixdp_port *port) {
	pthread_mutex_lock(&port->stats_lock);
	if (port->stats.counting) {
		collect(port);
		port->stats.shown.tx_dropped += pending(port);
	}
	port->stats.counting = false;
	pthread_mutex_unlock(&port->stats_lock);
}

/* What counters, from the first on, have counted since they were at `base` (NULL: at 0). */
static void count(void *stats, const void *counters, const void *base, size_t size) {
	const uint64_t *counter = counters, *from = base;
	for (size_t i = 0; i < size / sizeof(*counter); i++)
		((uint64_t *)stats)[i] = counter_get(&counter[i]) - (from ? from[i] : 0);
}

static void port_stats(const struct ixdp_port *port, struct ixdp_stats *s) {
	const struct port_stats *stats = &port->stats;
	count(s, &stats->shown, &stats->base, sizeof(*s));
	for (unsigned q = 0; q < port->cfg.rx_queues; q++) {
#define ADD(name, what) s->rx_##name += counter_get(&port->rx[q].name) - stats->rx_base[q].name;
		IXDP_RX_QUEUE_STATS(ADD)
	}
	for (unsigned i = INDEX(rx_missed); i <= INDEX(rx_errors); i++)
		s->rx_dropped += ((const uint64_t *)s)[i];
	for (unsigned q = 0; q < port->tx_queues; q++) {
		s->tx_taken += counter_get(&port->tx[q].taken) - stats->tx_base[q].taken;
		s->tx_full += counter_get(&port->tx[q].full) - stats->tx_base[q].full;
	}
	s->tx_pending = pending(port);
	s->tx_paused = stats->paused;
}

int ixdp_stats_get(struct ixdp_port *port, struct ixdp_stats *stats) {
	pthread_mutex_lock(&port->stats_lock);
	int err = collect(port);
	if (!err) port_stats(port, stats);
	pthread_mutex_unlock(&port->stats_lock);
	return err;
}

int ixdp_rx_queue_stats_get(struct ixdp_port *port, unsigned q, struct ixdp_rx_queue_stats *stats) {
	if (q >= port->cfg.rx_queues) return port_no_queue(port, "RX", q, port->cfg.rx_queues);
	pthread_mutex_lock(&port->stats_lock);
	int err = collect(port);
	if (!err) count(stats, &port->rx[q].packets, &port->stats.rx_base[q], sizeof(*stats));
	pthread_mutex_unlock(&port->stats_lock);
	return err;
}

int ixdp_tx_queue_stats_get(struct ixdp_port *port, unsigned q, struct ixdp_tx_queue_stats *stats) {
	if (q >= port->cfg.tx_queues) return port_no_queue(port, "TX", q, port->cfg.tx_queues);
	pthread_mutex_lock(&port->stats_lock);
	count(stats, &port->tx[q].taken, &port->stats.tx_base[q], sizeof(*stats));
	pthread_mutex_unlock(&port->stats_lock);
	return 0;
}

int ixdp_stats_clear(struct ixdp_port *port) {
	struct port_stats *stats = &port->stats;
	pthread_mutex_lock(&port->stats_lock);
	int err = collect(port);
	if (!err) stats->base = stats->shown;
	for (unsigned q = 0; q < port->cfg.rx_queues && !err; q++)
		count(&stats->rx_base[q], &port->rx[q].packets, NULL, sizeof(stats->rx_base[q]));
	for (unsigned q = 0; q < port->tx_queues && !err; q++)
		count(&stats->tx_base[q], &port->tx[q].taken, NULL, sizeof(stats->tx_base[q]));
	pthread_mutex_unlock(&port->stats_lock);
	return err;
}
