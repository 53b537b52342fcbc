/* SPDX-License-Identifier: BSD-3-Clause */
/* What pool.c (buffers coming and going) and pool_setup.c (pools coming and going) share. */
#pragma once

#include "pool.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

enum {
	POOL_THREADS = 128, /* that have a cache, less one; any further one uses the shared stack */
	POOL_CACHE_SIZE = 3 * POOL_CHUNK,
	POOL_BUFFERS_PER_PAGE = DMA_HUGE_PAGE / IXDP_BUFFER_STRIDE, /* none lies in two of them */
};

/*
 * What a thread takes from and gives to. Only that thread changes it; others read the count, which
 * therefore is atomic, without any order.
 */
struct pool_cache {
	alignas(64) atomic_uint count;
	alignas(64) uint8_t *bufs[POOL_CACHE_SIZE];
};

/* Stands where a thread has no cache: with its count a chunk neither comes out nor goes in. */
extern struct pool_cache pool_no_cache;

struct ixdp_pool {
	struct pool_cache *_Atomic cache[POOL_THREADS]; /* by index of the thread */
	struct dma_mem *mem;
	unsigned buffers;
	unsigned users;	       /* open ports, and references to the default pool */
	atomic_uint committed; /* buffers that these may hold */
	atomic_ullong bad_frees;
	_Atomic uint8_t *owner; /* enum buffer_owner by buffer number; debug builds only */

	alignas(64) pthread_spinlock_t lock; /* of the shared stack: */
	atomic_uint count;		     /* which statistics read without the lock */
	uint8_t **stack;
};

/* Moves the cache of a thread, which is the running one, or has ended, to the shared stack. */
void pool_flush_thread(struct ixdp_pool *pool, unsigned index);

/* The same in all pools. */
void pool_flush_thread_everywhere(unsigned index);
