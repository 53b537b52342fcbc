/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every frame is counted once, per RX queue: what the software NIC delivered there is what programs
 * made of it and what the ring refused, each by its name; and the wires got what is counted as
 * sent.
 */
#include "xdp_rig.h"

#include "driver/regs.h"

enum { WORKERS = 4, RX_QUEUES = 4, RING = 64, BUFFERS = 16384, KINDS = 12 };

static struct xdp_rig rig;
static struct ixdp_port *closed;

/* What a frame's code says shall become of it. */
enum kind {
	PASS,
	DROP,
	ABORT,
	UNKNOWN,
	BACK,
	TO_SELF,
	TO_B,
	TO_CLOSED,
	TO_PLAIN,
	TO_NONE,
	SHORTENED,
	LENGTHENED,
};

static uint32_t by_kind(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)arg;
	switch (xdp_rig_code(xdp->data)) {
	case PASS:
		return XDP_PASS;
	case DROP:
		return XDP_DROP;
	case BACK:
		return XDP_TX;
	case TO_SELF:
		return ixdp_xdp_redirect(xdp, xdp->port);
	case TO_B:
		return ixdp_xdp_redirect(xdp, rig.b.port);
	case TO_CLOSED:
		return ixdp_xdp_redirect(xdp, closed);
	case TO_PLAIN:
		return ixdp_xdp_redirect(xdp, rig.c.port);
	case TO_NONE:
		return XDP_REDIRECT;
	case SHORTENED:
		ixdp_xdp_adjust_tail(xdp, 14 - (int)(xdp->data_end - xdp->data));
		return XDP_TX;
	case LENGTHENED:
		ixdp_xdp_adjust_head(xdp, -100);
		return ixdp_xdp_redirect(xdp, rig.b.port);
	case ABORT:
		return XDP_ABORTED;
	default:
		return 77;
	}
}

static unsigned by_tag(const uint8_t *frame, size_t len, void *arg) {
	(void)len, (void)arg;
	return xdp_rig_tag(frame) % RX_QUEUES;
}

static int setup(void **state) {
	struct ixdp_config cfg;
	(void)state;
	assert_int_equal(ixdp_xdp_workers(WORKERS), 0);
	xdp_rig_begin(&rig, BUFFERS);
	ixdp_config_init(&cfg);
	cfg.rx_queues = RX_QUEUES;
	cfg.xdp_queues = 1; /* shared by all */
	cfg.rx_ring = cfg.tx_ring = RING;
	xdp_rig_open(&rig, &rig.b, &cfg);
	closed = rig.b.port;
	xdp_rig_open(&rig, &rig.a, &cfg);
	xdp_rig_close(&rig.b);
	xdp_rig_open_plain(&rig, &rig.c, NULL);
	xdp_rig_open(&rig, &rig.b, &cfg);
	if (closed == rig.b.port) closed = NULL; /* its memory is used again */
	softnic_steer(rig.a.nic, by_tag, NULL);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, by_kind, NULL), 0);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	xdp_rig_end(&rig);
	return 0;
}

/* As many as arrived, up to n for each queue, by a worker for each; those that pass are freed. */
static unsigned poll_queues(unsigned n) {
	struct ixdp_pkt pkts[256];
	unsigned passed = 0;
	for (unsigned q = 0; q < RX_QUEUES; q++) {
		int got = ixdp_xdp_poll(rig.a.port, q, q, pkts, n);
		assert_true(got >= 0);
		ixdp_free(rig.pool, pkts, got);
		passed += got;
	}
	return passed;
}

/* 10 frames of each kind on each queue. p4c-xdp 16: what was dropped counted as received. */
static void each_verdict_counts_under_its_name(void **state) {
	uint64_t sent = 0;
	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		for (uint32_t kind = 0; kind < KINDS; kind++) {
			for (uint32_t q = 0; q < RX_QUEUES; q++)
				assert_true(xdp_rig_inject(&rig.a, 60 + kind, kind, q));
			xdp_rig_run(&rig);
			assert_int_equal(poll_queues(256), kind == PASS ? RX_QUEUES : 0);
		}
	xdp_rig_run(&rig);
	for (unsigned q = 0; q < RX_QUEUES; q++) {
		struct ixdp_xdp_stats s = xdp_rig_stats(&rig.a, q);
		assert_int_equal(s.pass, 10);
		assert_int_equal(s.drop, 10);
		assert_int_equal(s.aborted, 20);
		assert_int_equal(s.tx, 20);
		assert_int_equal(s.tx_full, 0);
		assert_int_equal(s.redirect, 20);
		assert_int_equal(s.redirect_self, 10);
		assert_int_equal(s.redirect_full, 0);
		assert_int_equal(s.redirect_closed, 20);
		assert_int_equal(s.redirect_down, 0);
		assert_int_equal(s.redirect_unprepared, 10);
		assert_int_equal(xdp_rig_counted(&s), 10 * KINDS);
		sent += s.tx + s.redirect_self;
	}
	assert_int_equal(rig.a.sent, sent);
	assert_int_equal(rig.b.sent, RX_QUEUES * 20);
	assert_int_equal(rig.c.sent, 0);
}

