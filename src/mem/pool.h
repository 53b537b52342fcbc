/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools from the inside: what rings take from and give to, as bare pointers. */
#pragma once

#include <ixdp/packet.h>

#include "dma.h"

/* Pointers moved at once between a ring and a thread's cache, or a cache and the shared stack. */
enum { POOL_CHUNK = 32 };

/* Who has a buffer. Release builds do not keep track of it. */
enum buffer_owner { OWNER_POOL, OWNER_CALLER, OWNER_RING };

/* Takes up to n buffers for a new owner; gives n back. Any thread; n = POOL_CHUNK is a copy. */
unsigned pool_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n, enum buffer_owner to);
void pool_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n, enum buffer_owner from);

/* From one owner to another outside the pool; false and a log line: not from's, or no buffer. */
#ifdef IXDP_DEBUG
bool pool_handover(struct ixdp_pool *pool, const uint8_t *buf, enum buffer_owner from,
		   enum buffer_owner to);
#else
static inline bool pool_handover(struct ixdp_pool *pool, const uint8_t *buf, enum buffer_owner from,
				 enum buffer_owner to) {
	(void)pool, (void)buf, (void)from, (void)to;
	return true;
}
#endif

/* What all its buffers lie in, for mapping. */
struct dma_mem *pool_mem(struct ixdp_pool *pool);

/* Promises a port buffers, until pool_release(). -ENOBUFS: its ports together need more. */
int pool_commit(struct ixdp_pool *pool, unsigned needed, const char *port);
void pool_release(struct ixdp_pool *pool, unsigned needed);

/* Moves the calling thread's cache to the shared stack. */
void pool_flush(struct ixdp_pool *pool);

/*
 * The pool that ports share which were given none: made at first use, twice as large as `needed`;
 * gone when the last has put it back, unless callers still have buffers of it.
 */
int pool_default(struct ixdp_pool **pool, unsigned needed, int numa_node, bool ordinary);
void pool_default_put(struct ixdp_pool *pool);
