/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools from the inside: what rings take from and give to, as bare pointers. */
#pragma once

#include <ixdp/packet.h>

#include "dma.h"

/* Pointers moved at once between a ring and a thread's cache, or a cache and the shared stack. */
enum { POOL_CHUNK = 32 };

/* Who has a buffer. Release builds do not keep track of it. */
enum buffer_owner { OWNER_POOL, OWNER_CALLER, OWNER_RING };

/*
 * Takes up to n buffers (their first bytes) for a new owner, and returns how many; gives n back,
 * which `from` had until now. Any thread. Fast for n = POOL_CHUNK: a copy.
 */
unsigned pool_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n, enum buffer_owner to);
void pool_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n, enum buffer_owner from);

/*
 * In debug builds (IXDP_DEBUG): hands a buffer from one owner to another outside the pool; false,
 * with a log line naming buffer and owners, when it was not from's or not this pool's.
 */
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

/*
 * A port promises itself `needed` buffers, until pool_release(). -ENOBUFS with ixdp_error() when
 * the pool is smaller than what its ports need together.
 */
int pool_commit(struct ixdp_pool *pool, unsigned needed, const char *port);
void pool_release(struct ixdp_pool *pool, unsigned needed);

/* Moves the calling thread's cache to the shared stack. */
void pool_flush(struct ixdp_pool *pool);

/*
 * The pool that ports share which were given none: made at first use, for `needed` and as much
 * again, on ordinary pages only if `ordinary`; gone when the last has put it back, unless callers
 * still have buffers of it: a log line then leaves it to them.
 */
int pool_default(struct ixdp_pool **pool, unsigned needed, int numa_node, bool ordinary);
void pool_default_put(struct ixdp_pool *pool);
