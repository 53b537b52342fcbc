/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that come and go, and ports that stop and close while others redirect to them, under
 * traffic. What the sanitizers need to see; nothing here depends on who runs when.
 */
#include "xdp_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORKERS = 4,
	SWAPS = 10000,
	TARGET_ROUNDS = 200,
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

/* --- programs that come and go ------------------------------------------------------------ */

/* Lives as long as its program is attached. */
struct data {
	uint64_t frames[WORKERS]; /* seen, by worker: plain memory, as programs have it */
	uint32_t verdict;
};

static uint32_t count_and_decide(struct ixdp_xdp_buff *xdp, void *arg) {
	struct data *data = arg;
	data->frames[xdp->worker]++;
	return data->verdict;
}

/* A second one, lest the compiler make one of both. */
static uint32_t count_and_send(struct ixdp_xdp_buff *xdp, void *arg) {
	struct data *data = arg;
	data->frames[xdp->worker]++;
	return XDP_TX;
}

static uint64_t passed[WORKERS];

static void *poll_until_stopped(void *arg) {
	unsigned worker = (uintptr_t)arg;
	while (!stop) {
		struct ixdp_pkt pkts[32];
		int n = ixdp_xdp_poll(rig.a.port, worker, worker, pkts, 32);
		if (n < 0) abort();
		passed[worker] += n;
		ixdp_free(rig.pool, pkts, n);
		sched_yield();
	}
	return NULL;
}

static void *feed_until_stopped(void *arg) {
	for (uint32_t tag = 0; !stop;)
		if (xdp_rig_inject(&rig.a, 60, 0, tag))
			tag++;
		else
			sched_yield();
	return arg;
}

static unsigned by_tag(const uint8_t *frame, size_t len, void *arg) {
	(void)len, (void)arg;
	return xdp_rig_tag(frame) % WORKERS;
}

static uint64_t counted(void) {
	uint64_t sum = 0;
	for (unsigned q = 0; q < WORKERS; q++) {
		struct ixdp_xdp_stats s = xdp_rig_stats(&rig.a, q);
		sum += xdp_rig_counted(&s);
	}
	return sum;
}

/*
 * cilium 18636, ethernet-linux-ice 23: what a program needs was gone before it. Each program's data
 * is freed when the call that replaces it returns; each frame meets one program, or none.
 */
static void programs_are_swapped_under_traffic(void **state) {
	pthread_t threads[WORKERS + 1];
	struct data *data = NULL;
	uint64_t seen[3] = {0}; /* by XDP_DROP's program, by XDP_TX's */
	struct ixdp_config cfg;
	struct ixdp_stats stats;
	unsigned swaps;
	time_t end = xdp_rig_now_s() + LIMIT_S;
	(void)state;
	ixdp_config_init(&cfg);
	cfg.rx_queues = WORKERS;
	xdp_rig_open(&rig, &rig.a, &cfg);
	softnic_steer(rig.a.nic, by_tag, NULL);
	memset(passed, 0, sizeof(passed));
	for (uintptr_t i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poll_until_stopped, (void *)i),
				 0);
	assert_int_equal(pthread_create(&threads[WORKERS], NULL, feed_until_stopped, NULL), 0);
	for (swaps = 0; swaps < SWAPS && xdp_rig_now_s() < end; swaps++) {
		unsigned kind = swaps % 3; /* none, drop, send */
		struct data *next = kind ? calloc(1, sizeof(*next)) : NULL;
		if (next) next->verdict = XDP_DROP;
		assert_int_equal(ixdp_xdp_attach(rig.a.port,
						 kind == 0   ? NULL
						 : kind == 1 ? count_and_decide
							     : count_and_send,
						 next),
				 0);
		for (unsigned i = 0; data && i < WORKERS; i++)
			seen[(kind + 2) % 3] += data->frames[i];
		free(data);
		data = next;
		/* Now and then each kind must have met some frames. */
		for (uint64_t had = counted();
		     swaps % 64 < 3 && counted() == had && xdp_rig_now_s() < end;)
			sched_yield();
	}
	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), 0);
	for (unsigned i = 0; data && i < WORKERS; i++)
		seen[(swaps - 1) % 3] += data->frames[i];
	free(data);
	stop = true;
	for (unsigned i = 0; i < WORKERS + 1; i++)
		pthread_join(threads[i], NULL);

	uint64_t pass = 0, drop = 0, tx = 0;
	for (unsigned q = 0; q < WORKERS; q++) {
		struct ixdp_xdp_stats s = xdp_rig_stats(&rig.a, q);
		assert_int_equal(s.pass, passed[q]);
		pass += s.pass;
		drop += s.drop;
		tx += s.tx + s.tx_full;
	}
	assert_int_equal(swaps, SWAPS);
	assert_int_equal(drop, seen[1]);
	assert_int_equal(tx, seen[2]);
	assert_int_equal(counted(), pass + drop + tx);
	assert_int_equal(ixdp_stats_get(rig.a.port, &stats), 0);
	assert_int_equal(stats.rx_packets, counted());
	assert_true(pass > 0 && drop > 0 && tx > 0);
}

