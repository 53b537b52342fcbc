/* SPDX-License-Identifier: BSD-3-Clause */
/* Declaring workers, opening, attaching, sending: who may, in which order, and what is refused. */
#include "xdp/xdp.h"
#include "xdp_rig.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { WORKERS = 3, RING = 512, BUFFERS = 32768 };

static struct xdp_rig rig;

static int setup(void **state) {
	(void)state;
	assert_int_equal(ixdp_xdp_workers(WORKERS), 0);
	xdp_rig_begin(&rig, BUFFERS);
	xdp_rig_open(&rig, &rig.a, NULL);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	xdp_rig_end(&rig);
	return 0;
}

static void error_says(const char *text) {
	if (!strstr(ixdp_error(), text)) fail_msg("\"%s\" is not in: %s", text, ixdp_error());
}

/* Runs first: afterwards they are declared. */
static void workers_are_declared_once_and_first(void **state) {
	struct ixdp_port *port = NULL;
	struct ixdp_pkt pkt;
	(void)state;
	assert_int_equal(ixdp_xdp_open(&port, "soft:early", NULL), -EINVAL);
	error_says("ixdp_xdp_workers");
	xdp_rig_begin(&rig, BUFFERS);
	xdp_rig_open_plain(&rig, &rig.a, NULL);
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, &pkt, 0, 0), -EINVAL);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), -EINVAL);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, &pkt, 1), -EINVAL);
	xdp_rig_end(&rig);
	assert_int_equal(ixdp_xdp_workers(0), -EINVAL);
	assert_int_equal(ixdp_xdp_workers(WORKERS), 0);
	assert_int_equal(ixdp_xdp_workers(WORKERS), 0);
	assert_int_equal(ixdp_xdp_workers(WORKERS + 1), -EBUSY);
	error_says("4 workers");
	error_says("said 3");
	assert_int_equal(ixdp_xdp_workers(0), -EINVAL);
}

static unsigned queues(unsigned plain, unsigned xdp) {
	struct ixdp_config cfg;
	ixdp_config_init(&cfg);
	cfg.tx_queues = plain;
	cfg.xdp_queues = xdp;
	cfg.tx_ring = 64;
	xdp_rig_open(&rig, &rig.b, &cfg);
	unsigned n = ixdp_xdp_queues(rig.b.port);
	xdp_rig_close(&rig.b);
	return n;
}

static void queues_are_what_is_left(void **state) {
	struct ixdp_config cfg;
	struct ixdp_port *port;
	(void)state;
	assert_int_equal(queues(1, 0), 3);
	assert_int_equal(queues(0, 0), 3);
	assert_int_equal(queues(61, 0), 3);
	assert_int_equal(queues(62, 0), 2);
	assert_int_equal(queues(63, 0), 1);
	assert_int_equal(queues(64, 0), 0);
	assert_int_equal(queues(1, 1), 1);
	assert_int_equal(queues(1, 64), 3);
	/* More than the NIC's default mode has, as asked for. */
	assert_int_equal(queues(64, 2), 2);
	ixdp_config_init(&cfg);
	cfg.pool = rig.pool;
	cfg.xdp_queues = 65;
	assert_int_equal(ixdp_xdp_open(&port, "soft:b", &cfg), -EINVAL);
	error_says("65");
	error_says("64");
	cfg.tx_queues = 127;
	cfg.xdp_queues = 2;
	assert_int_equal(ixdp_xdp_open(&port, "soft:b", &cfg), -EINVAL);
	error_says("TX queues for XDP 2: must be 0 to 1");
	cfg.tx_queues = UINT32_MAX; /* the sum must not wrap */
	assert_int_equal(ixdp_xdp_open(&port, "soft:b", &cfg), -EINVAL);
}

static uint32_t drop(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)xdp, (void)arg;
	return XDP_DROP;
}

