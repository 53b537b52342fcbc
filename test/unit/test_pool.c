/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools: where buffers lie, that none is lost or given out twice, and who is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ixdp/ixdp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/pool.h"

enum { MANY_THREADS = 130 }; /* more than a pool has caches */

static char last_warning[512];

static void keep_warning(enum ixdp_log_level level, const char *line, void *arg) {
	(void)arg;
	if (level <= IXDP_LOG_WARNING) snprintf(last_warning, sizeof(last_warning), "%s", line);
}

static struct ixdp_pool *new_pool(unsigned buffers) {
	struct ixdp_pool_config cfg = {buffers, -1, true};
	struct ixdp_pool *pool = NULL;

	assert_int_equal(ixdp_pool_create(&pool, &cfg), 0);
	return pool;
}

static unsigned available(struct ixdp_pool *pool) {
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(pool, &stats);
	return stats.available;
}

static unsigned cached(struct ixdp_pool *pool) {
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(pool, &stats);
	return stats.cached;
}

static int by_address(const void *a, const void *b) {
	const uint8_t *x = *(uint8_t *const *)a, *y = *(uint8_t *const *)b;

	return (x > y) - (x < y);
}

static void buffers_are_distinct_and_cross_no_page(void **state) {
	enum { N = 2000 };
	struct ixdp_pool *pool = new_pool(N);
	const struct dma_mem *mem = pool_mem(pool);
	uint8_t *bufs[N];

	(void)state;
	assert_int_equal(pool_take(pool, bufs, N, OWNER_CALLER), N);
	qsort(bufs, N, sizeof(*bufs), by_address);
	assert_ptr_equal(bufs[0], mem->addr);
	for (unsigned i = 0; i < N; i++) {
		size_t offset = (size_t)(bufs[i] - mem->addr);
		assert_true(offset + IXDP_BUFFER_STRIDE <= mem->size);
		assert_int_equal(offset / DMA_HUGE_PAGE, i / 885);
		assert_int_equal((offset + IXDP_BUFFER_STRIDE - 1) / DMA_HUGE_PAGE, i / 885);
		if (i % 885) assert_int_equal(bufs[i] - bufs[i - 1], 37 * 64);
	}
	pool_give(pool, bufs, N, OWNER_CALLER);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void memory_is_huge_pages_where_there_are(void **state) {
	struct ixdp_pool_config cfg = {1000, -1, false};
	struct ixdp_pool_stats stats;
	struct ixdp_pool *pool;

	(void)state;
	if (ixdp_pool_create(&pool, &cfg)) {
		print_message("no huge pages for this user: %s\n", ixdp_error());
		skip();
	}
	ixdp_pool_get_stats(pool, &stats);
	assert_true(stats.huge_pages);
	assert_int_equal((uintptr_t)pool_mem(pool)->addr % DMA_HUGE_PAGE, 0);
	assert_int_equal(pool_mem(pool)->size, 2 * DMA_HUGE_PAGE);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void packets_are_empty_behind_the_headroom(void **state) {
	struct ixdp_pool *pool = new_pool(40);
	struct ixdp_pkt pkts[40];

	(void)state;
	memset(pkts, 0xff, sizeof(pkts));
	assert_int_equal(ixdp_alloc(pool, pkts, 40), 40);
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(pkts[i].headroom, IXDP_HEADROOM);
		assert_int_equal(pkts[i].len, 0);
		assert_int_equal(pkts[i].flags, 0);
		assert_int_equal((pkts[i].data - pool_mem(pool)->addr) % IXDP_BUFFER_STRIDE,
				 IXDP_HEADROOM);
		/* As a program that takes a header off leaves it. */
		pkts[i].data += 14;
		pkts[i].headroom += 14;
	}
	ixdp_free(pool, pkts, 40);
	assert_int_equal(available(pool), 40);
	assert_int_equal(ixdp_alloc(pool, pkts, 40), 40);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal((pkts[i].data - pool_mem(pool)->addr) % IXDP_BUFFER_STRIDE,
				 IXDP_HEADROOM);
	ixdp_free(pool, pkts, 40);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void a_low_pool_gives_what_it_has(void **state) {
	struct ixdp_pool *pool = new_pool(50);
	struct ixdp_pkt pkts[64];

	(void)state;
	assert_int_equal(ixdp_alloc(pool, pkts, 64), 50);
	assert_int_equal(ixdp_alloc(pool, pkts + 50, 14), 0);
	assert_int_equal(available(pool), 0);
	ixdp_free(pool, pkts, 33);
	assert_int_equal(available(pool), 33);
	assert_int_equal(ixdp_alloc(pool, pkts, 64), 33);
	ixdp_free(pool, pkts, 50);
	assert_int_equal(available(pool), 50);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

/* Every size of move, in an order that empties and fills the cache at all its boundaries. */
static void no_buffer_is_lost_or_given_out_twice(void **state) {
	enum { N = 700 };
	struct ixdp_pool *pool = new_pool(N);
	static uint8_t *held[N];
	unsigned count = 0, random = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		random = random * 1103515245 + 12345;
		unsigned n = i % 3 ? 32 : (random >> 16) % 130;
		if (random >> 31) {
			unsigned wanted = n < N - count ? n : N - count;
			n = pool_take(pool, held + count, wanted, OWNER_CALLER);
			assert_int_equal(n, wanted);
			for (unsigned k = count; k < count + n; k++) {
				assert_int_not_equal(*held[k], 0xaa);
				*held[k] = 0xaa;
			}
			count += n;
		} else {
			n = n < count ? n : count;
			count -= n;
			for (unsigned k = count; k < count + n; k++)
				*held[k] = 0;
			pool_give(pool, held + count, n, OWNER_CALLER);
		}
		assert_int_equal(available(pool) + count, N);
	}
	pool_give(pool, held, count, OWNER_CALLER);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void flush_empties_the_cache(void **state) {
	struct ixdp_pool *pool = new_pool(100);
	struct ixdp_pkt pkt;

	(void)state;
	assert_int_equal(ixdp_alloc(pool, &pkt, 1), 1);
	assert_int_equal(cached(pool), 31);
	ixdp_free(pool, &pkt, 1);
	pool_flush(pool);
	assert_int_equal(cached(pool), 0);
	assert_int_equal(available(pool), 100);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void *use_once(void *arg) {
	struct ixdp_pool *pool = arg;
	struct ixdp_pkt pkts[40];

	assert_int_equal(ixdp_alloc(pool, pkts, 40), 40);
	ixdp_free(pool, pkts, 40);
	return NULL;
}

static void threads_leave_nothing_in_their_caches(void **state) {
	enum { THREADS = 40 };
	struct ixdp_pool *pool = new_pool(8000);
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_once, pool), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(cached(pool), 0);
	assert_int_equal(available(pool), 8000);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void *use_and_see_cache(void *arg) {
	use_once(arg);
	return (void *)(uintptr_t)cached(arg);
}

static void caches_of_ended_threads_serve_new_ones(void **state) {
	struct ixdp_pool *pool = new_pool(200);
	void *in_cache;
	pthread_t thread;

	(void)state;
	for (unsigned i = 0; i < 2 * MANY_THREADS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, use_and_see_cache, pool), 0);
		pthread_join(thread, &in_cache);
		assert_int_not_equal((uintptr_t)in_cache, 0);
	}
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static struct {
	struct ixdp_pool *pool;
	pthread_barrier_t all_there;
	atomic_uint running, stolen;
} hammer;

/* Signs what it gets, lets others run, and looks whether the signatures are still its own. */
static void *hammer_pool(void *arg) {
	uint32_t me = (uint32_t)(uintptr_t)arg;
	struct ixdp_pkt pkts[48];

	pthread_barrier_wait(&hammer.all_there);
	for (unsigned i = 0; i < 2000; i++) {
		int n = ixdp_alloc(hammer.pool, pkts, i % 2 ? 32 : (i + me) % 48);
		for (int k = 0; k < n; k++)
			memcpy(pkts[k].data, &me, sizeof(me));
		if (i % 64 == me % 64) sched_yield();
		for (int k = 0; k < n; k++)
			if (memcmp(pkts[k].data, &me, sizeof(me)) != 0)
				atomic_fetch_add(&hammer.stolen, 1);
		ixdp_free(hammer.pool, pkts, (unsigned)n);
	}
	atomic_fetch_sub(&hammer.running, 1);
	return NULL;
}

static void more_threads_than_caches_share_a_pool(void **state) {
	pthread_t threads[MANY_THREADS];

	(void)state;
	hammer.pool = new_pool(4000); /* too few for all caches: they run dry, too */
	hammer.running = MANY_THREADS;
	pthread_barrier_init(&hammer.all_there, NULL, MANY_THREADS);
	for (uintptr_t i = 0; i < MANY_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer_pool, (void *)i), 0);
	while (atomic_load(&hammer.running)) { /* statistics are read meanwhile */
		available(hammer.pool);
		sched_yield();
	}
	for (unsigned i = 0; i < MANY_THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&hammer.all_there);
	assert_int_equal(hammer.stolen, 0);
	assert_int_equal(cached(hammer.pool), 0);
	assert_int_equal(available(hammer.pool), 4000);
	assert_int_equal(ixdp_pool_destroy(hammer.pool), 0);
}

static void sizes_that_make_no_sense_are_refused(void **state) {
	struct ixdp_pool_config cfg = {0, -1, true};
	struct ixdp_pool *pool = NULL;

	(void)state;
	assert_int_equal(ixdp_pool_create(&pool, &cfg), -EINVAL);
	cfg.buffers = UINT32_MAX;
	assert_int_equal(ixdp_pool_create(&pool, &cfg), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "4294967295"));
	cfg.buffers = 100;
	cfg.numa_node = 999;
	assert_int_equal(ixdp_pool_create(&pool, &cfg), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "999"));
	assert_null(pool);
}

