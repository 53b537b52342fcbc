/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a frame by what its program returns, and by what it does to the frame. */
#include "xdp_rig.h"

#include <limits.h>
#include <string.h>

enum { WORKERS = 2, RING = 512, BUFFERS = 32768 };

static struct xdp_rig rig;

static int setup(void **state) {
	(void)state;
	assert_int_equal(ixdp_xdp_workers(WORKERS), 0);
	xdp_rig_begin(&rig, BUFFERS);
	xdp_rig_open(&rig, &rig.a, NULL);
	xdp_rig_warnings = xdp_rig_errors = 0;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	xdp_rig_end(&rig);
	return 0;
}

/* Frames that arrived go through the program; those that pass are freed. Returns how many do. */
static unsigned poll_all(struct xdp_end *end) {
	struct ixdp_pkt pkts[200];
	unsigned passed = 0;
	xdp_rig_run(&rig);
	for (unsigned i = 0; i < 64; i++) {
		int n = ixdp_xdp_poll(end->port, 0, 0, pkts, 200);
		assert_true(n >= 0);
		ixdp_free(rig.pool, pkts, n);
		passed += n;
	}
	xdp_rig_run(&rig);
	return passed;
}

static uint32_t by_code(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)arg;
	return xdp_rig_code(xdp->data);
}

static void attach(ixdp_xdp_prog *prog, void *arg) {
	assert_int_equal(ixdp_xdp_attach(rig.a.port, prog, arg), 0);
}

static void passed_frames_come_whole_and_in_order(void **state) {
	struct ixdp_pkt pkts[200];
	(void)state;
	attach(by_code, NULL);
	for (uint32_t i = 0; i < 150; i++)
		assert_true(xdp_rig_inject(&rig.a, 60 + i, i % 3 ? XDP_PASS : XDP_DROP, i));
	xdp_rig_run(&rig);
	/* Chunks inside a poll leave no gap. */
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, pkts, 200), 100);
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t tag = i / 2 * 3 + 1 + i % 2;
		assert_int_equal(xdp_rig_tag(pkts[i].data), tag);
		assert_int_equal(pkts[i].len, 60 + tag);
	}
	ixdp_free(rig.pool, pkts, 100);
	struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.a, 0);
	assert_int_equal(stats.pass, 100);
	assert_int_equal(stats.drop, 50);
	assert_int_equal(xdp_rig_counted(&stats), 150);
}

static void without_a_program_all_pass(void **state) {
	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 100; i++)
			assert_true(xdp_rig_inject(&rig.a, 60, XDP_DROP, i));
		assert_int_equal(poll_all(&rig.a), 100);
		attach(by_code, NULL);
		attach(NULL, NULL);
	}
	assert_int_equal(xdp_rig_stats(&rig.a, 0).pass, 200);
}

/* Of n frames asked for, so many are looked at; the rest stays in the ring. */
static void no_more_than_asked_for(void **state) {
	struct ixdp_pkt pkts[65];
	(void)state;
	attach(by_code, NULL);
	for (uint32_t i = 0; i < 100; i++)
		assert_true(xdp_rig_inject(&rig.a, 60, XDP_DROP, i));
	xdp_rig_run(&rig);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, pkts, 0), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).drop, 0);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, pkts, 1), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).drop, 1);
	assert_int_equal(ixdp_xdp_poll(rig.a.port, 0, 0, pkts, 65), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).drop, 66);
}

/* ixgbe and the kernel warn and take it for XDP_ABORTED. */
static void unknown_verdict_is_aborted_with_one_warning(void **state) {
	static const struct {
		uint32_t verdict;
		const char *said;
	} cases[] = {{5, "returned 5,"},
		     {255, "returned 255,"},
		     {(uint32_t)-1, "returned 4294967295,"},
		     {UINT32_MAX, "returned 4294967295,"}};
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		attach(by_code, NULL);
		for (uint32_t k = 0; k < 10; k++)
			assert_true(xdp_rig_inject(&rig.a, 60, cases[i].verdict, k));
		assert_int_equal(poll_all(&rig.a), 0);
		struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.a, 0);
		assert_int_equal(stats.aborted, 10);
		assert_int_equal(xdp_rig_counted(&stats), 10);
		assert_int_equal(xdp_rig_warnings, 1);
		assert_non_null(strstr(xdp_rig_line, cases[i].said));
		teardown(state);
		setup(state);
	}
}

static void aborted_says_nothing(void **state) {
	(void)state;
	attach(by_code, NULL);
	assert_true(xdp_rig_inject(&rig.a, 60, XDP_ABORTED, 0));
	assert_int_equal(poll_all(&rig.a), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).aborted, 1);
	assert_int_equal(xdp_rig_warnings, 0);
}

