/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers that nobody uses are plain pointers on a stack which all threads of a pool share, and in
 * a small cache of each thread in front of it.
 */
#include "pool.h"
#include "base/error.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	CACHE_LINE = 64,
	MAX_POOLS = 16,
	MAX_BUFFERS = 1 << 22, /* of a pool: 9.3 GiB */
	MAX_THREADS = 128,     /* that have a cache; any further one uses the shared stack */
	CACHE_SIZE = 3 * POOL_CHUNK,
	HALF_CHUNK = POOL_CHUNK / 2,
	BUFFERS_PER_PAGE = DMA_HUGE_PAGE / IXDP_BUFFER_STRIDE, /* none lies in two of them */
	LOCK_SPINS = 1000,
};

static_assert(IXDP_HEADROOM + IXDP_DATA_SIZE <= IXDP_BUFFER_STRIDE, "a buffer fits its stride");
static_assert(IXDP_BUFFER_STRIDE / CACHE_LINE % 2 == 1, "an odd number of cache lines");

/* Only its thread changes a cache. Others read the count: it is atomic, without any order. */
struct thread_cache {
	alignas(CACHE_LINE) atomic_uint count;
	alignas(CACHE_LINE) uint8_t *bufs[CACHE_SIZE];
};

struct ixdp_pool {
	/* The count of cache[0] is UINT32_MAX: no chunk comes out or goes in. */
	struct thread_cache cache[MAX_THREADS + 1];
	struct dma_mem *mem;
	unsigned buffers;
	unsigned slot;	       /* of pools[] */
	atomic_uint committed; /* buffers that its ports may hold */
	atomic_ullong bad_frees;
	_Atomic uint8_t *owner; /* enum buffer_owner by buffer number; debug builds only */

	alignas(CACHE_LINE) atomic_flag lock; /* of the shared stack: */
	atomic_uint count;		      /* which statistics read without it */
	uint8_t *stack[];
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static struct ixdp_pool *pools[MAX_POOLS];
static bool cache_used[MAX_THREADS + 1];
static pthread_key_t thread_key; /* its destructor runs when a thread ends */
static bool thread_key_exists;

/*
 * Where in every pool the running thread's cache is, in bytes: an index would be multiplied each
 * time. 0: cache[0], which stands for none. In a shared library too this shall be one load.
 */
static _Thread_local size_t cache_at __attribute__((tls_model("initial-exec")));

static inline struct thread_cache *own_cache(struct ixdp_pool *pool) {
	return (struct thread_cache *)((uint8_t *)pool->cache + cache_at);
}

static inline unsigned load(const atomic_uint *n) {
	return atomic_load_explicit(n, memory_order_relaxed);
}

static inline void store(atomic_uint *n, unsigned value) {
	atomic_store_explicit(n, value, memory_order_relaxed);
}

static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

/* A holder who does not let go may have been preempted: let it run. */
static void lock_shared(struct ixdp_pool *pool) {
	for (unsigned spins = 1; atomic_flag_test_and_set(&pool->lock); spins++)
		if (spins % LOCK_SPINS == 0) sched_yield();
}

static unsigned shared_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n) {
	lock_shared(pool);
	n = min(n, load(&pool->count));
	store(&pool->count, load(&pool->count) - n);
	memcpy(bufs, pool->stack + load(&pool->count), n * sizeof(*bufs));
	atomic_flag_clear_explicit(&pool->lock, memory_order_release);
	return n;
}

static void shared_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n) {
	lock_shared(pool);
	memcpy(pool->stack + load(&pool->count), bufs, n * sizeof(*bufs));
	store(&pool->count, load(&pool->count) + n);
	atomic_flag_clear_explicit(&pool->lock, memory_order_release);
}

void pool_flush(struct ixdp_pool *pool) {
	if (!cache_at) return;
	struct thread_cache *cache = own_cache(pool);
	shared_give(pool, cache->bufs, load(&cache->count));
	store(&cache->count, 0);
}

