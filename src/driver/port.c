/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing: what ixdp_open() acquires, in order, ixdp_close() releases in reverse. */
#include "port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Buffers that one thread may keep from the others: its cache of the pool, and a batch in its
 * hands. */
enum { BUFFERS_PER_THREAD = 3 * POOL_CHUNK + 256 };

void ixdp_config_init(struct ixdp_config *cfg) {
	*cfg = (struct ixdp_config){
	    .rx_queues = 1,
	    .tx_queues = 1,
	    .rx_ring = 512,
	    .tx_ring = 512,
	    .promiscuous = true,
	};
}

unsigned ixdp_pool_needed(const struct ixdp_config *cfg) {
	unsigned threads = cfg->rx_queues > cfg->tx_queues ? cfg->rx_queues : cfg->tx_queues;

	return cfg->rx_queues * cfg->rx_ring + cfg->tx_queues * cfg->tx_ring +
	       threads * BUFFERS_PER_THREAD;
}

static int check_ring(const char *name, const char *which, unsigned size) {
	if (size >= IXDP_MIN_RING && size <= IXDP_MAX_RING && (size & (size - 1)) == 0)
		return 0;
	/* Powers of two: an index is masked, not divided. */
	return ixdp_fail(EINVAL, "%s: %s of %u descriptors: must be a power of two from %d to %d",
			 name, which, size, IXDP_MIN_RING, IXDP_MAX_RING);
}

static int check_config(const char *name, const struct ixdp_config *cfg) {
	int err;

	if (cfg->rx_queues > IXDP_MAX_RX_QUEUES || cfg->tx_queues > IXDP_MAX_TX_QUEUES)
		return ixdp_fail(EINVAL, "%s: %u RX and %u TX queues: there are at most %d and %d",
				 name, cfg->rx_queues, cfg->tx_queues, IXDP_MAX_RX_QUEUES,
				 IXDP_MAX_TX_QUEUES);
	if (cfg->rx_queues + cfg->tx_queues == 0)
		return ixdp_fail(EINVAL, "%s: a port without any queue can do nothing", name);
	err = check_ring(name, "RX ring", cfg->rx_ring);
	return err ? err : check_ring(name, "TX ring", cfg->tx_ring);
}

/* Memory for the descriptors of all rings. A ring never crosses a page: it is aligned to its size.
 */
static int alloc_descriptors(struct ixdp_port *port) {
	const struct ixdp_config *cfg = &port->cfg;
	size_t rx_size = cfg->rx_ring * sizeof(struct desc);
	size_t tx_size = cfg->tx_ring * sizeof(struct desc);
	bool rx_first = rx_size >= tx_size; /* the larger ones first keeps the others aligned */
	size_t rx_bytes = port->rx_queues * rx_size;
	size_t tx_bytes = port->tx_queues * tx_size;
	int err = dma_alloc(&port->ring_mem, rx_bytes + tx_bytes, port->bus->numa_node,
			    port->bus->ordinary_pages);

	if (err)
		return err;

	uint8_t *rx = port->ring_mem->addr + (rx_first ? 0 : tx_bytes);
	uint8_t *tx = port->ring_mem->addr + (rx_first ? rx_bytes : 0);

	for (unsigned q = 0; q < port->rx_queues; q++)
		port->rx[q].desc = (struct desc *)(rx + q * rx_size);
	for (unsigned q = 0; q < port->tx_queues; q++)
		port->tx[q].desc = (struct desc *)(tx + q * tx_size);
	err = port->bus->ops->dma_map(port->bus, port->ring_mem, &port->ring_iova);
	if (err) {
		dma_free(port->ring_mem);
		port->ring_mem = NULL;
	}
	return err;
}

/* A ring's own array of buffers, on cache lines of its own: another thread has the next ring. */
static uint8_t **alloc_buf_array(unsigned size) {
	return aligned_alloc(64, size * sizeof(uint8_t *));
}

/* Everything of the rings but the memory that the NIC sees. */
static int alloc_rings(struct ixdp_port *port) {
	const struct ixdp_config *cfg = &port->cfg;
	bool ok = true;

	port->rx = aligned_alloc(alignof(struct rx_ring), cfg->rx_queues * sizeof(*port->rx));
	port->tx = aligned_alloc(alignof(struct tx_ring), cfg->tx_queues * sizeof(*port->tx));
	if ((cfg->rx_queues > 0 && !port->rx) || (cfg->tx_queues > 0 && !port->tx))
		return ixdp_fail(ENOMEM, "%s: out of memory for %u rings", port->bus->name,
				 cfg->rx_queues + cfg->tx_queues);

	for (unsigned q = 0; q < cfg->rx_queues; q++) {
		port->rx[q] = (struct rx_ring){
		    .mask = cfg->rx_ring - 1,
		    .buf = alloc_buf_array(cfg->rx_ring),
		    .doorbell = port->bus->ops->doorbell(port->bus, REG_N(RDT, q)),
		};
		rx_ring_reset(&port->rx[q]);
		ok = ok && port->rx[q].buf;
	}
	port->rx_queues = cfg->rx_queues;
	for (unsigned q = 0; q < cfg->tx_queues; q++) {
		port->tx[q] = (struct tx_ring){
		    .mask = cfg->tx_ring - 1,
		    .buf = alloc_buf_array(cfg->tx_ring),
		    .doorbell = port->bus->ops->doorbell(port->bus, REG_N(TDT, q)),
		    .head_reg = REG_N(TDH, q),
		};
		ok = ok && port->tx[q].buf;
	}
	port->tx_queues = cfg->tx_queues;
	return ok ? 0
		  : ixdp_fail(ENOMEM, "%s: out of memory for %u rings", port->bus->name,
			      cfg->rx_queues + cfg->tx_queues);
}