/*
 * bpf-next, "ice: Fix XDP Tx ring overrun": what does not fit must be dropped, once. The NIC sends
 * nothing, the program sends all.
 */
static void full_ring_drops_and_resumes(void **state) {
	(void)state;
	attach(by_code, NULL);
	rig.a.hold = true;
	for (uint32_t i = 0; i < 2 * RING; i++) {
		assert_true(xdp_rig_inject(&rig.a, 60, XDP_TX, i));
		if (i % 100 == 99) assert_int_equal(poll_all(&rig.a), 0);
	}
	poll_all(&rig.a);
	struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.a, 0);
	assert_int_equal(stats.tx, RING - 1);
	assert_int_equal(stats.tx_full, RING + 1);
	assert_int_equal(rig.a.sent, 0);
	/* The rest is where it must be: in the RX ring, and in the pool. */
	assert_int_equal(BUFFERS - xdp_rig_available(&rig), RING - 1 + RING);

	rig.a.hold = false;
	xdp_rig_run(&rig);
	assert_int_equal(rig.a.sent, RING - 1);
	for (uint32_t i = 0; i < 100; i++)
		assert_true(xdp_rig_inject(&rig.a, 60, XDP_TX, 2 * RING + i));
	poll_all(&rig.a);
	stats = xdp_rig_stats(&rig.a, 0);
	assert_int_equal(stats.tx, RING - 1 + 100);
	assert_int_equal(stats.tx_full, RING + 1);
	assert_int_equal(rig.a.sent, RING - 1 + 100);
	for (uint32_t i = 0; i < RING - 1 + 100; i++)
		assert_int_equal(xdp_rig_tag(rig.a.frames[i].data),
				 i < RING - 1 ? i : i + RING + 1);
}

/* Another port's ring can be full too. */
static uint32_t to_port(struct ixdp_xdp_buff *xdp, void *arg) {
	return ixdp_xdp_redirect(xdp, arg);
}

static void full_target_drops_and_resumes(void **state) {
	(void)state;
	xdp_rig_open(&rig, &rig.b, NULL);
	attach(to_port, rig.b.port);
	rig.b.hold = true;
	for (uint32_t i = 0; i < 600; i++) {
		assert_true(xdp_rig_inject(&rig.a, 60, 0, i));
		if (i % 100 == 99) poll_all(&rig.a);
	}
	struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.a, 0);
	assert_int_equal(stats.redirect, RING - 1);
	assert_int_equal(stats.redirect_full, 600 - (RING - 1));
	assert_int_equal(xdp_rig_counted(&stats), 600);
	rig.b.hold = false;
	poll_all(&rig.a);
	assert_true(xdp_rig_inject(&rig.a, 60, 0, 600));
	poll_all(&rig.a);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).redirect, RING);
	assert_int_equal(rig.b.sent, RING);
	assert_int_equal(xdp_rig_tag(rig.b.frames[RING - 1].data), 600);
}

/* No XDP TX queue is left beside 64 plain ones. */
static void port_without_xdp_queues_sends_nothing(void **state) {
	struct ixdp_config cfg;
	(void)state;
	ixdp_config_init(&cfg);
	cfg.tx_queues = 64;
	cfg.tx_ring = 64;
	xdp_rig_open(&rig, &rig.b, &cfg);
	assert_int_equal(ixdp_xdp_queues(rig.b.port), 0);
	assert_int_equal(ixdp_xdp_attach(rig.b.port, by_code, NULL), 0);
	assert_true(xdp_rig_inject(&rig.b, 60, XDP_TX, 0));
	assert_int_equal(poll_all(&rig.b), 0);
	struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.b, 0);
	assert_int_equal(stats.tx_full, 1);
	assert_int_equal(xdp_rig_counted(&stats), 1);
}

/* One port of each kind as target, 7 frames to each. */
static uint32_t to_many(struct ixdp_xdp_buff *xdp, void *arg) {
	struct ixdp_port **targets = arg;
	return ixdp_xdp_redirect(xdp, targets[xdp_rig_tag(xdp->data) % 3]);
}