/* The running thread ends: what is in its caches goes back, they to the next thread. */
static void end_thread(void *unused) {
	(void)unused;
	pthread_mutex_lock(&table_lock);
	for (unsigned i = 0; i < MAX_POOLS; i++)
		if (pools[i]) pool_flush(pools[i]);
	cache_used[cache_at / sizeof(struct thread_cache)] = false;
	pthread_mutex_unlock(&table_lock);
	cache_at = 0; /* other destructors may still free packets */
}

/* Whether the running thread has caches; it gets those that no other has, if any are left. */
static bool need_cache(void) {
	unsigned i = 1;
	if (cache_at) return true;
	pthread_mutex_lock(&table_lock);
	if (!thread_key_exists)
		thread_key_exists = pthread_key_create(&thread_key, end_thread) == 0;
	while (i <= MAX_THREADS && cache_used[i])
		i++;
	if (i <= MAX_THREADS && thread_key_exists && pthread_setspecific(thread_key, pools) == 0) {
		cache_used[i] = true;
		cache_at = i * sizeof(struct thread_cache);
	}
	pthread_mutex_unlock(&table_lock);
	return cache_at;
}

/* What the hot path leaves over; out of line, lest the registers for it be saved there. */
static __attribute__((noinline)) unsigned take_some(struct ixdp_pool *pool, uint8_t **bufs,
						    unsigned n) {
	if (!need_cache()) return shared_take(pool, bufs, n);
	struct thread_cache *cache = own_cache(pool);
	unsigned count = load(&cache->count);
	if (count < min(n, POOL_CHUNK)) count += shared_take(pool, cache->bufs + count, POOL_CHUNK);
	unsigned part = min(n, count);
	memcpy(bufs, cache->bufs + count - part, part * sizeof(*bufs));
	store(&cache->count, count - part);
	return part < n ? part + shared_take(pool, bufs + part, n - part) : n;
}

static __attribute__((noinline)) void give_some(struct ixdp_pool *pool, uint8_t *const *bufs,
						unsigned n) {
	if (n > POOL_CHUNK || !need_cache()) {
		shared_give(pool, bufs, n);
		return;
	}
	struct thread_cache *cache = own_cache(pool);
	unsigned count = load(&cache->count);
	if (count > CACHE_SIZE - n) {
		count -= POOL_CHUNK;
		shared_give(pool, cache->bufs + count, POOL_CHUNK);
	}
	memcpy(cache->bufs + count, bufs, n * sizeof(*bufs));
	store(&cache->count, count + n);
}

/* In halves: of 256 bytes at once some compilers make a call. */
static inline void copy_chunk(uint8_t **to, uint8_t *const *from) {
	memcpy(to, from, HALF_CHUNK * sizeof(*to));
	memcpy(to + HALF_CHUNK, from + HALF_CHUNK, HALF_CHUNK * sizeof(*to));
}

unsigned pool_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n, enum buffer_owner to) {
	struct thread_cache *cache = own_cache(pool);
	unsigned rest = load(&cache->count) - POOL_CHUNK;
	if (likely(n == POOL_CHUNK && rest <= CACHE_SIZE - POOL_CHUNK)) {
		copy_chunk(bufs, cache->bufs + rest);
		store(&cache->count, rest);
	} else {
		n = take_some(pool, bufs, n);
	}
	for (unsigned i = 0; i < n; i++)
		pool_handover(pool, bufs[i], OWNER_POOL, to);
	return n;
}

static inline void give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n) {
	struct thread_cache *cache = own_cache(pool);
	unsigned count = load(&cache->count);
	if (likely(n == POOL_CHUNK && count <= CACHE_SIZE - POOL_CHUNK)) {
		copy_chunk(cache->bufs + count, bufs);
		store(&cache->count, count + POOL_CHUNK);
	} else {
		give_some(pool, bufs, n);
	}
}

