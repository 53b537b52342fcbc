/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers that nobody uses are plain pointers on a stack which all threads of a pool share, and in
 * a small cache of each thread in front of it.
 */
#include "pool.h"

#include "base/error.h"

#include <assert.h>
#include <errno.h>
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
	BUFFERS_PER_PAGE = DMA_HUGE_PAGE / IXDP_BUFFER_STRIDE, /* none lies in two of them */
	LOCK_SPINS = 1000, /* then the lock's holder may have been preempted: let it run */
};

static_assert(IXDP_HEADROOM + IXDP_DATA_SIZE <= IXDP_BUFFER_STRIDE, "a buffer fits its stride");
static_assert(IXDP_BUFFER_STRIDE / CACHE_LINE % 2 == 1, "an odd number of cache lines");

/*
 * What a thread takes from and gives to. Only that thread changes it; others read the count, which
 * therefore is atomic, without any order.
 */
struct thread_cache {
	alignas(CACHE_LINE) atomic_uint count;
	alignas(CACHE_LINE) uint8_t *bufs[CACHE_SIZE];
};

/* Stands where a thread has no cache: with this count a chunk neither comes out nor goes in. */
static struct thread_cache no_cache = {.count = UINT32_MAX};

struct ixdp_pool {
	struct thread_cache *_Atomic cache[MAX_THREADS + 1]; /* by thread_index */
	struct dma_mem *mem;
	unsigned buffers;
	unsigned ports;	       /* that use it; under registry.lock */
	atomic_uint committed; /* buffers that these may hold */
	atomic_ullong bad_frees;
	_Atomic uint8_t *owner; /* enum buffer_owner by buffer number; debug builds only */

	alignas(CACHE_LINE) pthread_spinlock_t lock; /* of the shared stack: */
	atomic_uint count;			     /* which statistics read without it */
	uint8_t **stack;
};

static struct {
	pthread_mutex_t lock;
	struct ixdp_pool *pools[MAX_POOLS];
	bool index_used[MAX_THREADS + 1]; /* by thread_index */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * Index of the running thread, from 1; 0: it has none, so cache[0] is no_cache for ever. In a
 * shared library too it shall be one load.
 */
static _Thread_local unsigned thread_index __attribute__((tls_model("initial-exec")));
static _Thread_local bool thread_known; /* has an index, or there was none for it */

static pthread_key_t thread_key; /* its destructor runs when a thread ends */
static bool thread_key_exists;

static inline unsigned load(const atomic_uint *n) {
	return atomic_load_explicit(n, memory_order_relaxed);
}

static inline void store(atomic_uint *n, unsigned value) {
	atomic_store_explicit(n, value, memory_order_relaxed);
}

static inline unsigned min(unsigned a, unsigned b) {
	return a < b ? a : b;
}

/* ---- The shared stack ---- */

static void lock_shared(struct ixdp_pool *pool) {
	for (unsigned spins = 0; pthread_spin_trylock(&pool->lock);)
		if (++spins % LOCK_SPINS == 0)
			sched_yield();
}

static unsigned shared_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n) {
	lock_shared(pool);
	n = min(n, load(&pool->count));
	store(&pool->count, load(&pool->count) - n);
	memcpy(bufs, pool->stack + load(&pool->count), n * sizeof(*bufs));
	pthread_spin_unlock(&pool->lock);
	return n;
}

static void shared_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n) {
	lock_shared(pool);
	memcpy(pool->stack + load(&pool->count), bufs, n * sizeof(*bufs));
	store(&pool->count, load(&pool->count) + n);
	pthread_spin_unlock(&pool->lock);
}

/* ---- Thread caches ---- */

void pool_flush(struct ixdp_pool *pool) {
	struct thread_cache *cache = pool->cache[thread_index];

	if (cache == &no_cache)
		return;
	shared_give(pool, cache->bufs, load(&cache->count));
	store(&cache->count, 0);
}