static void each_target_keeps_its_order(void **state) {
	struct ixdp_port *targets[3] = {rig.a.port};
	(void)state;
	xdp_rig_open(&rig, &rig.b, NULL);
	xdp_rig_open(&rig, &rig.c, NULL);
	targets[1] = rig.b.port;
	targets[2] = rig.c.port;
	attach(to_many, targets);
	for (uint32_t i = 0; i < 90; i++)
		assert_true(xdp_rig_inject(&rig.a, 60, 0, i));
	assert_int_equal(poll_all(&rig.a), 0);
	struct xdp_end *ends[] = {&rig.a, &rig.b, &rig.c};
	for (unsigned e = 0; e < 3; e++) {
		assert_int_equal(ends[e]->sent, 30);
		for (uint32_t i = 0; i < 30; i++)
			assert_int_equal(xdp_rig_tag(ends[e]->frames[i].data), 3 * i + e);
	}
	struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.a, 0);
	assert_int_equal(stats.redirect_self, 30);
	assert_int_equal(stats.redirect, 60);
	assert_int_equal(xdp_rig_counted(&stats), 90);
}

/* 10 frames to a target of one kind; they must all be counted by that cause. */
static void expect_cause(struct ixdp_port *target, size_t member) {
	struct ixdp_xdp_stats before = xdp_rig_stats(&rig.a, 0), after;
	attach(to_port, target);
	for (uint32_t i = 0; i < 10; i++)
		assert_true(xdp_rig_inject(&rig.a, 60, 0, i));
	assert_int_equal(poll_all(&rig.a), 0);
	after = xdp_rig_stats(&rig.a, 0);
	assert_int_equal(
	    *(uint64_t *)((char *)&after + member) - *(uint64_t *)((char *)&before + member), 10);
	assert_int_equal(xdp_rig_counted(&after) - xdp_rig_counted(&before), 10);
}

#define CAUSE(name) offsetof(struct ixdp_xdp_stats, redirect_##name)

static void each_cause_has_its_counter(void **state) {
	struct ixdp_pool_config pool_cfg = {
	    .buffers = 8192, .numa_node = -1, .ordinary_pages = true};
	struct ixdp_config cfg;
	struct ixdp_link link;
	struct ixdp_port *other;
	struct ixdp_pool *pool;
	(void)state;
	xdp_rig_open(&rig, &rig.b, NULL);
	expect_cause(rig.a.port, CAUSE(self));
	expect_cause(rig.b.port, offsetof(struct ixdp_xdp_stats, redirect));
	expect_cause(NULL, CAUSE(closed));

	assert_int_equal(ixdp_stop(rig.b.port), 0);
	expect_cause(rig.b.port, CAUSE(down));
	assert_int_equal(ixdp_start(rig.b.port), 0);
	expect_cause(rig.b.port, offsetof(struct ixdp_xdp_stats, redirect));

	/* Without link, as soon as somebody has looked. */
	assert_int_equal(softnic_fault(rig.b.nic, "link-down"), 0);
	assert_int_equal(ixdp_link_get(rig.b.port, &link), 0);
	assert_false(link.up);
	expect_cause(rig.b.port, CAUSE(down));
	assert_int_equal(softnic_fault(rig.b.nic, "none"), 0);
	assert_int_equal(ixdp_link_wait(rig.b.port, 10000, &link), 0);
	expect_cause(rig.b.port, offsetof(struct ixdp_xdp_stats, redirect));

	struct ixdp_port *was_b = rig.b.port;
	xdp_rig_close(&rig.b);
	expect_cause(was_b, CAUSE(closed));

	xdp_rig_open_plain(&rig, &rig.c, NULL);
	expect_cause(rig.c.port, CAUSE(unprepared));
	xdp_rig_close(&rig.c);
	ixdp_config_init(&cfg);
	cfg.tx_queues = 64;
	cfg.tx_ring = 64;
	xdp_rig_open(&rig, &rig.c, &cfg);
	expect_cause(rig.c.port, CAUSE(unprepared));

	/* Its ring would give the buffers to its own pool. */
	assert_int_equal(ixdp_pool_create(&pool, &pool_cfg), 0);
	ixdp_config_init(&cfg);
	cfg.pool = pool;
	assert_int_equal(ixdp_xdp_open(&other, "soft:other", &cfg), 0);
	expect_cause(other, CAUSE(unprepared));
	ixdp_close(other);
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    TEST(passed_frames_come_whole_and_in_order),
	    TEST(without_a_program_all_pass),
	    TEST(no_more_than_asked_for),
	    TEST(unknown_verdict_is_aborted_with_one_warning),
	    TEST(aborted_says_nothing),
	    TEST(full_ring_drops_and_resumes),
	    TEST(full_target_drops_and_resumes),
	    TEST(port_without_xdp_queues_sends_nothing),
	    TEST(each_target_keeps_its_order),
	    TEST(each_cause_has_its_counter),
	};
	return cmocka_run_group_tests(tests, xdp_rig_setup_stepped, NULL);
}
