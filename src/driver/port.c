/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing: what ixdp_open() acquires, in order, ixdp_close() releases in reverse. */
#include "port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one thread may keep from the others: its cache of the pool, and a batch in its hands. */
enum { BUFFERS_PER_THREAD = 3 * POOL_CHUNK + 256 };

enum { MAX_PORTS = 64 };

static struct ixdp_port *_Atomic ports[MAX_PORTS]; /* that are open */

int (*port_quiesce)(void);

/* Puts one in the place of another; false: it has none. */
static bool ports_replace(struct ixdp_port *old, struct ixdp_port *new) {
	for (unsigned i = 0; i < MAX_PORTS; i++) {
		struct ixdp_port *expected = old;
		if (atomic_compare_exchange_strong(&ports[i], &expected, new)) return true;
	}
	return false;
}

bool port_is_open(const struct ixdp_port *port) {
	for (unsigned i = 0; port && i < MAX_PORTS; i++)
		if (atomic_load(&ports[i]) == port) return true;
	return false;
}

bool port_sends(const struct ixdp_port *port) {
	return __atomic_load_n(&port->running, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&port->no_link, __ATOMIC_RELAXED);
}

int port_no_queue(const struct ixdp_port *port, const char *kind, unsigned queue, unsigned have) {
	return ixdp_fail(EINVAL, "%s: no %s queue %u, the port has %u", port->bus->name, kind,
			 queue, have);
}

void ixdp_config_init(struct ixdp_config *cfg) {
	*cfg = (struct ixdp_config){.rx_queues = 1,
				    .tx_queues = 1,
				    .rx_ring = 512,
				    .tx_ring = 512,
				    .mtu = 1500,
				    .promiscuous = true};
}

unsigned ixdp_pool_needed(const struct ixdp_config *cfg) {
	unsigned threads = cfg->rx_queues > cfg->tx_queues ? cfg->rx_queues : cfg->tx_queues;
	if (threads < cfg->threads) threads = cfg->threads;
	return cfg->rx_queues * cfg->rx_ring + (cfg->tx_queues + cfg->xdp_queues) * cfg->tx_ring +
	       threads * BUFFERS_PER_THREAD;
}

static int check_config(const char *name, const struct ixdp_config *cfg) {
	const struct {
		const char *what;
		unsigned value, min, max;
	} limits[] = {
	    {"RX queues", cfg->rx_queues, 0, IXDP_MAX_RX_QUEUES},
	    {"TX queues", cfg->tx_queues, 0, IXDP_MAX_TX_QUEUES},
	    {"TX queues for XDP", cfg->xdp_queues, 0, IXDP_MAX_TX_QUEUES - cfg->tx_queues},
	    {"queues in all", cfg->rx_queues + cfg->tx_queues + cfg->xdp_queues, 1,
	     IXDP_MAX_RX_QUEUES + IXDP_MAX_TX_QUEUES},
	    {"RX ring", cfg->rx_ring, IXDP_MIN_RING, IXDP_MAX_RING},
	    {"TX ring", cfg->tx_ring, IXDP_MIN_RING, IXDP_MAX_RING},
	    {"MTU", cfg->mtu, IXDP_MIN_MTU, IXDP_MAX_MTU},
	    {"flow control", cfg->pause, 0, IXDP_PAUSE_RX | IXDP_PAUSE_TX},
	    {"offloads", cfg->offloads, 0, IXDP_OFFLOAD_VLAN_STRIP | IXDP_OFFLOAD_CSUM},
	    {"threads", cfg->threads, 0, IXDP_MAX_THREADS},
	};
	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].value < limits[i].min || limits[i].value > limits[i].max)
			return ixdp_fail(EINVAL, "%s: %s %u: must be %u to %u", name,
					 limits[i].what, limits[i].value, limits[i].min,
					 limits[i].max);
	/* An index is masked, not divided. */
	if (cfg->rx_ring & (cfg->rx_ring - 1) || cfg->tx_ring & (cfg->tx_ring - 1))
		return ixdp_fail(EINVAL,
				 "%s: RX ring %u, TX ring %u: must be powers of two, %d to %d",
				 name, cfg->rx_ring, cfg->tx_ring, IXDP_MIN_RING, IXDP_MAX_RING);
	return 0;
}

/* The port's pool, promised what the port needs, and where the NIC sees its buffers. */
static int acquire_pool(struct ixdp_port *port, struct iova_table *iova) {
	struct ixdp_bus *bus = port->bus;
	unsigned needed = ixdp_pool_needed(&port->cfg);
	int err = 0;
	if (port->cfg.pool)
		port->pool = port->cfg.pool;
	else
		err = pool_default(&port->pool, needed, bus->numa_node, bus->ordinary_pages);
	if (!err) err = pool_commit(port->pool, needed, bus->name);
	if (err) return err;
	port->committed = needed;
	return bus->ops->dma_map(bus, pool_mem(port->pool), iova);
}