/* The running thread ends: its caches go back, its index to the next thread. */
static void end_thread(void *unused) {
	(void)unused;
	pthread_mutex_lock(&registry.lock);
	for (unsigned i = 0; i < MAX_POOLS; i++)
		if (registry.pools[i])
			pool_flush(registry.pools[i]);
	registry.index_used[thread_index] = false;
	pthread_mutex_unlock(&registry.lock);
	thread_index = 0;
	thread_known = false; /* other destructors may still free packets */
}

static void create_thread_key(void) {
	thread_key_exists = pthread_key_create(&thread_key, end_thread) == 0;
}

/* Finds an index for the running thread, if there is one left. */
static void begin_thread(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned index = 1;

	thread_known = true;
	pthread_once(&once, create_thread_key);
	pthread_mutex_lock(&registry.lock);
	while (index <= MAX_THREADS && registry.index_used[index])
		index++;
	if (index <= MAX_THREADS && thread_key_exists &&
	    pthread_setspecific(thread_key, &registry) == 0) {
		registry.index_used[index] = true;
		thread_index = index;
	}
	pthread_mutex_unlock(&registry.lock);
}

/* The running thread's cache, made at its first use; NULL when it cannot have one. */
static struct thread_cache *own_cache(struct ixdp_pool *pool) {
	struct thread_cache *cache;

	if (!thread_known)
		begin_thread();
	cache = pool->cache[thread_index];
	if (cache != &no_cache)
		return cache;
	cache = thread_index ? aligned_alloc(CACHE_LINE, sizeof(*cache)) : NULL;
	if (cache) {
		atomic_init(&cache->count, 0);
		pool->cache[thread_index] = cache;
	}
	return cache;
}

/*
 * What the hot path leaves over. Out of line, lest the registers that these need be saved and
 * restored there.
 */
static __attribute__((noinline)) unsigned take_some(struct ixdp_pool *pool, uint8_t **bufs,
						    unsigned n) {
	struct thread_cache *cache = own_cache(pool);
	unsigned taken = 0;

	if (!cache)
		return shared_take(pool, bufs, n);
	while (taken < n) {
		unsigned count = load(&cache->count);
		if (!count)
			count = shared_take(pool, cache->bufs, POOL_CHUNK);
		if (!count)
			break;
		unsigned part = min(n - taken, count);
		memcpy(bufs + taken, cache->bufs + count - part, part * sizeof(*bufs));
		store(&cache->count, count - part);
		taken += part;
	}
	return taken;
}

static __attribute__((noinline)) void give_some(struct ixdp_pool *pool, uint8_t *const *bufs,
						unsigned n) {
	struct thread_cache *cache = own_cache(pool);

	if (!cache) {
		shared_give(pool, bufs, n);
		return;
	}
	while (n) {
		unsigned count = load(&cache->count);
		if (count == CACHE_SIZE) {
			count -= POOL_CHUNK;
			shared_give(pool, cache->bufs + count, POOL_CHUNK);
		}
		unsigned part = min(n, CACHE_SIZE - count);
		memcpy(cache->bufs + count, bufs, part * sizeof(*bufs));
		store(&cache->count, count + part);
		bufs += part;
		n -= part;
	}
}

/* In halves: of one copy of 256 bytes some compilers make a call. */
static inline void copy_chunk(uint8_t **to, uint8_t *const *from) {
	enum { HALF = POOL_CHUNK / 2 };

	memcpy(to, from, HALF * sizeof(*to));
	memcpy(to + HALF, from + HALF, HALF * sizeof(*to));
}

/* The hot path: for a chunk one comparison and a copy of constant size. */
static inline unsigned take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n) {
	struct thread_cache *cache = pool->cache[thread_index];
	unsigned rest = load(&cache->count) - POOL_CHUNK;

	if (unlikely(n != POOL_CHUNK || rest > CACHE_SIZE - POOL_CHUNK))
		return take_some(pool, bufs, n);
	copy_chunk(bufs, cache->bufs + rest);
	store(&cache->count, rest);
	return POOL_CHUNK;
}

