/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver against the software NIC's own thread: what the sanitizers need to see. Nothing here
 * depends on who runs when, only on what must be true at the end.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <ixdp/ixdp.h>

#include "softnic/softnic.h"

enum { FRAMES = 30000, TRIES = 120 * 1000 };

static uint64_t now_ms(void) {
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000) + ts.tv_nsec / 1000000;
}

static struct ixdp_port *open_port(const char *name, const struct ixdp_config *cfg) {
	struct ixdp_port *port;

	if (ixdp_open(&port, name, cfg) != 0) fail_msg("%s: %s", name, ixdp_error());
	return port;
}

static void forward(struct ixdp_port *from, struct ixdp_port *to) {
	struct ixdp_pkt pkts[32];
	int got = ixdp_rx(from, 0, pkts, 32);
	int sent = 0;

	assert_true(got >= 0);
	while (sent < got) {
		int n = ixdp_tx(to, 0, &pkts[sent], got - sent);

		assert_true(n >= 0);
		if (n == 0) sched_yield();
		sent += n;
	}
	if (got == 0) sched_yield();
}

static struct ixdp_wire_stats wire(struct ixdp_port *port) {
	struct ixdp_wire_stats stats;

	assert_int_equal(ixdp_wire_stats_get(port, &stats), 0);
	return stats;
}

static bool drained(struct ixdp_port *port) { return wire(port).drained; }

/* Two generators through two ports, both ways: every frame arrives, whole and in order. */
static void forwarding_loses_nothing(void **state) {
	struct ixdp_port *a = open_port("soft:a,peer=gen,count=30000", NULL);
	struct ixdp_port *b = open_port("soft:b,peer=gen,count=30000,size=1514", NULL);
	uint64_t end = now_ms() + TRIES;
	struct ixdp_stats stats;
	struct ixdp_port *ports[] = {a, b};

	(void)state;
	while (wire(a).from_port_packets + wire(b).from_port_packets < 2 * FRAMES &&
	       now_ms() < end) {
		for (unsigned i = 0; i < 100; i++) {
			forward(a, b);
			forward(b, a);
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		struct ixdp_wire_stats w = wire(ports[i]);

		assert_int_equal(w.to_port_packets, FRAMES);
		assert_int_equal(w.from_port_packets, FRAMES);
		assert_int_equal(w.lost + w.misordered + w.corrupt + w.foreign, 0);
		assert_true(w.exhausted);
		assert_int_equal(ixdp_stats_get(ports[i], &stats), 0);
		assert_int_equal(stats.rx_packets, FRAMES);
		assert_int_equal(stats.tx_packets, FRAMES);
		assert_int_equal(stats.rx_dropped, 0);
		assert_true(drained(ports[i]));
		assert_int_equal(softnic_violations(softnic_find(i ? "b" : "a")), 0);
	}
	ixdp_close(a);
	ixdp_close(b);
}

struct worker {
	struct ixdp_port *port;
	unsigned queue;
	uint64_t sent;
};

/* Sends on a queue of its own with frames of a flow of its own. */
static void *send_on_queue(void *arg) {
	struct worker *worker = arg;
	struct ixdp_frame_config cfg = {.size = 60, .generator = 0x7000};
	struct ixdp_pool *pool = ixdp_port_pool(worker->port);

	while (worker->sent < FRAMES / 3) {
		struct ixdp_pkt pkts[17];
		uint64_t rest = FRAMES / 3 - worker->sent;
		unsigned n = ixdp_alloc(pool, pkts, rest < 17 ? rest : 17);

		for (unsigned i = 0; i < n; i++)
			pkts[i].len =
			    ixdp_frame_write(&cfg, worker->queue, worker->sent + i, pkts[i].data);
		int sent = ixdp_tx(worker->port, worker->queue, pkts, n);

		if (sent <= 0) {
			sent = 0;
			sched_yield();
		}
		ixdp_free(pool, &pkts[sent], n - sent);
		worker->sent += sent;
	}
	return NULL;
}

/* Three threads on three queues of one port, one pool, and a fourth that reads the statistics. */
static void queues_belong_to_threads(void **state) {
	struct worker workers[3];
	struct ixdp_config cfg;
	pthread_t threads[3];
	struct ixdp_stats stats;
	uint64_t end = now_ms() + TRIES;

	(void)state;
	ixdp_config_init(&cfg);
	cfg.tx_queues = 3;
	struct ixdp_port *port = open_port("soft:many", &cfg);

	for (unsigned i = 0; i < 3; i++) {
		workers[i] = (struct worker){port, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, send_on_queue, &workers[i]), 0);
	}
	do {
		assert_int_equal(ixdp_stats_get(port, &stats), 0);
		sched_yield();
	} while (stats.tx_packets < 3 * (FRAMES / 3) && now_ms() < end);

	uint64_t total = 0;

	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		total += workers[i].sent;
	}
	while (!drained(port) && now_ms() < end)
		sched_yield();
	assert_int_equal(ixdp_stats_get(port, &stats), 0);
	assert_int_equal(stats.tx_taken, total);
	assert_int_equal(stats.tx_packets, total);
	struct ixdp_wire_stats w = wire(port);

	assert_int_equal(w.from_port_packets, total);
	assert_int_equal(w.lost + w.misordered + w.corrupt + w.foreign, 0);
	ixdp_close(port);
}

