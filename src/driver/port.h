/* SPDX-License-Identifier: BSD-3-Clause */
/* A port from the inside: its rings, and how the rest of the driver touches registers. */
#pragma once

#include <ixdp/port.h>

#include <pthread.h>
#include <stdalign.h>

#include "../base/counter.h"
#include "../base/error.h"
#include "../bus/bus.h"
#include "../mem/pool.h"
#include "regs.h"

enum { ETHERNET_MAX = 14 + 4 }; /* bytes that a frame may have beyond the MTU: header, VLAN tag */
#define RING_COUNTER(name, what) uint64_t name;

/* Indices of rings run freely and are masked on use, so that differences are counts. */
struct rx_ring {
	/* ixdp_rx() once the queue is known, as the port's configuration wants it. */
	alignas(64) int (*receive)(struct rx_ring *ring, struct ixdp_pkt *pkts,
				   struct ixdp_rx_hash *hashes, unsigned n);
	struct desc *desc;
	uint8_t **buf;	   /* the buffer behind each descriptor */
	uint32_t mask;	   /* descriptors - 1 */
	uint32_t next;	   /* where the next frame will appear */
	uint32_t refill;   /* first descriptor that has no buffer */
	bool skipping;	   /* inside a frame that is too long */
	uint8_t elements;  /* of the longest frame */
	uint16_t longest;  /* bytes of a frame */
	unsigned offloads; /* IXDP_OFFLOAD_* */
	volatile uint32_t *doorbell;
	struct ixdp_pool *pool;
	struct iova_table iova; /* of the pool */
	const char *port;	/* name, for messages */

	/* Written by the queue's thread only (no_desc: by stats.c); read by ixdp_stats_get(). */
	IXDP_RX_QUEUE_STATS(RING_COUNTER)
};

struct tx_ring {
	/* ixdp_tx() once the queue is known. */
	alignas(64) int (*send)(struct tx_ring *ring, const struct ixdp_pkt *pkts, unsigned n);
	struct desc *desc;
	uint8_t **buf;	  /* the buffer behind each descriptor; NULL: a context descriptor */
	uint32_t mask;	  /* descriptors - 1 */
	uint32_t next;	  /* where the next packet goes */
	uint32_t clean;	  /* first descriptor whose buffer has not been taken back */
	bool contexts;	  /* there were context descriptors */
	uint8_t elements; /* that a frame may have */
	uint8_t report;	  /* RS stands on frames with a descriptor whose index has these bits */
	volatile uint32_t *doorbell;
	struct ixdp_pool *pool;
	struct iova_table iova;		  /* of the pool */
	const char *port;		  /* name, for messages */
	IXDP_TX_QUEUE_STATS(RING_COUNTER) /* as above */
#ifdef IXDP_DEBUG
	bool locks;	 /* several threads send: one at a time, */
	pthread_t owner; /* this one; 0: none */
#endif
};

/* When an RX queue was last seen to be polled. */
struct queue_watch {
	uint64_t moved, lost, since; /* what it had taken and lost then; ns */
	bool told;
};

/* Under stats_lock. Totals since open, and what ixdp_stats_clear() has made of them. */
struct port_stats {
	struct ixdp_stats raw; /* of registers, where stats.c puts them; it derives: */
	struct ixdp_stats shown, base;
	struct ixdp_rx_queue_stats rx_base[IXDP_MAX_RX_QUEUES];
	struct ixdp_tx_queue_stats tx_base[IXDP_MAX_TX_QUEUES];
	struct queue_watch watch[IXDP_MAX_RX_QUEUES];
	bool counting; /* since stats_init() */
	bool paused;
};

/* Accesses to registers that are one line, not logged yet. */
struct trace {
	const struct reg *reg; /* of trace.c; NULL: there are none */
	bool write;
	uint32_t n, value, fields; /* the first of an array; fields: bits to be shown by name */
	uint32_t step;		   /* 1: one after the other of it; 0: the same */
	unsigned times;
};

struct ixdp_port {
	struct rx_ring rx[IXDP_MAX_RX_QUEUES];
	struct tx_ring tx[IXDP_MAX_TX_QUEUES];
	struct ixdp_config cfg;
	struct ixdp_bus *bus;
	struct ixdp_pool *pool;
	unsigned committed;	  /* buffers that the pool has promised us */
	struct dma_mem *ring_mem; /* the descriptors of all rings */
	uint8_t **bufs;		  /* what all rings' buf point into */
	struct iova_table ring_iova;
	bool dma_on;	    /* the NIC may reach memory */
	bool listed;	    /* among the open ports: workers may know it */
	bool running;	    /* between start and stop; other workers look at it: */
	bool no_link;	    /* when somebody looked last */
	bool one_buffer;    /* frames must fit one, as long as a program is attached */
	struct xdp *xdp;    /* src/xdp; NULL: not open for XDP */
	unsigned tx_queues; /* those for XDP included */
	bool link_up;	    /* when ixdp_link_changed() looked last */

