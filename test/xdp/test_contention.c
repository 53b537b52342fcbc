/* SPDX-License-Identifier: BSD-3-Clause */
/* One XDP TX queue and several threads: buffers that change hands, and the queue's lock. */
#include "xdp/xdp.h"
#include "xdp_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#ifdef __SANITIZE_THREAD__
enum { REDIRECTED = 200000 }; /* slow there */
#else
enum { REDIRECTED = 1000000 };
#endif

enum {
	WORKERS = 4,
	FAILURES = 1000,
	BUFFERS = 16384,
	LIMIT_S = 100, /* far above what any of it takes */
};

static struct xdp_rig rig;
static atomic_bool stop;

static int setup(void **state) {
	(void)state;
	assert_int_equal(ixdp_xdp_workers(WORKERS), 0);
	xdp_rig_begin(&rig, BUFFERS);
	stop = false;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	xdp_rig_end(&rig);
	return 0;
}

static uint32_t to_target(struct ixdp_xdp_buff *xdp, void *arg) {
	return ixdp_xdp_redirect(xdp, arg);
}

/* --- buffers that change hands ------------------------------------------------------------ */

static void *clean_b(void *arg) {
	while (!stop) {
		struct ixdp_pkt pkt = xdp_rig_make(&rig, 60, 0, 0);
		int n = ixdp_xdp_xmit(rig.b.port, 1, &pkt, 1, 0);
		if (n < 0) abort();
		ixdp_free(rig.pool, &pkt, 1 - n);
		sched_yield();
	}
	return arg;
}

/*
 * xdp-tutorial 403: frames that port a received and redirected are sent by port b, whose own worker
 * gives their buffers back.
 */
static void buffers_return_by_another_worker(void **state) {
	struct ixdp_config cfg;
	struct ixdp_pkt pkts[64];
	struct ixdp_xdp_stats s = {0};
	pthread_t other;
	time_t end = xdp_rig_now_s() + LIMIT_S;
	uint32_t tag = 0;
	(void)state;
	ixdp_config_init(&cfg);
	cfg.xdp_queues = 1;
	xdp_rig_open(&rig, &rig.a, &cfg);
	xdp_rig_open(&rig, &rig.b, &cfg);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, to_target, rig.b.port), 0);
	assert_int_equal(pthread_create(&other, NULL, clean_b, NULL), 0);
	do {
		/* Never more than the RX ring holds. */
		while (tag < REDIRECTED && tag - (uint32_t)xdp_rig_counted(&s) < 256 &&
		       xdp_rig_inject(&rig.a, 60, 0, tag))
			tag++;
		assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, pkts, 64), 0);
		s = xdp_rig_stats(&rig.a, 0);
	} while (xdp_rig_counted(&s) < REDIRECTED && xdp_rig_now_s() < end);
	stop = true;
	pthread_join(other, NULL);
	assert_int_equal(s.redirect + s.redirect_full, REDIRECTED);
	assert_true(s.redirect > 0);
	/* xdp_rig_end() wants every buffer back. */
}

/* --- the lock ----------------------------------------------------------------------------- */

static void *fail_often(void *arg) {
	struct ixdp_pkt pkt = xdp_rig_make(&rig, 60, 0, 0);
	for (unsigned i = 0; i < FAILURES; i++)
		if (ixdp_xdp_xmit(rig.b.port, (uintptr_t)arg, &pkt, 1, 0) != 0) abort();
	ixdp_free(rig.pool, &pkt, 1);
	return NULL;
}

/* The lock must be free again after a ring that was full. */
static void full_ring_leaves_the_lock_free(void **state) {
	struct ixdp_config cfg;
	struct ixdp_pkt pkts[64];
	pthread_t threads[2];
	(void)state;
	ixdp_config_init(&cfg);
	cfg.xdp_queues = 1;
	cfg.tx_ring = 64;
	xdp_rig_open(&rig, &rig.b, &cfg);
	softnic_fault(rig.b.nic, "tx-stop");
	for (unsigned i = 0; i < 64; i++)
		pkts[i] = xdp_rig_make(&rig, 60, 0, i);
	assert_int_equal(ixdp_xdp_xmit(rig.b.port, 2, pkts, 64, 0), 63);
	ixdp_free(rig.pool, pkts + 63, 1);
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fail_often, (void *)i), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	struct ixdp_xdp_queue_stats stats = xdp_rig_queue_stats(&rig.b, 0);
	assert_int_equal(stats.locked, 1 + 2 * FAILURES);
	assert_int_equal(stats.packets, 63);
}

static atomic_bool sending;

static void *send_one(void *arg) {
	struct ixdp_pkt pkt = xdp_rig_make(&rig, 60, 0, 0);
	sending = true;
	if (ixdp_xdp_xmit(rig.b.port, 1, &pkt, 1, 0) != 1) abort();
	return arg;
}

/* Who finds the lock taken tries for a while, then lets others run; both are counted. */
static void waiting_for_the_lock_is_counted(void **state) {
	struct ixdp_config cfg;
	struct ixdp_xdp_queue_stats stats;
	time_t end = xdp_rig_now_s() + LIMIT_S;
	unsigned tries = 0;
	(void)state;
	ixdp_config_init(&cfg);
	cfg.xdp_queues = 1;
	xdp_rig_open(&rig, &rig.b, &cfg);
	struct xdp_queue *queue = &rig.b.port->xdp->queues[0];
	/* Once the other has had the processor for long enough, which nobody can promise. */
	do {
		pthread_t thread;
		sending = false;
		assert_int_equal(pthread_spin_lock(&queue->lock), 0);
		assert_int_equal(pthread_create(&thread, NULL, send_one, NULL), 0);
		while (!sending)
			sched_yield();
		for (unsigned i = 0; i <= tries; i++)
			nanosleep(&(struct timespec){0, 1000000}, NULL);
		pthread_spin_unlock(&queue->lock);
		pthread_join(thread, NULL);
		tries++;
		stats = xdp_rig_queue_stats(&rig.b, 0);
		assert_int_equal(stats.locked, tries);
		assert_true(stats.contended <= tries);
		assert_true(stats.contended > 0 || stats.yields == 0);
	} while (stats.yields == 0 && xdp_rig_now_s() < end);
	assert_true(stats.contended > 0 && stats.yields > 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    TEST(buffers_return_by_another_worker),
	    TEST(full_ring_leaves_the_lock_free),
	    TEST(waiting_for_the_lock_is_counted),
	};
	return cmocka_run_group_tests(tests, xdp_rig_setup, NULL);
}