static inline void give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n) {
	struct thread_cache *cache = pool->cache[thread_index];
	unsigned count = load(&cache->count);

	if (unlikely(n != POOL_CHUNK || count > CACHE_SIZE - POOL_CHUNK)) {
		give_some(pool, bufs, n);
		return;
	}
	copy_chunk(cache->bufs + count, bufs);
	store(&cache->count, count + POOL_CHUNK);
}

/* ---- Taking and giving; in a debug build every buffer's owner is followed ---- */

#ifdef IXDP_DEBUG

bool pool_handover(struct ixdp_pool *pool, const uint8_t *buf, enum buffer_owner from,
		   enum buffer_owner to) {
	static const char *const names[] = {"the pool", "the caller", "a ring"};
	size_t offset = (uintptr_t)buf - (uintptr_t)pool->mem->addr;
	size_t in_page = offset % DMA_HUGE_PAGE / IXDP_BUFFER_STRIDE;
	size_t number = offset / DMA_HUGE_PAGE * BUFFERS_PER_PAGE + in_page;
	uint8_t owner = (uint8_t)from;

	if (offset % DMA_HUGE_PAGE % IXDP_BUFFER_STRIDE || in_page >= BUFFERS_PER_PAGE ||
	    number >= pool->buffers)
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

unsigned pool_take(struct ixdp_pool *pool, uint8_t **bufs, unsigned n, enum buffer_owner to) {
	n = take(pool, bufs, n);
	for (unsigned i = 0; i < n; i++)
		pool_handover(pool, bufs[i], OWNER_POOL, to);
	return n;
}

void pool_give(struct ixdp_pool *pool, uint8_t *const *bufs, unsigned n, enum buffer_owner from) {
#ifdef IXDP_DEBUG
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
#else
	(void)from;
	give(pool, bufs, n);
#endif
}

int ixdp_alloc(struct ixdp_pool *pool, struct ixdp_pkt *pkts, unsigned n) {
	uint8_t *bufs[POOL_CHUNK];
	unsigned done = 0, got = POOL_CHUNK;

	while (done < n && got == POOL_CHUNK) { /* a lesser chunk is the last, or the pool low */
		struct ixdp_pkt *pkt = pkts + done;
		got = pool_take(pool, bufs, min(n - done, POOL_CHUNK), OWNER_CALLER);
		for (unsigned i = 0; i < got; i++, pkt++) {
			pkt->data = bufs[i] + IXDP_HEADROOM;
			pkt->len = 0;
			pkt->headroom = IXDP_HEADROOM;
			pkt->flags = 0;
		}
		done += got;
	}
	return (int)done;
}

void ixdp_free(struct ixdp_pool *pool, const struct ixdp_pkt *pkts, unsigned n) {
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

/* ---- Pools come and go ---- */

static void delete_pool(struct ixdp_pool *pool) {
	for (unsigned i = 0; i <= MAX_THREADS; i++)
		if (pool->cache[i] != &no_cache)
			free(pool->cache[i]);
	if (pool->mem)
		dma_free(pool->mem);
	pthread_spin_destroy(&pool->lock);
	free((void *)pool->owner);
	free(pool->stack);
	free(pool);
}

/* A pool without memory; NULL when that is out. */
static struct ixdp_pool *new_pool(unsigned buffers) {
	struct ixdp_pool *pool = aligned_alloc(CACHE_LINE, sizeof(*pool));

	if (!pool)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	pool->buffers = buffers;
	for (unsigned i = 0; i <= MAX_THREADS; i++)
		atomic_init(&pool->cache[i], &no_cache);
	pthread_spin_init(&pool->lock, PTHREAD_PROCESS_PRIVATE);
	pool->stack = calloc(buffers, sizeof(*pool->stack));
	pool->owner = calloc(buffers, sizeof(*pool->owner));
	if (pool->stack && pool->owner)
		return pool;
	delete_pool(pool);
	return NULL;
}

static int register_pool(struct ixdp_pool *pool) {
	unsigned slot = 0;

	pthread_mutex_lock(&registry.lock);
	while (slot < MAX_POOLS && registry.pools[slot])
		slot++;
	if (slot < MAX_POOLS)
		registry.pools[slot] = pool;
	pthread_mutex_unlock(&registry.lock);
	if (slot == MAX_POOLS)
		return ixdp_fail(EMFILE, "this process has %u pools already: destroy one first",
				 MAX_POOLS);
	return 0;
}

int ixdp_pool_create(struct ixdp_pool **out, const struct ixdp_pool_config *cfg) {
	size_t pages = (cfg->buffers + BUFFERS_PER_PAGE - 1) / BUFFERS_PER_PAGE;
	struct ixdp_pool *pool;
	int err;

	if (cfg->buffers < 1 || cfg->buffers > MAX_BUFFERS)
		return ixdp_fail(EINVAL, "pool of %u buffers: must be 1 to %u", cfg->buffers,
				 MAX_BUFFERS);
	pool = new_pool(cfg->buffers);
	if (!pool)
		return ixdp_fail(ENOMEM, "pool of %u buffers: out of memory", cfg->buffers);
	err = dma_alloc(&pool->mem, pages * DMA_HUGE_PAGE, cfg->numa_node, cfg->ordinary_pages);
	if (!err)
		err = register_pool(pool);
	if (err) {
		delete_pool(pool);
		return err;
	}
	/* The first to be taken comes last. */
	for (unsigned i = 0; i < cfg->buffers; i++)
		pool->stack[cfg->buffers - 1 - i] =
		    pool->mem->addr + (size_t)(i / BUFFERS_PER_PAGE) * DMA_HUGE_PAGE +
		    (size_t)(i % BUFFERS_PER_PAGE) * IXDP_BUFFER_STRIDE;
	atomic_init(&pool->count, cfg->buffers);
	*out = pool;
	return 0;
}

int ixdp_pool_destroy(struct ixdp_pool *pool) {
	struct ixdp_pool_stats stats;
	int err = 0;

	pthread_mutex_lock(&registry.lock);
	ixdp_pool_get_stats(pool, &stats);
	if (pool->ports)
		err =
		    ixdp_fail(EBUSY, "pool: %u ports still use it: close them first", pool->ports);
	else if (stats.available != stats.buffers)
		err = ixdp_fail(EBUSY,
				"pool: %u of its %u buffers are with callers: free them "
				"first",
				stats.buffers - stats.available, stats.buffers);
	for (unsigned i = 0; !err && i < MAX_POOLS; i++)
		if (registry.pools[i] == pool)
			registry.pools[i] = NULL;
	pthread_mutex_unlock(&registry.lock);
	if (!err)
		delete_pool(pool);
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
		if (pool->cache[i] != &no_cache)
			stats->cached += load(&pool->cache[i]->count);
	stats->available = stats->cached + load(&pool->count);
}

struct dma_mem *pool_mem(struct ixdp_pool *pool) {
	return pool->mem;
}

int pool_commit(struct ixdp_pool *pool, unsigned needed, const char *port) {
	unsigned others;
	int err = 0;

	pthread_mutex_lock(&registry.lock);
	others = load(&pool->committed);
	if (needed > pool->buffers - others) {
		err = ixdp_fail(ENOBUFS,
				"%s: needs %u packet buffers, but its pool has %u, of which other "
				"ports need %u: give it a pool of at least %u, or smaller rings",
				port, needed, pool->buffers, others, others + needed);
	} else {
		store(&pool->committed, others + needed);
		pool->ports++;
	}
	pthread_mutex_unlock(&registry.lock);
	return err;
}

void pool_release(struct ixdp_pool *pool, unsigned needed) {
	pthread_mutex_lock(&registry.lock);
	store(&pool->committed, load(&pool->committed) - needed);
	pool->ports--;
	pthread_mutex_unlock(&registry.lock);
}