static void free_rings(struct ixdp_port *port) {
	for (unsigned q = 0; q < port->rx_queues; q++)
		free(port->rx[q].buf);
	for (unsigned q = 0; q < port->tx_queues; q++)
		free(port->tx[q].buf);
	free(port->rx);
	free(port->tx);
}

/* The port's pool, promised what the port needs, and where the NIC sees its buffers. */
static int acquire_pool(struct ixdp_port *port) {
	struct ixdp_bus *bus = port->bus;
	unsigned needed = ixdp_pool_needed(&port->cfg);
	int err;

	port->pool = port->cfg.pool;
	if (!port->pool) {
		err = pool_default(&port->pool, needed, bus->numa_node, bus->ordinary_pages);
		if (err)
			return err;
	}
	err = pool_commit(port->pool, needed, bus->name);
	if (err)
		goto put;
	err = bus->ops->dma_map(bus, pool_mem(port->pool), &port->pool_iova);
	if (err)
		goto release;

	for (unsigned q = 0; q < port->rx_queues; q++) {
		port->rx[q].pool = port->pool;
		port->rx[q].iova = port->pool_iova;
	}
	for (unsigned q = 0; q < port->tx_queues; q++) {
		port->tx[q].pool = port->pool;
		port->tx[q].iova = port->pool_iova;
	}
	return 0;

release:
	pool_release(port->pool, needed);
put:
	if (!port->cfg.pool)
		pool_default_put(port->pool);
	return err;
}

static void release_pool(struct ixdp_port *port) {
	for (unsigned q = 0; q < port->rx_queues; q++)
		rx_ring_empty(&port->rx[q]);
	for (unsigned q = 0; q < port->tx_queues; q++)
		tx_ring_empty(&port->tx[q]);
	pool_flush(port->pool);
	port->bus->ops->dma_unmap(port->bus, pool_mem(port->pool));
	pool_release(port->pool, ixdp_pool_needed(&port->cfg));
	if (!port->cfg.pool)
		pool_default_put(port->pool);
}

static void release_descriptors(struct ixdp_port *port) {
	port->bus->ops->dma_unmap(port->bus, port->ring_mem);
	dma_free(port->ring_mem);
}

/*
 * The NIC can no longer touch our memory: it was reset, or at least lost its bus mastering. False
 * when neither worked; then nothing that it knows of may be given to anybody else.
 */
static bool silence(struct ixdp_port *port) {
	int stop_err = device_stop(port);

	if (stop_err)
		ixdp_log(IXDP_LOG_WARNING, "%s", ixdp_error());

	int dma_err = port->bus->ops->dma_enable(port->bus, false);

	if (dma_err)
		ixdp_log(IXDP_LOG_WARNING, "%s", ixdp_error());
	if (stop_err && dma_err)
		ixdp_log(IXDP_LOG_ERROR, "%s: cannot be stopped: its memory stays allocated",
			 port->bus->name);
	return !stop_err || !dma_err;
}

int ixdp_open(struct ixdp_port **out, const char *name, const struct ixdp_config *cfg) {
	struct ixdp_config defaults;
	struct ixdp_port *port;
	char why[512];
	int err;

	if (!cfg) {
		ixdp_config_init(&defaults);
		cfg = &defaults;
	}
	err = check_config(name, cfg);
	if (err)
		return err;
	port = calloc(1, sizeof(*port));
	if (!port)
		return ixdp_fail(ENOMEM, "%s: out of memory", name);
	port->cfg = *cfg;
	pthread_mutex_init(&port->stats_lock, NULL);

	err = bus_open(&port->bus, name, cfg->force);
	if (err)
		goto free_port;
	/*
	 * First of all the card must be quiet: it may still be writing for a process that died,
	 * into pages which only then can be had again.
	 */
	err = device_reset(port);
	if (err)
		goto close_bus;
	err = port->bus->ops->dma_enable(port->bus, true);
	if (err)
		goto close_bus;
	err = alloc_rings(port);
	if (err)
		goto free_rings;
	err = alloc_descriptors(port);
	if (err)
		goto free_rings;
	err = acquire_pool(port);
	if (err)
		goto free_descriptors;
	err = device_init(port);
	if (err)
		goto stop;
	*out = port;
	return 0;

	/* What the steps back have to say must not hide what failed. */
stop:
	snprintf(why, sizeof(why), "%s", ixdp_error());
	if (!silence(port))
		return ixdp_fail(-err, "%s", why);
	release_pool(port);
	ixdp_fail(-err, "%s", why);
free_descriptors:
	release_descriptors(port);
free_rings:
	port->bus->ops->dma_enable(port->bus, false);
	free_rings(port);
close_bus:
	port->bus->ops->close(port->bus);
free_port:
	pthread_mutex_destroy(&port->stats_lock);
	free(port);
	return err;
}

void ixdp_close(struct ixdp_port *port) {
	if (!port || !silence(port))
		return;
	release_pool(port);
	release_descriptors(port);
	free_rings(port);
	port->bus->ops->close(port->bus);
	pthread_mutex_destroy(&port->stats_lock);
	free(port);
}

const char *ixdp_port_name(const struct ixdp_port *port) {
	return port->bus->name;
}

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
		return ixdp_fail(ENOTSUP, "%s: the wire of a card has no source to stop",
				 port->bus->name);
	return port->bus->ops->wire_stop(port->bus);
}
