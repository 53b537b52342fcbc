/* SPDX-License-Identifier: BSD-3-Clause */
/* How pools come and go, and which ports use them. */
#include "base/error.h"
#include "pool_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_POOLS = 16,
	MAX_BUFFERS = 1 << 22, /* of a pool: 9.3 GiB */
};

static_assert(IXDP_HEADROOM + IXDP_DATA_SIZE <= IXDP_BUFFER_STRIDE, "a buffer fits its stride");
static_assert(IXDP_BUFFER_STRIDE / 64 % 2 == 1, "an odd number of cache lines");

static struct {
	pthread_mutex_t lock; /* also of every pool's users */
	struct ixdp_pool *pools[MAX_POOLS];
	struct ixdp_pool *default_pool; /* one of them, or NULL */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

void pool_flush_thread_everywhere(unsigned index)
{
	pthread_mutex_lock(&registry.lock);
	for (unsigned i = 0; i < MAX_POOLS; i++)
		if (registry.pools[i])
			pool_flush_thread(registry.pools[i], index);
	pthread_mutex_unlock(&registry.lock);
}

static uint8_t *buffer_at(const struct ixdp_pool *pool, unsigned number)
{
	return pool->mem->addr + (size_t)(number / POOL_BUFFERS_PER_PAGE) * DMA_HUGE_PAGE +
	       (size_t)(number % POOL_BUFFERS_PER_PAGE) * IXDP_BUFFER_STRIDE;
}

static void delete_pool(struct ixdp_pool *pool)
{
	for (unsigned i = 0; i < POOL_THREADS; i++)
		if (pool->cache[i] != &pool_no_cache)
			free(pool->cache[i]);
	if (pool->mem)
		dma_free(pool->mem);
	pthread_spin_destroy(&pool->lock);
	free((void *)pool->owner);
	free(pool->stack);
	free(pool);
}

/* A pool of buffers that have no memory yet; NULL when memory is out. */
static struct ixdp_pool *new_pool(unsigned buffers)
{
	struct ixdp_pool *pool = aligned_alloc(alignof(struct ixdp_pool), sizeof(*pool));