void pool_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n, enum buffer_owner from) {
	for (unsigned i = 0; i < n; i++)
		if (!pool_handover(pool, bufs[i], from, OWNER_POOL)) { /* it stays where it is */
			give(pool, bufs, i);
			pool_give(pool, bufs + i + 1, n - i - 1, from);
			return;
		}
	give(pool, bufs, n);
}

int ixdp_alloc(struct ixdp_pool *pool, struct ixdp_pkt *pkts, unsigned n) {
	uint8_t *bufs[POOL_CHUNK];
	unsigned done = 0, got = POOL_CHUNK;
	for (; done < n && got == POOL_CHUNK; done += got) { /* a lesser chunk is the last */
		struct ixdp_pkt *pkt = pkts + done;
		got = pool_take(pool, bufs, min(n - done, POOL_CHUNK), OWNER_CALLER);
		for (unsigned i = 0; i < got; i++)
			*pkt++ = (struct ixdp_pkt){bufs[i] + IXDP_HEADROOM, 0, IXDP_HEADROOM, 0};
	}
	return (int)done;
}

void ixdp_free(struct ixdp_pool *pool, const struct ixdp_pkt *pkts, unsigned n) {
	uint8_t *bufs[POOL_CHUNK];
	for (unsigned part; n; n -= part, pkts += part) {
		part = min(n, POOL_CHUNK);
		for (unsigned i = 0; i < part; i++)
			bufs[i] = ixdp_pkt_buffer(&pkts[i]);
		pool_give(pool, bufs, part, OWNER_CALLER);
	}
}

static uint8_t *buffer(const struct ixdp_pool *pool, size_t number) {
	return pool->mem->addr + number / BUFFERS_PER_PAGE * DMA_HUGE_PAGE +
	       number % BUFFERS_PER_PAGE * IXDP_BUFFER_STRIDE;
}

#ifdef IXDP_DEBUG
bool pool_handover(struct ixdp_pool *pool, const uint8_t *buf, enum buffer_owner from,
		   enum buffer_owner to) {
	static const char *const names[] = {"the pool", "the caller", "a ring"};
	size_t offset = (uintptr_t)buf - (uintptr_t)pool->mem->addr;
	size_t number =
	    offset / DMA_HUGE_PAGE * BUFFERS_PER_PAGE + offset % DMA_HUGE_PAGE / IXDP_BUFFER_STRIDE;
	uint8_t owner = (uint8_t)from;
	if (number >= pool->buffers || buf != buffer(pool, number))
		ixdp_log(IXDP_LOG_ERROR, "pool: %p is no buffer of this pool; %s gave it to %s",
			 (const void *)buf, names[from], names[to]);
	else if (!atomic_compare_exchange_strong(&pool->owner[number], &owner, (uint8_t)to))
		ixdp_log(IXDP_LOG_ERROR, "pool: buffer %zu is with %s, but %s gave it to %s",
			 number, names[owner], names[from], names[to]);
	else
		return true;
	atomic_fetch_add(&pool->bad_frees, 1);
	return false;
}
#endif

static void delete_pool(struct ixdp_pool *pool) {
	if (pool->mem) dma_free(pool->mem);
	free(pool);
}

