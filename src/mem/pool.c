/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers that nobody uses are plain pointers on a stack which all threads of a pool share, and in
 * a small cache of each thread in front of it.
 */
#include "base/error.h"
#include "pool_internal.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_SPINS = 1000 }; /* then the lock's holder may have been preempted: let it run */

struct pool_cache pool_no_cache = {.count = -1u};

/*
 * Index of the running thread, from 1; 0: it has none, so cache[0] is pool_no_cache for ever. In a
 * shared library too it shall be one load.
 */
static _Thread_local unsigned thread_index __attribute__((tls_model("initial-exec")));

static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	pthread_key_t key; /* its destructor runs when a thread ends */
	bool used[POOL_THREADS];
	atomic_uint left; /* saves threads that find no index the lock */
} indices = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .once = PTHREAD_ONCE_INIT,
    .left = POOL_THREADS - 1,
};

/* ---- The shared stack ---- */

static void lock_shared(struct ixdp_pool *pool)
{
	for (unsigned spins = 0; pthread_spin_trylock(&pool->lock);)
		if (++spins % LOCK_SPINS == 0)
			sched_yield();
}

static unsigned shared_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n)
{
	unsigned count;

	lock_shared(pool);
	count = atomic_load_explicit(&pool->count, memory_order_relaxed);
	if (n > count)
		n = count;
	count -= n;
	memcpy(bufs, pool->stack + count, n * sizeof(*bufs));
	atomic_store_explicit(&pool->count, count, memory_order_relaxed);
	pthread_spin_unlock(&pool->lock);
	return n;
}

static void shared_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n)
{
	unsigned count;

	lock_shared(pool);
	count = atomic_load_explicit(&pool->count, memory_order_relaxed);
	memcpy(pool->stack + count, bufs, n * sizeof(*bufs));
	atomic_store_explicit(&pool->count, count + n, memory_order_relaxed);
	pthread_spin_unlock(&pool->lock);
}

/* ---- Thread caches ---- */

void pool_flush_thread(struct ixdp_pool *pool, unsigned index)
{
	struct pool_cache *cache = atomic_load_explicit(&pool->cache[index], memory_order_relaxed);

	if (cache == &pool_no_cache)
		return;
	shared_give(pool, cache->bufs, atomic_load_explicit(&cache->count, memory_order_relaxed));
	atomic_store_explicit(&cache->count, 0, memory_order_relaxed);
}

/* The running thread ends: its caches go back, its index to the next thread. */
static void end_thread(void *unused)
{
	(void)unused;
	pool_flush_thread_everywhere(thread_index);
	pthread_mutex_lock(&indices.lock);
	indices.used[thread_index] = false;
	atomic_fetch_add(&indices.left, 1);
	pthread_mutex_unlock(&indices.lock);
	thread_index = 0;
}

static void create_key(void)
{
	if (pthread_key_create(&indices.key, end_thread))
		atomic_store(&indices.left, 0); /* without it nobody may have a cache */
}

static void begin_thread(void)
{
	unsigned index = 1;

	pthread_once(&indices.once, create_key);
	if (!atomic_load_explicit(&indices.left, memory_order_relaxed))
		return;
	pthread_mutex_lock(&indices.lock);
	while (index < POOL_THREADS && indices.used[index])
		index++;
	if (index < POOL_THREADS && pthread_setspecific(indices.key, &indices) == 0) {
		indices.used[index] = true;
		atomic_fetch_sub(&indices.left, 1);
		thread_index = index;
	}
	pthread_mutex_unlock(&indices.lock);
}

/* The running thread's cache, made at its first use; NULL when it cannot have one. */
static struct pool_cache *own_cache(struct ixdp_pool *pool)
{
	struct pool_cache *cache;

	if (!thread_index)
		begin_thread();
	cache = atomic_load_explicit(&pool->cache[thread_index], memory_order_relaxed);
	if (cache != &pool_no_cache)
		return cache;
	if (!thread_index)
		return NULL;
	cache = aligned_alloc(alignof(struct pool_cache), sizeof(*cache));
	if (!cache)
		return NULL;
	atomic_init(&cache->count, 0);
	atomic_store_explicit(&pool->cache[thread_index], cache, memory_order_release);
	return cache;
}

static inline unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * What the hot path leaves over. Out of line, lest the registers that these need be saved and
 * restored there.
 */
static __attribute__((noinline)) unsigned take_some(struct ixdp_pool *pool, uint8_t **bufs,
						    unsigned n)
{
	struct pool_cache *cache = own_cache(pool);
	unsigned taken = 0;

	if (!cache)
		return shared_take(pool, bufs, n);
	while (taken < n) {
		unsigned count = atomic_load_explicit(&cache->count, memory_order_relaxed);
		if (!count)
			count = shared_take(pool, cache->bufs, POOL_CHUNK);
		if (!count)
			break;
		unsigned part = min(n - taken, count);
		memcpy(bufs + taken, cache->bufs + count - part, part * sizeof(*bufs));
		atomic_store_explicit(&cache->count, count - part, memory_order_relaxed);
		taken += part;
	}
	return taken;
}