/*
 * The rings, without buffers. All descriptors share one memory, in places as large as the larger
 * kind: sizes are powers of two, so each ring is aligned to its size, and none crosses a page.
 */
static int make_rings(struct ixdp_port *port, const struct iova_table *iova) {
	const struct ixdp_config *cfg = &port->cfg;
	struct ixdp_bus *bus = port->bus;
	size_t place = cfg->rx_ring > cfg->tx_ring ? cfg->rx_ring : cfg->tx_ring;
	size_t n = (cfg->rx_queues + port->tx_queues) * place;
	int err = dma_alloc(&port->ring_mem, n * sizeof(struct desc), bus->numa_node,
			    bus->ordinary_pages);
	if (!err) err = bus->ops->dma_map(bus, port->ring_mem, &port->ring_iova);
	if (err) return err;
	port->bufs = aligned_alloc(64, n * sizeof(*port->bufs));
	if (!port->bufs) return ixdp_fail(ENOMEM, "%s: out of memory for rings", bus->name);

#define RING(kind, tail, n)                                                                        \
	((struct kind){.desc = desc,                                                               \
		       .buf = buf,                                                                 \
		       .mask = (n)-1,                                                              \
		       .doorbell = bus->ops->doorbell(bus, tail),                                  \
		       .pool = port->pool,                                                         \
		       .iova = *iova,                                                              \
		       .port = bus->name})
	struct desc *desc = (struct desc *)port->ring_mem->addr;
	uint8_t **buf = port->bufs;
	for (unsigned q = 0; q < cfg->rx_queues; q++, desc += place, buf += place) {
		port->rx[q] = RING(rx_ring, REG_N(RDT, q), cfg->rx_ring);
		rx_ring_reset(&port->rx[q]);
	}
	for (unsigned q = 0; q < port->tx_queues; q++, desc += place, buf += place) {
		port->tx[q] = RING(tx_ring, REG_N(TDT, q), cfg->tx_ring);
		tx_ring_empty(&port->tx[q]);
	}
#undef RING
	return 0;
}

/* Reset, or without bus mastering, it can no longer touch our memory; false: nobody may have it. */
static bool silence(struct ixdp_port *port) {
	int err = device_reset(port);
	if (err && err != -ENODEV) /* of a gone one the user knows already */
		ixdp_log(IXDP_LOG_WARNING, "%s", ixdp_error());
	if (port->bus->ops->dma_enable(port->bus, false) == 0 || !err) return true;
	ixdp_log(IXDP_LOG_ERROR, "%s; %s cannot be stopped, its memory stays allocated",
		 ixdp_error(), port->bus->name);
	return false;
}

/* Silence, and all buffers back from the rings. False: nothing has changed. */
static bool halt(struct ixdp_port *port) {
	bool ran = port->running;
	__atomic_store_n(&port->running, false, __ATOMIC_RELAXED);
	bool used = port->listed && port_quiesce && port_quiesce() != 0;
	if (used) ixdp_log(IXDP_LOG_ERROR, "%s; %s runs on", ixdp_error(), port->bus->name);
	if (used || (port->dma_on && !silence(port))) {
		__atomic_store_n(&port->running, ran, __ATOMIC_RELAXED);
		return false;
	}
	port->dma_on = false;
	for (unsigned q = 0; port->bufs && q < port->cfg.rx_queues; q++)
		rx_ring_empty(&port->rx[q]);
	for (unsigned q = 0; port->bufs && q < port->tx_queues; q++)
		tx_ring_empty(&port->tx[q]);
	return true;
}

/* Gives back what a port has, be it all or what a failing ixdp_open() got that far. */
static void release(struct ixdp_port *port) {
	if (!halt(port)) return;
	free(port->bufs);
	if (port->ring_mem) {
		port->bus->ops->dma_unmap(port->bus, port->ring_mem);
		dma_free(port->ring_mem);
	}
	if (port->committed) {
		pool_flush(port->pool);
		port->bus->ops->dma_unmap(port->bus, pool_mem(port->pool));
		pool_release(port->pool, port->committed);
	}
	if (port->pool && !port->cfg.pool) pool_default_put(port->pool);
	trace_flush(port);
	if (port->bus) port->bus->ops->close(port->bus);
	pthread_mutex_destroy(&port->stats_lock);
	free(port->xdp);
	free(port);
}

/* From rings that are ready to queues that run. */
static int start(struct ixdp_port *port) {
	int err = device_init(port);
	if (err) return err;
	for (unsigned q = 0; q < port->cfg.rx_queues; q++)
		rx_ring_start(&port->rx[q], &port->cfg);
	for (unsigned q = 0; q < port->tx_queues; q++)
		tx_ring_start(&port->tx[q], &port->cfg);
	__atomic_store_n(&port->running, true, __ATOMIC_RELEASE);
	trace_flush(port);
	return 0;
}