static uint64_t random_state;

static uint32_t random_below(uint32_t n) {
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

/*
 * Any verdicts in any order, rings that are full, wires that stop, a target that goes up and down,
 * frames that the NIC has no room for and frames with errors: nothing is lost without a name.
 */
static void nothing_is_lost_without_a_name(void **state) {
	uint64_t kinds[RX_QUEUES][KINDS] = {0};
	uint64_t lost = 0, bad = 0, passed = 0, counted = 0, sent[2] = {0};
	unsigned injected = 0;
	(void)state;
	random_state = 4;
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t kind = random_below(KINDS), queue = random_below(RX_QUEUES);
		if (random_below(50) == 0) {
			uint8_t frame[60];
			xdp_rig_frame(frame, 60, DROP, queue);
			assert_true(softnic_inject_bad_crc(rig.a.nic, frame, 60));
			bad++;
		}
		assert_true(xdp_rig_inject(&rig.a, 60, kind, queue));
		injected++;
		kinds[queue][kind]++;
		switch (random_below(40)) {
		case 0:
			rig.a.hold = !rig.a.hold;
			break;
		case 1:
			rig.b.hold = !rig.b.hold;
			break;
		case 2:
			assert_int_equal(ixdp_stop(rig.b.port), 0);
			break;
		case 3:
			assert_int_equal(ixdp_start(rig.b.port), 0);
			break;
		case 4: /* long enough for rings to run over */
			for (unsigned k = 0; k < 2 * RING; k++, injected++)
				assert_true(xdp_rig_inject(&rig.a, 60, BACK, queue));
			kinds[queue][BACK] += 2 * RING;
			break;
		default:
			break;
		}
		xdp_rig_run(&rig);
		if (random_below(4) == 0) passed += poll_queues(1 + random_below(255));
	}
	rig.a.hold = rig.b.hold = false;
	for (unsigned i = 0; i < 10; i++) {
		xdp_rig_run(&rig);
		passed += poll_queues(256);
	}

	struct ixdp_stats stats, b;
	uint64_t pass = 0, full = 0, down = 0;
	assert_int_equal(ixdp_stats_get(rig.a.port, &stats), 0);
	assert_int_equal(ixdp_stats_get(rig.b.port, &b), 0);
	for (unsigned q = 0; q < RX_QUEUES; q++) {
		struct ixdp_xdp_stats s = xdp_rig_stats(&rig.a, q);
		/* The NIC's head says how many frames it has delivered here. */
		assert_int_equal(softnic_peek(rig.a.nic, REG_N(RDH, q)),
				 xdp_rig_counted(&s) % RING);
		counted += xdp_rig_counted(&s);
		assert_true(s.aborted <= kinds[q][ABORT] + kinds[q][UNKNOWN]);
		pass += s.pass;
		full += s.tx_full + s.redirect_full;
		down += s.redirect_down;
		sent[0] += s.tx + s.redirect_self;
		sent[1] += s.redirect;
	}
	lost = stats.rx_missed + stats.rx_no_desc;
	assert_int_equal(stats.rx_crc, bad);
	assert_int_equal(stats.rx_dropped, lost + bad);
	assert_int_equal(injected, counted + lost);
	assert_int_equal(stats.rx_packets, counted);
	assert_int_equal(pass, passed);
	assert_int_equal(rig.a.sent, sent[0]);
	assert_int_equal(stats.tx_packets, sent[0]);
	/* What waited in b's ring when it was stopped is lost, as ixdp_stop() says. */
	assert_true(rig.b.sent <= sent[1]);
	assert_int_equal(b.tx_taken, sent[1]);
	/* This test is worth something only if all of it has happened. */
	assert_true(full > 0 && down > 0 && lost > 0 && bad > 0 && passed > 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    TEST(each_verdict_counts_under_its_name),
	    TEST(nothing_is_lost_without_a_name),
	};
	return cmocka_run_group_tests(tests, xdp_rig_setup_stepped, NULL);
}