static __attribute__((noinline)) void give_some(struct ixdp_pool *pool, uint8_t *const *bufs,
						unsigned n)
{
	struct pool_cache *cache = own_cache(pool);

	if (!cache) {
		shared_give(pool, bufs, n);
		return;
	}
	while (n) {
		unsigned count = atomic_load_explicit(&cache->count, memory_order_relaxed);
		if (count == POOL_CACHE_SIZE) {
			count -= POOL_CHUNK;
			shared_give(pool, cache->bufs + count, POOL_CHUNK);
		}
		unsigned part = min(n, POOL_CACHE_SIZE - count);
		memcpy(cache->bufs + count, bufs, part * sizeof(*bufs));
		atomic_store_explicit(&cache->count, count + part, memory_order_relaxed);
		bufs += part;
		n -= part;
	}
}

/* The hot path: for a chunk one comparison and a copy of constant size. */
static inline unsigned take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n)
{
	struct pool_cache *cache =
	    atomic_load_explicit(&pool->cache[thread_index], memory_order_relaxed);
	unsigned rest = atomic_load_explicit(&cache->count, memory_order_relaxed) - POOL_CHUNK;

	if (unlikely(n != POOL_CHUNK || rest > POOL_CACHE_SIZE - POOL_CHUNK))
		return take_some(pool, bufs, n);
	memcpy(bufs, cache->bufs + rest, POOL_CHUNK * sizeof(*bufs));
	atomic_store_explicit(&cache->count, rest, memory_order_relaxed);
	return POOL_CHUNK;
}

static inline void give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n)
{
	struct pool_cache *cache =
	    atomic_load_explicit(&pool->cache[thread_index], memory_order_relaxed);
	unsigned count = atomic_load_explicit(&cache->count, memory_order_relaxed);

	if (unlikely(n != POOL_CHUNK || count > POOL_CACHE_SIZE - POOL_CHUNK)) {
		give_some(pool, bufs, n);
		return;
	}
	memcpy(cache->bufs + count, bufs, POOL_CHUNK * sizeof(*bufs));
	atomic_store_explicit(&cache->count, count + POOL_CHUNK, memory_order_relaxed);
}

void pool_flush(struct ixdp_pool *pool)
{
	pool_flush_thread(pool, thread_index);
}

/* ---- Taking and giving; in a debug build every buffer's owner is followed ---- */

#ifdef IXDP_DEBUG

bool pool_handover(struct ixdp_pool *pool, const uint8_t *buf, enum buffer_owner from,
		   enum buffer_owner to)
{
	static const char *const names[] = {
	    [OWNER_POOL] = "the pool",
	    [OWNER_CALLER] = "the caller",
	    [OWNER_RING] = "a ring",
	};
	size_t offset = (uintptr_t)buf - (uintptr_t)pool->mem->addr;
	size_t page = offset / DMA_HUGE_PAGE, in_page = offset % DMA_HUGE_PAGE;
	size_t number = page * POOL_BUFFERS_PER_PAGE + in_page / IXDP_BUFFER_STRIDE;
	uint8_t owner = (uint8_t)from;

	if (in_page % IXDP_BUFFER_STRIDE || in_page / IXDP_BUFFER_STRIDE >= POOL_BUFFERS_PER_PAGE ||
	    number >= pool->buffers) {
		ixdp_log(IXDP_LOG_ERROR, "pool: %p is no buffer of this pool; %s gave it to %s",
			 (const void *)buf, names[from], names[to]);
	} else if (!atomic_compare_exchange_strong(&pool->owner[number], &owner, (uint8_t)to)) {
		ixdp_log(IXDP_LOG_ERROR, "pool: buffer %zu is with %s, but %s gave it to %s",
			 number, names[owner], names[from], names[to]);
	} else {
		return true;
	}
	atomic_fetch_add(&pool->bad_frees, 1);
	return false;
}

unsigned pool_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n, enum buffer_owner to)
{
	n = take(pool, bufs, n);
	for (unsigned i = 0; i < n; i++)
		pool_handover(pool, bufs[i], OWNER_POOL, to);
	return n;
}

void pool_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n, enum buffer_owner from)
{
	uint8_t *good[POOL_CHUNK];
	unsigned goods = 0;

	for (unsigned i = 0; i < n; i++) {
		if (pool_handover(pool, bufs[i], from, OWNER_POOL))
			good[goods++] = bufs[i];
		if (goods == POOL_CHUNK || i == n - 1) {
			give(pool, good, goods);
			goods = 0;
		}
	}
}

#else

unsigned pool_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n, enum buffer_owner to)
{
	(void)to;
	return take(pool, bufs, n);
}

void pool_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n, enum buffer_owner from)
{
	(void)from;
	give(pool, bufs, n);
}

#endif

int ixdp_alloc(struct ixdp_pool *pool, struct ixdp_pkt *pkts, unsigned n)
{
	uint8_t *bufs[POOL_CHUNK];
	unsigned done = 0;

	while (done < n) {
		unsigned wanted = min(n - done, POOL_CHUNK);
		unsigned got = pool_take(pool, bufs, wanted, OWNER_CALLER);
		for (unsigned i = 0; i < got; i++)
			pkts[done + i] = (struct ixdp_pkt){.data = bufs[i] + IXDP_HEADROOM,
							   .headroom = IXDP_HEADROOM};
		done += got;
		if (got < wanted)
			break;
	}
	return (int)done;
}

void ixdp_free(struct ixdp_pool *pool, const struct ixdp_pkt *pkts, unsigned n)
{
	uint8_t *bufs[POOL_CHUNK];

	while (n) {
		unsigned part = min(n, POOL_CHUNK);
		for (unsigned i = 0; i < part; i++)
			bufs[i] = ixdp_pkt_buffer(&pkts[i]);
		pool_give(pool, bufs, part, OWNER_CALLER);
		pkts += part;
		n -= part;
	}
}