/* 9.3 GiB do not fit 32 bits. */
static void the_largest_pool_needs_all_its_pages(void **state) {
	struct ixdp_pool_config cfg = {1 << 22, -1, false};
	struct ixdp_pool *pool;
	int err = ixdp_pool_create(&pool, &cfg);

	(void)state;
	if (err == -ENOENT || err == -EACCES) {
		print_message("no hugetlbfs for this user: %s\n", ixdp_error());
		skip();
	}
	if (err) {
		assert_int_equal(err, -ENOMEM);
		assert_non_null(strstr(ixdp_error(), " 4740 of 2 MiB needed"));
	} else {
		assert_int_equal(pool_mem(pool)->size, 4740 * (size_t)DMA_HUGE_PAGE);
		assert_int_equal(ixdp_pool_destroy(pool), 0);
	}
}

static void the_seventeenth_pool_is_refused(void **state) {
	struct ixdp_pool_config cfg = {10, -1, true};
	struct ixdp_pool *pools[16], *pool;

	(void)state;
	for (unsigned i = 0; i < 16; i++)
		pools[i] = new_pool(10);
	assert_int_equal(ixdp_pool_create(&pool, &cfg), -EMFILE);
	assert_non_null(strstr(ixdp_error(), "16"));
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(ixdp_pool_destroy(pools[i]), 0);
}