/* Linux refuses in both orders too: xdp-tools 327, cilium 35426. */
static void mtu_has_the_same_limit_in_both_orders(void **state) {
	static const struct {
		unsigned mtu;
		bool fits;
		const char *number;
	} cases[] = {{1500, true, ""},	    {2030, true, ""},	   {2031, false, "2031"},
		     {3000, false, "3000"}, {9000, false, "9000"}, {68, true, ""}};
	struct ixdp_config cfg;
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(ixdp_mtu_set(rig.a.port, cases[i].mtu), 0);
		int err = ixdp_xdp_attach(rig.a.port, drop, NULL);
		assert_int_equal(err, cases[i].fits ? 0 : -EMSGSIZE);
		if (err) {
			error_says(cases[i].number);
			error_says("2030");
		}
		assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), 0);
	}
	assert_int_equal(ixdp_mtu_set(rig.a.port, 1400), 0);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, drop, NULL), 0);
	for (unsigned i = 0, old = 1400; i < 6; i++) {
		int err = ixdp_mtu_set(rig.a.port, cases[i].mtu);
		assert_int_equal(err, cases[i].fits ? 0 : -EMSGSIZE);
		if (err) {
			error_says(cases[i].number);
			error_says("2030");
		} else {
			old = cases[i].mtu;
		}
		ixdp_config_get(rig.a.port, &cfg);
		assert_int_equal(cfg.mtu, old);
	}
	/* The port still works, and without a program it may grow again. */
	struct ixdp_pkt pkt;
	assert_true(xdp_rig_inject(&rig.a, 60, 0, 0));
	xdp_rig_run(&rig);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, &pkt, 1), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).drop, 1);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), 0);
	assert_int_equal(ixdp_mtu_set(rig.a.port, 9000), 0);
}

/* Frames of several elements pass where there is no program, and count once each. */
static void jumbo_frames_pass_and_count_once(void **state) {
	struct ixdp_pkt pkts[64];
	(void)state;
	assert_int_equal(ixdp_mtu_set(rig.a.port, 9000), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(xdp_rig_inject(&rig.a, 5000, 0, i));
	xdp_rig_run(&rig);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, pkts, 64), 9);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).pass, 3);
	ixdp_free(rig.pool, pkts, 9);
}

static void no_such_queue_or_worker(void **state) {
	struct ixdp_xdp_queue_stats queue_stats;
	struct ixdp_xdp_stats stats;
	struct ixdp_pkt pkt;
	(void)state;
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 1, 0, &pkt, 1), -EINVAL);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, WORKERS, &pkt, 1), -EINVAL);
	error_says("worker 3");
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, UINT32_MAX, &pkt, 1), -EINVAL);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, WORKERS - 1, &pkt, 1), 0);
	assert_int_equal(ixdp_xdp_stats_get(rig.a.port, 1, &stats), -EINVAL);
	assert_int_equal(ixdp_xdp_queue_stats_get(rig.a.port, 3, &queue_stats), -EINVAL);
	error_says("no XDP TX queue 3, the port has 3");
	assert_int_equal(ixdp_stop(rig.a.port), 0);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, &pkt, 1), -ENETDOWN);
}

/* One plain queue, then those for XDP: which ixdp_tx() must not touch, as it knows no lock. */
static void plain_sending_on_xdp_queue_is_refused(void **state) {
	struct ixdp_pkt pkt = xdp_rig_make(&rig, 60, 0, 0);
	(void)state;
	for (unsigned queue = 1; queue < 1 + WORKERS; queue++) {
		assert_int_equal(ixdp_tx(rig.a.port, queue, &pkt, 1), -EINVAL);
		assert_int_equal(ixdp_tx_clean(rig.a.port, queue), -EINVAL);
	}
	assert_int_equal(ixdp_tx(rig.a.port, 0, &pkt, 1), 1);
	assert_int_equal(xdp_rig_queue_stats(&rig.a, 0).packets, 0);
}