static void *read_statistics(void *arg) {
	struct worker *worker = arg;
	struct ixdp_stats stats = {0};
	uint64_t end = now_ms() + TRIES;

	while (stats.tx_packets < FRAMES / 3 && now_ms() < end &&
	       ixdp_stats_get(worker->port, &stats) == 0)
		sched_yield();
	worker->sent = stats.tx_packets;
	return NULL;
}

/* The NIC's counters clear when read: what one thread has read is not lost for another. */
static void several_threads_may_ask_for_statistics(void **state) {
	struct ixdp_port *port = open_port("soft:asked", NULL);
	struct worker sender = {port, 0, 0}, readers[2] = {{port, 0, 0}, {port, 0, 0}};
	pthread_t threads[3];

	(void)state;
	assert_int_equal(pthread_create(&threads[0], NULL, read_statistics, &readers[0]), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, read_statistics, &readers[1]), 0);
	assert_int_equal(pthread_create(&threads[2], NULL, send_on_queue, &sender), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(readers[i].sent, FRAMES / 3);
	ixdp_close(port);
}

/* One thread receives while another one sends on the same port; frames come back by the loop. */
static void *receive_all(void *arg) {
	struct worker *worker = arg;
	struct ixdp_pool *pool = ixdp_port_pool(worker->port);
	struct ixdp_frame_checker *checker = ixdp_frame_checker_new();
	struct ixdp_frame_counts counts = {0};
	uint64_t end = now_ms() + TRIES;

	while (counts.frames < FRAMES / 3 && now_ms() < end) {
		struct ixdp_pkt pkts[32];
		int got = ixdp_rx(worker->port, 0, pkts, 32);

		for (int i = 0; i < got; i++)
			ixdp_frame_check(checker, pkts[i].data, pkts[i].len);
		ixdp_free(pool, pkts, got > 0 ? got : 0);
		if (got <= 0) sched_yield();
		ixdp_frame_checker_counts(checker, &counts);
	}
	worker->sent = counts.good - counts.misordered;
	ixdp_frame_checker_free(checker);
	return NULL;
}

static void receiving_and_sending_threads_share_a_pool(void **state) {
	struct ixdp_port *port = open_port("soft:round,peer=loop", NULL);
	struct worker sender = {port, 0, 0}, receiver = {port, 0, 0};
	pthread_t threads[2];
	struct ixdp_stats stats;

	(void)state;
	assert_int_equal(pthread_create(&threads[0], NULL, receive_all, &receiver), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, send_on_queue, &sender), 0);
	pthread_join(threads[1], NULL);
	pthread_join(threads[0], NULL);
	assert_int_equal(ixdp_stats_get(port, &stats), 0);
	assert_int_equal(stats.rx_packets + stats.rx_dropped, sender.sent);
	assert_int_equal(receiver.sent, stats.rx_packets);
	ixdp_close(port);
}

/* Each start is a new life of the NIC, whose thread works on all the while. */
static void a_port_is_stopped_and_started_in_full_traffic(void **state) {
	struct ixdp_config cfg;
	struct ixdp_port *port;

	(void)state;
	ixdp_config_init(&cfg);
	cfg.rx_queues = cfg.tx_queues = 2;
	port = open_port("soft:again,peer=gen", &cfg);
	for (unsigned round = 0; round < 20; round++) {
		struct ixdp_pkt pkts[32];
		unsigned frames = 0;
		uint64_t end = now_ms() + TRIES;

		while (frames < 300 && now_ms() < end) {
			int got = ixdp_rx(port, 0, pkts, 32);
			int sent = ixdp_tx(port, round % 2, pkts, got > 0 ? got : 0);

			assert_true(got >= 0 && sent >= 0);
			ixdp_free(ixdp_port_pool(port), pkts + sent, got - sent);
			frames += got;
		}
		assert_true(frames >= 300);
		assert_int_equal(ixdp_stop(port), 0);
		assert_int_equal(ixdp_rx(port, 0, pkts, 32), -ENETDOWN);
		assert_int_equal(ixdp_start(port), 0);
	}
	ixdp_close(port);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(forwarding_loses_nothing),
	    cmocka_unit_test(queues_belong_to_threads),
	    cmocka_unit_test(several_threads_may_ask_for_statistics),
	    cmocka_unit_test(receiving_and_sending_threads_share_a_pool),
	    cmocka_unit_test(a_port_is_stopped_and_started_in_full_traffic),
	};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