/* It may still be writing for a process that died, into pages which only then can be had again. */
static int quiet_card(struct ixdp_port *port) {
	int err = device_reset(port);
	if (!err) err = port->bus->ops->dma_enable(port->bus, true);
	port->dma_on = !err;
	return err;
}

static int acquire(struct ixdp_port *port, const char *name) {
	struct iova_table iova;
	int err = rss_init(port, name, port->cfg.rss);
	port->cfg.rss = NULL; /* the caller's */
	if (!err) err = bus_open(&port->bus, name, port->cfg.force);
	if (!err) err = quiet_card(port);
	if (!err) err = acquire_pool(port, &iova);
	if (!err) err = make_rings(port, &iova);
	return err ? err : start(port);
}

/* The way back from a failure. What it has to say must not hide what failed. */
static int undo(struct ixdp_port *port, int err, bool opening) {
	char why[512];
	snprintf(why, sizeof(why), "%s", ixdp_error());
	opening ? release(port) : (void)halt(port);
	return ixdp_fail(-err, "%s", why);
}

int ixdp_open(struct ixdp_port **out, const char *name, const struct ixdp_config *cfg) {
	struct ixdp_port *port = aligned_alloc(alignof(struct ixdp_port), sizeof(*port));
	if (!port) return ixdp_fail(ENOMEM, "%s: out of memory", name);
	memset(port, 0, sizeof(*port));
	ixdp_config_init(&port->cfg);
	if (cfg) port->cfg = *cfg;
	pthread_mutex_init(&port->stats_lock, NULL);
	port->tx_queues = port->cfg.tx_queues + port->cfg.xdp_queues;
	int err = check_config(name, &port->cfg);
	if (!err) err = acquire(port, name);
	if (!err && !(port->listed = ports_replace(NULL, port)))
		err = ixdp_fail(EMFILE, "%s: %d ports are open: close one", name, MAX_PORTS);
	if (err) return undo(port, err, true);
	*out = port;
	return 0;
}

void ixdp_close(struct ixdp_port *port) {
	if (port && ports_replace(port, NULL)) release(port);
}

static int stop(struct ixdp_port *port) {
	if (halt(port)) return 0;
	return ixdp_fail(EIO, "%s: cannot be stopped: the log says why", port->bus->name);
}

int ixdp_stop(struct ixdp_port *port) { return port->running ? stop(port) : 0; }

int ixdp_start(struct ixdp_port *port) {
	if (port->running) return 0;
	/* After a start that failed, and could not be undone: its rings are full. */
	int err = port->dma_on ? stop(port) : 0;
	if (err) return err;
	err = quiet_card(port);
	if (!err) err = start(port);
	return err ? undo(port, err, false) : 0;
}

/* Takes over settings that only a start can make. */
static int restart(struct ixdp_port *port, const struct ixdp_config *cfg) {
	bool running = port->running;
	int err = check_config(port->bus->name, cfg);
	if (!err && port->one_buffer && cfg->mtu + ETHERNET_MAX > IXDP_DATA_SIZE)
		err = ixdp_fail(EMSGSIZE, "%s: MTU %u: with an XDP program attached at most %d",
				port->bus->name, cfg->mtu, IXDP_DATA_SIZE - ETHERNET_MAX);
	if (!err) err = ixdp_stop(port);
	if (err) return err;
	port->cfg = *cfg;
	return running ? ixdp_start(port) : 0;
}

int ixdp_mtu_set(struct ixdp_port *port, unsigned mtu) {
	struct ixdp_config cfg = port->cfg;
	cfg.mtu = mtu;
	return restart(port, &cfg);
}

int ixdp_pause_set(struct ixdp_port *port, unsigned pause) {
	struct ixdp_config cfg = port->cfg;
	cfg.pause = pause;
	return restart(port, &cfg);
}

void ixdp_config_get(const struct ixdp_port *port, struct ixdp_config *cfg) { *cfg = port->cfg; }

const char *ixdp_port_name(const struct ixdp_port *port) { return port->bus->name; }

struct ixdp_pool *ixdp_port_pool(const struct ixdp_port *port) {
	return port->pool;
}

int ixdp_wire_stats_get(struct ixdp_port *port, struct ixdp_wire_stats *stats) {
	if (!port->bus->ops->wire_stats)
		return ixdp_fail(ENOTSUP, "%s: the wire of a card cannot be seen", port->bus->name);
	return port->bus->ops->wire_stats(port->bus, stats);
}

int ixdp_wire_stop(struct ixdp_port *port) {
	if (!port->bus->ops->wire_stop)
		return ixdp_fail(ENOTSUP, "%s: a card's wire cannot be stopped", port->bus->name);
	return port->bus->ops->wire_stop(port->bus);
}