static void xmit_keeps_its_contract(void **state) {
	struct ixdp_pkt pkts[RING];
	struct ixdp_config cfg;
	struct ixdp_link link;
	(void)state;
	for (unsigned i = 0; i < RING; i++)
		pkts[i] = xdp_rig_make(&rig, 60, 0, i);
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, pkts, RING, 2), -EINVAL);
	error_says("0x2");
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, pkts, RING, UINT32_MAX), -EINVAL);
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, WORKERS, pkts, RING, 0), -EINVAL);
	assert_int_equal(ixdp_stop(rig.a.port), 0);
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, pkts, RING, 0), -ENETDOWN);
	assert_int_equal(ixdp_start(rig.a.port), 0);
	assert_int_equal(softnic_fault(rig.a.nic, "link-down"), 0);
	assert_int_equal(ixdp_link_get(rig.a.port, &link), 0);
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, pkts, RING, 0), -ENETDOWN);
	assert_int_equal(softnic_fault(rig.a.nic, "none"), 0);
	assert_int_equal(ixdp_link_wait(rig.a.port, 10000, &link), 0);
	xdp_rig_open_plain(&rig, &rig.b, NULL);
	assert_int_equal(ixdp_xdp_xmit(rig.b.port, 0, pkts, RING, 0), -ENXIO);
	xdp_rig_close(&rig.b);
	ixdp_config_init(&cfg);
	cfg.tx_queues = 64;
	cfg.tx_ring = 64;
	xdp_rig_open(&rig, &rig.b, &cfg);
	assert_int_equal(ixdp_xdp_xmit(rig.b.port, 0, pkts, RING, 0), -ENXIO);
	xdp_rig_close(&rig.b);

	/* A frame at fault in front: nothing is taken; later: all before it. */
	uint16_t len = pkts[3].len;
	pkts[0].len = pkts[3].len = 16;
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, pkts, 8, 0), -EINVAL);
	pkts[0].len = len;
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, pkts, 8, IXDP_XMIT_FLUSH), 3);
	pkts[3].len = len;
	xdp_rig_run(&rig);
	assert_int_equal(rig.a.sent, 3);

	/* Full: some are taken, the rest is still the caller's, who may send it again. */
	rig.a.hold = true;
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, pkts + 3, RING - 3, 0), RING - 4);
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 0, pkts + RING - 1, 1, 0), 0);
	/* Only this worker's queue is. */
	assert_int_equal(ixdp_xdp_xmit(rig.a.port, 1, pkts + RING - 1, 1, 0), 1);
	rig.a.hold = false;
	xdp_rig_run(&rig);
	assert_int_equal(rig.a.sent, RING);
	assert_int_equal(xdp_rig_queue_stats(&rig.a, 0).packets, RING - 1);
	assert_int_equal(xdp_rig_queue_stats(&rig.a, 1).packets, 1);
}

/* From a program everything that waits for programs to end would wait for itself. */
static uint32_t meddle(struct ixdp_xdp_buff *xdp, void *arg) {
	int *errs = arg;
	errs[0] = ixdp_xdp_attach(xdp->port, NULL, NULL);
	errs[1] = ixdp_xdp_attach(rig.b.port, NULL, NULL);
	errs[2] = ixdp_stop(rig.b.port);
	return XDP_DROP;
}

static void program_cannot_change_programs(void **state) {
	struct ixdp_pkt pkt;
	int errs[3];
	(void)state;
	xdp_rig_open(&rig, &rig.b, NULL);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, meddle, errs), 0);
	assert_true(xdp_rig_inject(&rig.a, 60, 0, 0));
	xdp_rig_run(&rig);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, &pkt, 1), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).drop, 1);
	assert_int_equal(errs[0], -EDEADLK);
	assert_int_equal(errs[1], -EDEADLK);
	assert_int_equal(errs[2], -EIO);
	xdp_rig_errors = 0; /* ixdp_stop() has said why */
	/* All is as it was. */
	assert_int_equal(ixdp_xdp_xmit(rig.b.port, 0, NULL, 0, 0), 0);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), 0);
}

/* A worker that sits inside a program until it is let go. */
static atomic_bool inside, let_go;

static uint32_t sit(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)arg;
	inside = true;
	while (xdp->worker == 1 && !let_go)
		sched_yield();
	return XDP_DROP;
}