	/* What a reset makes the NIC forget. */
	struct ixdp_rss rss;
	uint8_t mac[1 + IXDP_MAX_UNICAST][6]; /* receive addresses; the first is the port's own */
	unsigned macs;			      /* 0: not read from the EEPROM yet */
	uint32_t fctrl;			      /* without what cfg.promiscuous adds */
	uint32_t vlnctrl, mcstctrl;
	uint32_t mta[REG_MTA_COUNT], vfta[REG_VFTA_COUNT];

	pthread_mutex_t stats_lock;
	struct port_stats stats;
	struct trace trace;
};

/*
 * port.c. Workers send to each other's ports (src/xdp): what these say holds until they leave XDP.
 * Before a port is closed or stopped, port_quiesce(), if any, waits for those that still rely on
 * it.
 */
bool port_is_open(const struct ixdp_port *port);
bool port_sends(const struct ixdp_port *port);
extern int (*port_quiesce)(void);
int port_no_queue(const struct ixdp_port *port, const char *kind, unsigned queue, unsigned have);

/* device.c: the NIC as a whole. 0 or -errno with ixdp_error(). */
int device_reset(struct ixdp_port *port);
int device_init(struct ixdp_port *port);
/* Changes what may only change while the NIC does not receive; nothing on a stopped port. */
int rx_paused(struct ixdp_port *port, void (*change)(struct ixdp_port *port));

/* trace.c: logs an access, or what is not logged yet. */
void trace_access(struct ixdp_port *port, bool write, uint32_t reg, uint32_t value);
void trace_flush(struct ixdp_port *port);

/* stats.c: after a reset; and before one, with all queues off, as it loses what the NIC counted. */
void stats_init(struct ixdp_port *port);
void stats_collect(struct ixdp_port *port);

void rss_write(struct ixdp_port *port); /* rss.c */
int rss_init(struct ixdp_port *port, const char *name, const struct ixdp_rss *rss);
int filters_init(struct ixdp_port *port); /* filter.c */
void filters_write(struct ixdp_port *port);
bool tx_context(const struct ixdp_pkt *pkt, unsigned len, struct desc *context,
		uint64_t *bits); /* offload.c */

/* rx.c, tx.c: rings begin stopped and empty, and are left so once the queue is disabled. */
void rx_ring_reset(struct rx_ring *ring);
int rx_ring_fill(struct rx_ring *ring);
void rx_ring_start(struct rx_ring *ring, const struct ixdp_config *cfg);
void rx_ring_empty(struct rx_ring *ring);
void tx_ring_start(struct tx_ring *ring, const struct ixdp_config *cfg);
void tx_ring_empty(struct tx_ring *ring);

static inline uint32_t reg_read(struct ixdp_port *port, uint32_t reg) {
	uint32_t value = port->bus->ops->read32(port->bus, reg);
	if (unlikely(log_debug)) trace_access(port, false, reg, value);
	return value;
}

static inline void reg_write(struct ixdp_port *port, uint32_t reg, uint32_t value) {
	if (unlikely(log_debug)) trace_access(port, true, reg, value);
	port->bus->ops->write32(port->bus, reg, value);
}

static inline void reg_set(struct ixdp_port *port, uint32_t reg, uint32_t bits) {
	reg_write(port, reg, reg_read(port, reg) | bits);
}

static inline void reg_clear(struct ixdp_port *port, uint32_t reg, uint32_t bits) {
	reg_write(port, reg, reg_read(port, reg) & ~bits);
}

static inline void delay_us(struct ixdp_port *port, unsigned us) {
	port->bus->ops->delay_us(port->bus, us);
}

/* Waits until all bits of mask are set (or clear). what: register and field, for -ETIMEDOUT. */
int reg_wait(struct ixdp_port *port, uint32_t reg, uint32_t mask, bool set, unsigned timeout_us,
	     const char *what);

/* Debug builds find who writes to a ring of several threads without holding its lock. */
#ifdef IXDP_DEBUG
static inline void tx_ring_locks(struct tx_ring *ring) { ring->locks = true; }
static inline void tx_ring_own(struct tx_ring *ring, bool on) {
	ring->owner = on ? pthread_self() : 0;
}
static inline void tx_ring_check(const struct tx_ring *ring) {
	if (ring->locks && !pthread_equal(ring->owner, pthread_self()))
		ixdp_log(IXDP_LOG_ERROR, "%s: TX ring written without its lock", ring->port);
}
#else
static inline void tx_ring_locks(struct tx_ring *ring) { (void)ring; }
static inline void tx_ring_own(struct tx_ring *ring, bool on) { (void)ring, (void)on; }
static inline void tx_ring_check(const struct tx_ring *ring) { (void)ring; }
#endif

/*
 * Tells the NIC how far it may go. Release: it must find the descriptors and packets written before
 * when it fetches them, its side of the pair, after it saw the tail. x86 keeps stores in order by
 * itself, to uncached memory too; Arm needs the outer shareable barrier towards a device.
 */
static inline void doorbell_ring(volatile uint32_t *doorbell, uint32_t tail) {
#if defined(__aarch64__)
	__asm__ volatile("dmb oshst" ::: "memory");
#endif
	__atomic_store_n(doorbell, htole32(tail), __ATOMIC_RELEASE);
}