static void ports_get_no_promise_that_cannot_be_kept(void **state) {
	struct ixdp_pool *pool = new_pool(1000);
	struct ixdp_pool_stats stats;

	(void)state;
	assert_int_equal(pool_commit(pool, 700, "soft:a"), 0);
	assert_int_equal(pool_commit(pool, 301, "soft:b"), -ENOBUFS);
	assert_non_null(strstr(ixdp_error(), "soft:b"));
	assert_non_null(strstr(ixdp_error(), "needs 301 "));
	assert_non_null(strstr(ixdp_error(), "has 1000"));
	assert_non_null(strstr(ixdp_error(), "need 700"));
	assert_non_null(strstr(ixdp_error(), "at least 1001"));
	assert_int_equal(pool_commit(pool, 300, "soft:b"), 0);
	ixdp_pool_get_stats(pool, &stats);
	assert_int_equal(stats.committed, 1000);
	pool_release(pool, 700);
	assert_int_equal(pool_commit(pool, 701, "soft:c"), -ENOBUFS);
	assert_int_equal(pool_commit(pool, 700, "soft:c"), 0);
	pool_release(pool, 700);
	pool_release(pool, 300);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void a_pool_in_use_is_not_destroyed(void **state) {
	struct ixdp_pool *pool = new_pool(100);
	struct ixdp_pkt pkts[7];

	(void)state;
	assert_int_equal(pool_commit(pool, 50, "soft:a"), 0);
	assert_int_equal(ixdp_pool_destroy(pool), -EBUSY);
	pool_release(pool, 50);
	assert_int_equal(ixdp_alloc(pool, pkts, 7), 7);
	assert_int_equal(ixdp_pool_destroy(pool), -EBUSY);
	assert_non_null(strstr(ixdp_error(), "7 of its 100"));
	ixdp_free(pool, pkts, 7);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void the_default_pool_lives_as_long_as_its_ports(void **state) {
	struct ixdp_pool *a, *b;

	(void)state;
	assert_int_equal(pool_default(&a, 500, -1, true), 0);
	assert_int_equal(available(a), 1000);
	assert_int_equal(pool_default(&b, 800, -1, true), 0);
	assert_ptr_equal(a, b);
	pool_default_put(a);
	assert_int_equal(available(b), 1000);
	pool_default_put(b);
	assert_int_equal(pool_default(&a, 300, -1, true), 0);
	assert_int_equal(available(a), 600);
	pool_default_put(a);
}

static void the_default_pool_outlives_its_ports_while_callers_have_buffers(void **state) {
	struct ixdp_pool *pool, *next;
	struct ixdp_pkt pkts[3];

	(void)state;
	assert_int_equal(pool_default(&pool, 100, -1, true), 0);
	assert_int_equal(ixdp_alloc(pool, pkts, 3), 3);
	*last_warning = '\0';
	pool_default_put(pool);
	assert_non_null(strstr(last_warning, "3 of its 200"));
	assert_int_equal(pool_default(&next, 100, -1, true), 0);
	assert_ptr_not_equal(next, pool);
	pool_default_put(next);
	pkts[2].data[0] = 1; /* still memory */
	ixdp_free(pool, pkts, 3);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

#ifdef IXDP_DEBUG

static uint64_t bad_frees(struct ixdp_pool *pool) {
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(pool, &stats);
	return stats.bad_frees;
}

static void a_double_free_is_named_and_refused(void **state) {
	struct ixdp_pool *pool = new_pool(64);
	struct ixdp_pkt pkts[64], kept;

	(void)state;
	assert_int_equal(ixdp_alloc(pool, pkts, 64), 64);
	kept = pkts[6];
	pkts[6] = pkts[5];
	ixdp_free(pool, pkts, 64);
	assert_int_equal(bad_frees(pool), 1);
	assert_int_equal(available(pool), 63);
	assert_non_null(strstr(last_warning, "is with the pool, but the caller gave it"));
	ixdp_free(pool, &pkts[5], 1);
	assert_int_equal(bad_frees(pool), 2);
	assert_int_equal(available(pool), 63);
	ixdp_free(pool, &kept, 1);
	assert_int_equal(available(pool), 64);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void a_foreign_free_is_named_and_refused(void **state) {
	struct ixdp_pool *pool = new_pool(64), *other = new_pool(64);
	struct ixdp_pkt pkt, inside;

	(void)state;
	assert_int_equal(ixdp_alloc(other, &pkt, 1), 1);
	ixdp_free(pool, &pkt, 1);
	assert_int_equal(bad_frees(pool), 1);
	assert_non_null(strstr(last_warning, "no buffer of this pool"));
	inside = pkt;
	inside.data += 4; /* without headroom += 4: not the start of a buffer */
	ixdp_free(other, &inside, 1);
	assert_int_equal(bad_frees(other), 1);
	/* Number 64 of 64, in the rest of the page, and below the pool. */
	inside = (struct ixdp_pkt){.data = pool_mem(pool)->addr + 64 * IXDP_BUFFER_STRIDE};
	ixdp_free(pool, &inside, 1);
	inside.data = pool_mem(pool)->addr + (size_t)885 * IXDP_BUFFER_STRIDE;
	ixdp_free(pool, &inside, 1);
	inside.data = pool_mem(pool)->addr - IXDP_BUFFER_STRIDE;
	ixdp_free(pool, &inside, 1);
	assert_int_equal(bad_frees(pool), 4);
	assert_int_equal(available(pool), 64);
	ixdp_free(other, &pkt, 1);
	assert_int_equal(ixdp_pool_destroy(other), 0);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static void a_buffer_that_a_ring_has_is_not_the_callers_to_free(void **state) {
	struct ixdp_pool *pool = new_pool(64);
	struct ixdp_pkt pkt;
	uint8_t *buf;

	(void)state;
	assert_int_equal(pool_take(pool, &buf, 1, OWNER_RING), 1);
	pkt = (struct ixdp_pkt){.data = buf};
	ixdp_free(pool, &pkt, 1);
	assert_int_equal(bad_frees(pool), 1);
	assert_non_null(strstr(last_warning, "buffer 0 is with a ring, but the caller gave it"));
	assert_true(pool_handover(pool, buf, OWNER_RING, OWNER_CALLER));
	assert_false(pool_handover(pool, buf, OWNER_RING, OWNER_CALLER));
	ixdp_free(pool, &pkt, 1);
	assert_int_equal(available(pool), 64);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

#endif

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(buffers_are_distinct_and_cross_no_page),
	    cmocka_unit_test(memory_is_huge_pages_where_there_are),
	    cmocka_unit_test(packets_are_empty_behind_the_headroom),
	    cmocka_unit_test(a_low_pool_gives_what_it_has),
	    cmocka_unit_test(no_buffer_is_lost_or_given_out_twice),
	    cmocka_unit_test(flush_empties_the_cache),
	    cmocka_unit_test(threads_leave_nothing_in_their_caches),
	    cmocka_unit_test(caches_of_ended_threads_serve_new_ones),
	    cmocka_unit_test(more_threads_than_caches_share_a_pool),
	    cmocka_unit_test(sizes_that_make_no_sense_are_refused),
	    cmocka_unit_test(the_largest_pool_needs_all_its_pages),
	    cmocka_unit_test(the_seventeenth_pool_is_refused),
	    cmocka_unit_test(ports_get_no_promise_that_cannot_be_kept),
	    cmocka_unit_test(a_pool_in_use_is_not_destroyed),
	    cmocka_unit_test(the_default_pool_lives_as_long_as_its_ports),
	    cmocka_unit_test(the_default_pool_outlives_its_ports_while_callers_have_buffers),
#ifdef IXDP_DEBUG
	    cmocka_unit_test(a_double_free_is_named_and_refused),
	    cmocka_unit_test(a_foreign_free_is_named_and_refused),
	    cmocka_unit_test(a_buffer_that_a_ring_has_is_not_the_callers_to_free),
#endif
	};

	ixdp_log_set(keep_warning, NULL, IXDP_LOG_WARNING);
	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