static void *poll_once(void *arg) {
	struct ixdp_pkt pkt;
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 1, &pkt, 1), 0);
	return arg;
}

static pthread_t start_sitting(void) {
	pthread_t thread;
	inside = let_go = false;
	assert_int_equal(ixdp_xdp_attach(rig.a.port, sit, NULL), 0);
	assert_true(xdp_rig_inject(&rig.a, 60, 0, 0));
	assert_true(xdp_rig_inject(&rig.a, 60, 0, 1));
	xdp_rig_run(&rig);
	assert_int_equal(pthread_create(&thread, NULL, poll_once, NULL), 0);
	while (!inside)
		sched_yield();
	return thread;
}

static void queue_is_polled_by_one_worker_at_a_time(void **state) {
	struct ixdp_pkt pkt;
	(void)state;
	pthread_t thread = start_sitting();
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, &pkt, 1), 0);
	struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.a, 0);
	assert_int_equal(xdp_rig_counted(&stats), 0);
	let_go = true;
	pthread_join(thread, NULL);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, &pkt, 1), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).drop, 2);
}

static void worker_that_stays_inside_is_not_waited_for_for_ever(void **state) {
	unsigned limit = workers_wait_ms;
	(void)state;
	workers_wait_ms = 10;
	xdp_rig_open(&rig, &rig.b, NULL);
	pthread_t thread = start_sitting();
	assert_int_equal(ixdp_xdp_attach(rig.a.port, drop, NULL), -ETIMEDOUT);
	error_says("worker 1");
	/* The place of `sit` cannot be used yet; and what it may send to cannot be stopped. */
	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), -ETIMEDOUT);
	assert_int_equal(ixdp_stop(rig.b.port), -EIO);
	xdp_rig_errors = 0;
	assert_int_equal(ixdp_xdp_xmit(rig.b.port, 0, NULL, 0, 0), 0);
	workers_wait_ms = limit;
	let_go = true;
	pthread_join(thread, NULL);

	struct ixdp_pkt pkt;
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, &pkt, 1), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).drop, 2);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), 0);
	assert_int_equal(ixdp_stop(rig.b.port), 0);
}

/*
 * xdp-tools 684394f: a program that ran before its configuration was there never recovered. Here
 * frames wait in front of the program, and what it reads changes under it.
 */
static _Atomic uint32_t n_targets;

static uint32_t spread(struct ixdp_xdp_buff *xdp, void *arg) {
	_Atomic uint32_t *n = arg;
	return *n == 0 ? XDP_ABORTED : xdp_rig_tag(xdp->data) % *n == 0 ? XDP_TX : XDP_DROP;
}

static void program_recovers_once_configured(void **state) {
	struct ixdp_pkt pkts[32];
	(void)state;
	for (uint32_t i = 0; i < 30; i++)
		assert_true(xdp_rig_inject(&rig.a, 60, 0, i));
	xdp_rig_run(&rig);
	n_targets = 0;
	assert_int_equal(ixdp_xdp_attach(rig.a.port, spread, &n_targets), 0);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, pkts, 10), 0);
	n_targets = 2;
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, pkts, 20), 0);
	struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.a, 0);
	assert_int_equal(stats.aborted, 10);
	assert_int_equal(stats.tx, 10);
	assert_int_equal(stats.drop, 10);
}

int main(void) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    cmocka_unit_test(workers_are_declared_once_and_first),
	    TEST(queues_are_what_is_left),
	    TEST(mtu_has_the_same_limit_in_both_orders),
	    TEST(jumbo_frames_pass_and_count_once),
	    TEST(no_such_queue_or_worker),
	    TEST(plain_sending_on_xdp_queue_is_refused),
	    TEST(xmit_keeps_its_contract),
	    TEST(program_cannot_change_programs),
	    TEST(queue_is_polled_by_one_worker_at_a_time),
	    TEST(worker_that_stays_inside_is_not_waited_for_for_ever),
	    TEST(program_recovers_once_configured),
	};
	return cmocka_run_group_tests(tests, xdp_rig_setup_stepped, NULL);
}