int ixdp_pool_create(struct ixdp_pool **out, const struct ixdp_pool_config *cfg) {
	const size_t n = cfg->buffers, pages = (n + BUFFERS_PER_PAGE - 1) / BUFFERS_PER_PAGE;
	const size_t size = sizeof(struct ixdp_pool) + n * sizeof(uint8_t *) + n;
	if (n < 1 || n > MAX_BUFFERS)
		return ixdp_fail(EINVAL, "pool of %zu buffers: must be 1 to %u", n, MAX_BUFFERS);
	struct ixdp_pool *pool =
	    aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (!pool) return ixdp_fail(ENOMEM, "pool of %zu buffers: out of memory", n);
	memset(pool, 0, size);
	pool->buffers = cfg->buffers;
	pool->owner = (_Atomic uint8_t *)(pool->stack + n);
	store(&pool->cache[0].count, UINT32_MAX);
	int err = dma_alloc(&pool->mem, pages * DMA_HUGE_PAGE, cfg->numa_node, cfg->ordinary_pages);
	for (; !err && pool->count < n; pool->count++) /* the first to be taken comes last */
		pool->stack[pool->count] = buffer(pool, n - 1 - pool->count);

	pthread_mutex_lock(&table_lock);
	while (pool->slot < MAX_POOLS && pools[pool->slot])
		pool->slot++;
	if (!err && pool->slot == MAX_POOLS)
		err = ixdp_fail(EMFILE, "there are %u pools: destroy one first", MAX_POOLS);
	if (!err) pools[pool->slot] = *out = pool;
	pthread_mutex_unlock(&table_lock);
	if (err) delete_pool(pool);
	return err;
}

int ixdp_pool_destroy(struct ixdp_pool *pool) {
	struct ixdp_pool_stats stats;
	int err = 0;
	pthread_mutex_lock(&table_lock); /* no ending thread is half-way with its cache */
	ixdp_pool_get_stats(pool, &stats);
	if (stats.committed)
		err = ixdp_fail(EBUSY, "pool: ports still use it: close them first");
	else if (stats.available != stats.buffers)
		err =
		    ixdp_fail(EBUSY, "pool: %u of its %u buffers are with callers: free them first",
			      stats.buffers - stats.available, stats.buffers);
	else
		pools[pool->slot] = NULL;
	pthread_mutex_unlock(&table_lock);
	if (!err) delete_pool(pool);
	return err;
}

void ixdp_pool_get_stats(const struct ixdp_pool *pool, struct ixdp_pool_stats *stats) {
	*stats = (struct ixdp_pool_stats){
	    .buffers = pool->buffers,
	    .committed = load(&pool->committed),
	    .bad_frees = pool->bad_frees,
	    .huge_pages = pool->mem->huge,
	};
	for (unsigned i = 1; i <= MAX_THREADS; i++)
		stats->cached += load(&pool->cache[i].count);
	stats->available = stats->cached + load(&pool->count);
}

struct dma_mem *pool_mem(struct ixdp_pool *pool) {
	return pool->mem;
}

int pool_commit(struct ixdp_pool *pool, unsigned needed, const char *port) {
	unsigned others = load(&pool->committed);
	while (needed <= pool->buffers - others)
		if (atomic_compare_exchange_weak(&pool->committed, &others, others + needed))
			return 0;
	return ixdp_fail(ENOBUFS,
			 "%s: needs %u packet buffers, but its pool has %u, of which other ports "
			 "need %u: give it a pool of at least %u, or smaller rings",
			 port, needed, pool->buffers, others, others + needed);
}

void pool_release(struct ixdp_pool *pool, unsigned needed) {
	atomic_fetch_sub(&pool->committed, needed);
}

static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER; /* of these: */
static struct ixdp_pool *default_pool;
static unsigned default_users;

int pool_default(struct ixdp_pool **pool, unsigned needed, int numa_node, bool ordinary) {
	const struct ixdp_pool_config cfg = {2 * needed, numa_node, ordinary};
	pthread_mutex_lock(&default_lock);
	int err = default_users ? 0 : ixdp_pool_create(&default_pool, &cfg);
	if (!err) {
		default_users++;
		*pool = default_pool;
	}
	pthread_mutex_unlock(&default_lock);
	return err;
}

void pool_default_put(struct ixdp_pool *pool) {
	pthread_mutex_lock(&default_lock);
	if (--default_users == 0 && ixdp_pool_destroy(pool))
		ixdp_log(IXDP_LOG_WARNING, "%s; then call ixdp_pool_destroy()", ixdp_error());
	pthread_mutex_unlock(&default_lock);
}