/* --- targets that come and go ------------------------------------------------------------- */

static struct ixdp_port *_Atomic target;

static uint32_t to_target(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)arg;
	return ixdp_xdp_redirect(xdp, target);
}

/* Frames go on to a port that stops, starts, closes and opens; all are counted, none is lost. */
static void target_stops_and_closes_under_traffic(void **state) {
	pthread_t threads[WORKERS + 1];
	struct ixdp_config cfg;
	struct ixdp_stats stats;
	uint64_t sent = 0, taken = 0;
	time_t end = xdp_rig_now_s() + LIMIT_S;
	unsigned round;
	(void)state;
	ixdp_config_init(&cfg);
	cfg.rx_queues = WORKERS;
	cfg.tx_ring = 64;
	xdp_rig_open(&rig, &rig.a, &cfg);
	softnic_steer(rig.a.nic, by_tag, NULL);
	cfg.rx_queues = 1;
	cfg.xdp_queues = 3; /* queue 0 is shared, the others are not */
	xdp_rig_open(&rig, &rig.b, &cfg);
	target = rig.b.port;
	assert_int_equal(ixdp_xdp_attach(rig.a.port, to_target, NULL), 0);
	for (uintptr_t i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poll_until_stopped, (void *)i),
				 0);
	assert_int_equal(pthread_create(&threads[WORKERS], NULL, feed_until_stopped, NULL), 0);
	for (round = 0; round < TARGET_ROUNDS && xdp_rig_now_s() < end; round++) {
		if (round % 4 == 3) {
			assert_int_equal(ixdp_stats_get(rig.b.port, &stats), 0);
			uint64_t before = stats.tx_taken;
			/* Taken until nobody sends there any more. */
			assert_int_equal(ixdp_stop(rig.b.port), 0);
			assert_int_equal(ixdp_stats_get(rig.b.port, &stats), 0);
			assert_true(stats.tx_taken >= before);
			taken += stats.tx_taken;
			xdp_rig_close(&rig.b);
			xdp_rig_open(&rig, &rig.b, &cfg);
			target = rig.b.port;
		} else {
			assert_int_equal(ixdp_stop(rig.b.port), 0);
			sched_yield();
			assert_int_equal(ixdp_start(rig.b.port), 0);
		}
		/* Something gets through each time. */
		uint64_t had = rig.b.sent;
		while (rig.b.sent == had && xdp_rig_now_s() < end)
			sched_yield();
	}
	stop = true;
	for (unsigned i = 0; i < WORKERS + 1; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(round, TARGET_ROUNDS);
	for (unsigned q = 0; q < WORKERS; q++) {
		struct ixdp_xdp_stats s = xdp_rig_stats(&rig.a, q);
		sent += s.redirect;
		/* A new port may be where the old one was, and not be ready for XDP yet. */
		assert_int_equal(s.redirect + s.redirect_full + s.redirect_closed +
				     s.redirect_down + s.redirect_unprepared,
				 xdp_rig_counted(&s));
	}
	assert_int_equal(ixdp_stats_get(rig.b.port, &stats), 0);
	assert_int_equal(sent, taken + stats.tx_taken);
	assert_int_equal(ixdp_stats_get(rig.a.port, &stats), 0);
	assert_int_equal(counted(), stats.rx_packets);
}

int main(void) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    TEST(programs_are_swapped_under_traffic),
	    TEST(target_stops_and_closes_under_traffic),
	};
	return cmocka_run_group_tests(tests, xdp_rig_setup, NULL);
}