	if (!pool)
		return NULL;
	memset(pool, 0, sizeof(*pool));
	pool->buffers = buffers;
	for (unsigned i = 0; i < POOL_THREADS; i++)
		atomic_init(&pool->cache[i], &pool_no_cache);
	pthread_spin_init(&pool->lock, PTHREAD_PROCESS_PRIVATE);
	pool->stack = calloc(buffers, sizeof(*pool->stack));
#ifdef IXDP_DEBUG
	pool->owner = calloc(buffers, sizeof(*pool->owner));
#endif
	if (pool->stack)
		return pool;
	delete_pool(pool);
	return NULL;
}

/* Makes a pool and enters it in the registry, whose lock is held. */
static int create(struct ixdp_pool **out, const struct ixdp_pool_config *cfg)
{
	size_t pages = (cfg->buffers + POOL_BUFFERS_PER_PAGE - 1) / POOL_BUFFERS_PER_PAGE;
	struct ixdp_pool *pool;
	unsigned slot = 0;
	int err;

	if (cfg->buffers < 1 || cfg->buffers > MAX_BUFFERS)
		return ixdp_fail(EINVAL, "pool of %u buffers: must be 1 to %u", cfg->buffers,
				 MAX_BUFFERS);
	while (slot < MAX_POOLS && registry.pools[slot])
		slot++;
	if (slot == MAX_POOLS)
		return ixdp_fail(EMFILE, "this process has %u pools already: destroy one first",
				 MAX_POOLS);
	pool = new_pool(cfg->buffers);
	if (!pool)
		return ixdp_fail(ENOMEM, "pool of %u buffers: out of memory", cfg->buffers);
	err = dma_alloc(&pool->mem, pages * DMA_HUGE_PAGE, cfg->numa_node, cfg->ordinary_pages);
	if (err) {
		delete_pool(pool);
		return err;
	}
	for (unsigned i = 0; i < cfg->buffers; i++)
		pool->stack[cfg->buffers - 1 - i] = buffer_at(pool, i);
	atomic_init(&pool->count, cfg->buffers);
	registry.pools[slot] = pool;
	*out = pool;
	return 0;
}

/* Takes a pool out of the registry, whose lock is held, and gives its memory back. */
static int destroy(struct ixdp_pool *pool)
{
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(pool, &stats);
	if (pool->users)
		return ixdp_fail(EBUSY,
				 "pool: ports still use it, and may hold %u buffers: close "
				 "them first",
				 stats.committed);
	if (stats.available != stats.buffers)
		return ixdp_fail(EBUSY,
				 "pool: %u of its %u buffers are still with callers: free "
				 "them first",
				 stats.buffers - stats.available, stats.buffers);
	for (unsigned i = 0; i < MAX_POOLS; i++)
		if (registry.pools[i] == pool)
			registry.pools[i] = NULL;
	if (registry.default_pool == pool)
		registry.default_pool = NULL;
	delete_pool(pool);
	return 0;
}

int ixdp_pool_create(struct ixdp_pool **pool, const struct ixdp_pool_config *cfg)
{
	int err;

	pthread_mutex_lock(&registry.lock);
	err = create(pool, cfg);
	pthread_mutex_unlock(&registry.lock);
	return err;
}

int ixdp_pool_destroy(struct ixdp_pool *pool)
{
	int err;

	pthread_mutex_lock(&registry.lock);
	err = destroy(pool);
	pthread_mutex_unlock(&registry.lock);
	return err;
}

void ixdp_pool_get_stats(const struct ixdp_pool *pool, struct ixdp_pool_stats *stats)
{
	*stats = (struct ixdp_pool_stats){
	    .buffers = pool->buffers,
	    .committed = atomic_load_explicit(&pool->committed, memory_order_relaxed),
	    .bad_frees = atomic_load_explicit(&pool->bad_frees, memory_order_relaxed),
	    .huge_pages = pool->mem->huge,
	};
	for (unsigned i = 0; i < POOL_THREADS; i++) {
		const struct pool_cache *cache =
		    atomic_load_explicit(&pool->cache[i], memory_order_acquire);
		if (cache != &pool_no_cache)
			stats->cached += atomic_load_explicit(&cache->count, memory_order_relaxed);
	}
	stats->available = stats->cached + atomic_load_explicit(&pool->count, memory_order_relaxed);
}

struct dma_mem *pool_mem(struct ixdp_pool *pool)
{
	return pool->mem;
}

/* ---- The ports that use a pool ---- */

int pool_commit(struct ixdp_pool *pool, unsigned needed, const char *port)
{
	unsigned committed;
	int err = 0;

	pthread_mutex_lock(&registry.lock);
	committed = pool->committed;
	if (needed > pool->buffers - committed) {
		err = ixdp_fail(ENOBUFS,
				"%s: needs %u packet buffers, but its pool has %u, of which other "
				"ports need %u: give it a pool of at least %u, or smaller rings",
				port, needed, pool->buffers, committed, committed + needed);
	} else {
		pool->committed = committed + needed;
		pool->users++;
	}
	pthread_mutex_unlock(&registry.lock);
	return err;
}

void pool_release(struct ixdp_pool *pool, unsigned needed)
{
	pthread_mutex_lock(&registry.lock);
	pool->committed -= needed;
	pool->users--;
	pthread_mutex_unlock(&registry.lock);
}

int pool_default(struct ixdp_pool **pool, unsigned needed, int numa_node, bool ordinary)
{
	struct ixdp_pool_config cfg = {
	    .buffers = 2 * needed,
	    .numa_node = numa_node,
	    .ordinary_pages = ordinary,
	};
	int err = 0;

	pthread_mutex_lock(&registry.lock);
	/* One that stayed because callers had buffers of it, and that may not be what we need. */
	if (registry.default_pool && !registry.default_pool->users)
		destroy(registry.default_pool);
	if (!registry.default_pool)
		err = create(&registry.default_pool, &cfg);
	if (!err) {
		registry.default_pool->users++;
		*pool = registry.default_pool;
	}
	pthread_mutex_unlock(&registry.lock);
	return err;
}

void pool_default_put(struct ixdp_pool *pool)
{
	pthread_mutex_lock(&registry.lock);
	if (--pool->users == 0 && destroy(pool))
		ixdp_log(IXDP_LOG_WARNING, "%s", ixdp_error());
	pthread_mutex_unlock(&registry.lock);
}
