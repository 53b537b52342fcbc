/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More workers than XDP TX queues. How many workers there are is said once a process, so each
 * number has a process of its own: this program again, with the number as its argument.
 */
#include "xdp_rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/regs.h"

enum {
	MAX_THREADS = 200,
	MAX_QUEUES = 64,
	FRAMES = 100000,     /* of a configuration, in its main phase */
	FRAMES_AFTER = 4000, /* after each change */
	RX_QUEUES = 2,
	RX_WAITING = 256, /* injected and not yet counted: the RX rings hold them all */
	BATCH = 16,
	RING = 128,
	LIMIT_S = 100, /* of a phase, far above what it takes */
};

/* How a frame gets out. */
enum path { XMIT_A, XMIT_B, TX, REDIRECT, REDIRECT_SELF, PATHS };

static unsigned threads;  /* workers of this process */
static unsigned n_queues; /* XDP TX queues, as asked for */
static struct xdp_rig rig;

static unsigned queues(void) { return n_queues < threads ? n_queues : threads; }

/* What the running thread's batch has of each path: one acquisition each. */
static _Thread_local bool in_batch[PATHS];

static uint32_t by_code(struct ixdp_xdp_buff *xdp, void *arg) {
	enum path path = xdp_rig_code(xdp->data) >> 16;
	(void)arg;
	in_batch[path] = true;
	return path == TX ? XDP_TX
			  : ixdp_xdp_redirect(xdp, path == REDIRECT ? rig.b.port : rig.a.port);
}

static uint32_t by_code_too(struct ixdp_xdp_buff *xdp, void *arg) { return by_code(xdp, arg); }

static void open_ports(void) {
	struct ixdp_config cfg;
	ixdp_config_init(&cfg);
	cfg.rx_queues = RX_QUEUES;
	cfg.tx_queues = 0;
	cfg.xdp_queues = n_queues;
	cfg.tx_ring = RING;
	struct ixdp_config needs = cfg, plain;
	needs.threads = threads;
	ixdp_config_init(&plain);
	xdp_rig_begin(&rig, 2 * ixdp_pool_needed(&needs) + ixdp_pool_needed(&plain));
	xdp_rig_open(&rig, &rig.a, &cfg);
	xdp_rig_open(&rig, &rig.b, &cfg);
	xdp_rig_open_plain(&rig, &rig.c, NULL);
	assert_int_equal(ixdp_xdp_queues(rig.a.port), queues());
}

/* --- who sends where ---------------------------------------------------------------------- */

/* The only queue of both ports on which a frame more has been sent since the last call. */
static unsigned moved_queue(uint64_t before[2][MAX_QUEUES]) {
	unsigned found = UINT32_MAX;
	for (unsigned p = 0; p < 2; p++)
		for (unsigned q = 0; q < queues(); q++) {
			uint64_t now = xdp_rig_queue_stats(p ? &rig.b : &rig.a, q).packets;
			if (now != before[p][q]) {
				assert_int_equal(now, before[p][q] + 1);
				assert_int_equal(found, UINT32_MAX);
				found = q;
			}
			before[p][q] = now;
		}
	return found;
}

/* A frame by one path, as one worker. */
static void send_one(enum path path, unsigned worker) {
	struct ixdp_pkt pkt;
	if (path == XMIT_A || path == XMIT_B) {
		pkt = xdp_rig_make(&rig, 60, path << 16, worker);
		struct ixdp_port *port = path == XMIT_A ? rig.a.port : rig.b.port;
		assert_int_equal(ixdp_xdp_xmit(port, worker, &pkt, 1, 0), 1);
	} else {
		assert_true(xdp_rig_inject(&rig.a, 60, path << 16, worker));
		xdp_rig_run(&rig);
		for (unsigned queue = 0; queue < RX_QUEUES; queue++)
			assert_int_equal(ixdp_xdp_poll(rig.a.port, queue, worker, &pkt, 1), 0);
	}
	xdp_rig_run(&rig);
}

/*
 * ethernet-linux-i40e 19, netdev "Fix panic during XDP_TX with > 64 CPUs": a thread's number was
 * taken for a queue's.
 */
static void workers_spread_evenly_by_every_path(void **state) {
	uint64_t packets[2][MAX_QUEUES] = {0};
	unsigned workers_of[MAX_QUEUES] = {0}, least = UINT32_MAX, most = 0, shared = 0;
	(void)state;
	softnic_set_stepped(true);
	open_ports();
	const unsigned n = queues();
	assert_int_not_equal(n, 0);
	if (n == 0) return; /* which clang-tidy does not see */
	assert_int_equal(ixdp_xdp_attach(rig.a.port, by_code, NULL), 0);
	for (unsigned worker = 0; worker < threads; worker++) {
		for (enum path path = 0; path < PATHS; path++) {
			send_one(path, worker);
			assert_int_equal(moved_queue(packets), worker % n);
		}
		workers_of[worker % n]++;
	}
	assert_int_equal(rig.a.sent + rig.b.sent, threads * PATHS);
	for (unsigned q = 0; q < queues(); q++) {
		struct ixdp_xdp_queue_stats stats = xdp_rig_queue_stats(&rig.a, q);
		least = workers_of[q] < least ? workers_of[q] : least;
		most = workers_of[q] > most ? workers_of[q] : most;
		/* A queue locks exactly if several workers come to it. */
		assert_int_equal(stats.shared, workers_of[q] > 1);
		assert_int_equal(stats.locked, workers_of[q] > 1 ? workers_of[q] * 3 : 0);
		shared += stats.shared;
	}
	assert_true(most - least <= 1);
	assert_int_equal(shared, threads - queues() < queues() ? threads - queues() : queues());
	xdp_rig_end(&rig);
	softnic_set_stepped(false);
}

/* --- all at once -------------------------------------------------------------------------- */

static struct {
	unsigned quota;			    /* frames that each worker sends by itself */
	uint32_t injected, total;	    /* tags 0 to total - 1; first those of workers */
	uint8_t seen[FRAMES + MAX_THREADS]; /* on a wire, by tag: by the NICs' thread only */
	atomic_uint on_wire;
	atomic_uint finished; /* workers with their quota */
	atomic_bool stop;
	_Atomic uint64_t batches[2][MAX_QUEUES]; /* since open, handed to a queue of a or b */
	uint64_t full_before;
	struct timespec began;
} phase;

static bool on_wire(const uint8_t *frame, size_t len, void *arg) {
	uint32_t tag = xdp_rig_tag(frame);
	(void)arg, (void)len;
	if (tag < phase.total) phase.seen[tag]++;
	atomic_fetch_add_explicit(&phase.on_wire, 1, memory_order_release);
	return true;
}

static unsigned by_tag(const uint8_t *frame, size_t len, void *arg) {
	(void)len, (void)arg;
	return xdp_rig_tag(frame) % RX_QUEUES;
}

static bool late(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - phase.began.tv_sec > LIMIT_S;
}

static void count_batch(unsigned port, unsigned worker) {
	atomic_fetch_add_explicit(&phase.batches[port][worker % queues()], 1, memory_order_relaxed);
}

static void poll_counting(unsigned queue, unsigned worker) {
	struct ixdp_pkt pkts[BATCH];
	memset(in_batch, 0, sizeof(in_batch));
	if (ixdp_xdp_poll(rig.a.port, queue, worker, pkts, BATCH) != 0)
		abort(); /* the program passes none */
	if (in_batch[TX]) count_batch(0, worker);
	if (in_batch[REDIRECT_SELF]) count_batch(0, worker);
	if (in_batch[REDIRECT]) count_batch(1, worker);
}

static void *work(void *arg) {
	unsigned worker = (uintptr_t)arg, done = 0;
	while (!phase.stop) {
		unsigned n = 1 + (worker + done) % BATCH, port = done % 2;
		struct ixdp_pkt pkts[BATCH];
		/* Fewer workers than queues: some poll several. More: they meet there. */
		for (unsigned queue = worker % RX_QUEUES; queue < RX_QUEUES; queue += threads)
			poll_counting(queue, worker);
		if (n > phase.quota - done) n = phase.quota - done;
		if (n == 0) {
			sched_yield();
			continue;
		}
		n = ixdp_alloc(rig.pool, pkts, n);
		for (unsigned i = 0; i < n; i++) {
			pkts[i].len = 60;
			xdp_rig_frame(pkts[i].data, 60, port << 16 | worker,
				      worker * phase.quota + done + i);
		}
		int sent =
		    ixdp_xdp_xmit(port ? rig.b.port : rig.a.port, worker, pkts, n, IXDP_XMIT_FLUSH);
		if (sent < 0) abort();
		count_batch(port, worker);
		ixdp_free(rig.pool, pkts + sent, n - sent);
		if (sent == 0) sched_yield();
		done += sent;
		if (done == phase.quota) phase.finished++;
	}
	return NULL;
}

/* What the program's frames came to, of all RX queues: sent, and dropped as the ring was full. */
static uint64_t counted(uint64_t *full) {
	uint64_t sum = 0;
	*full = 0;
	for (unsigned q = 0; q < RX_QUEUES; q++) {
		struct ixdp_xdp_stats stats = xdp_rig_stats(&rig.a, q);
		sum += xdp_rig_counted(&stats);
		*full += stats.tx_full + stats.redirect_full;
	}
	return sum;
}

/* Frames by all paths of all workers; then every number must agree. */
static void traffic(unsigned frames) {
	static pthread_t workers[MAX_THREADS];
	uint64_t full_before, full, before = counted(&full_before);
	uint32_t injecting = frames / 4, twice = 0, never = 0;
	phase.quota = (frames - injecting) / threads + 1;
	phase.total = phase.quota * threads + injecting;
	assert_true(phase.total <= sizeof(phase.seen));
	memset(phase.seen, 0, sizeof(phase.seen));
	phase.on_wire = phase.finished = phase.injected = 0;
	phase.stop = false;
	clock_gettime(CLOCK_MONOTONIC, &phase.began);
	for (uintptr_t i = 0; i < threads; i++)
		assert_int_equal(pthread_create(&workers[i], NULL, work, (void *)i), 0);
	for (;;) {
		uint64_t now = counted(&full) - before;
		if (phase.injected < injecting && phase.injected - now < RX_WAITING) {
			uint32_t tag = phase.quota * threads + phase.injected;
			enum path path = TX + phase.injected / 3 % 3;
			phase.injected += xdp_rig_inject(&rig.a, 60, path << 16, tag);
		} else if (now == injecting && phase.finished == threads &&
			   phase.on_wire + full - full_before == phase.total) {
			break;
		} else {
			sched_yield();
		}
		if (late()) break;
	}
	phase.stop = true;
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i], NULL);
	assert_int_equal(phase.injected, injecting);
	assert_int_equal(phase.on_wire + full - full_before, phase.total);
	for (uint32_t tag = 0; tag < phase.total; tag++) {
		bool mine = tag < phase.quota * threads;
		twice += phase.seen[tag] > 1;
		never += phase.seen[tag] == 0;
		if (mine) assert_int_equal(phase.seen[tag], 1);
	}
	assert_int_equal(twice, 0);
	assert_int_equal(never, full - full_before);
}

/* One acquisition per batch and target where workers share, none elsewhere; the NIC agrees. */
static void check_queues(void) {
	struct ixdp_stats totals[2];
	for (unsigned p = 0; p < 2; p++) {
		struct xdp_end *end = p ? &rig.b : &rig.a;
		uint64_t packets = 0;
		for (unsigned q = 0; q < queues(); q++) {
			struct ixdp_xdp_queue_stats stats = xdp_rig_queue_stats(end, q);
			bool shared = q + queues() < threads;
			assert_int_equal(stats.shared, shared);
			assert_int_equal(stats.locked, shared ? phase.batches[p][q] : 0);
			assert_true(stats.contended <= stats.locked);
			if (!shared) assert_int_equal(stats.contended + stats.yields, 0);
			/* A descriptor each: the NIC's head is where the count says. */
			assert_int_equal(softnic_peek(end->nic, REG_N(TDH, q)),
					 stats.packets % RING);
			packets += stats.packets;
		}
		assert_int_equal(ixdp_stats_get(end->port, &totals[p]), 0);
		assert_int_equal(totals[p].tx_packets, packets);
		assert_int_equal(totals[p].tx_taken, packets);
		assert_int_equal(totals[p].rx_dropped, 0);
	}
	assert_int_equal(xdp_rig_errors, 0);
}

/*
 * netdev, "let the xdpdrv work with more than 64 cpus", v1: redirect went without a lock. Its fix
 * counted users of the lock, and lost it with the first change: "Fix panic during XDP_TX".
 */
static void every_frame_is_sent_once_whatever_changes(void **state) {
	(void)state;
	open_ports();
	memset(&phase, 0, sizeof(phase));
	softnic_tap(rig.a.nic, on_wire, NULL);
	softnic_tap(rig.b.nic, on_wire, NULL);
	softnic_steer(rig.a.nic, by_tag, NULL);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, by_code, NULL), 0);
	traffic(FRAMES);
	check_queues();

	assert_int_equal(ixdp_xdp_attach(rig.a.port, by_code_too, NULL), 0);
	traffic(FRAMES_AFTER);
	check_queues();

	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), 0);
	assert_int_equal(ixdp_xdp_attach(rig.a.port, by_code, NULL), 0);
	traffic(FRAMES_AFTER);
	check_queues();

	xdp_rig_close(&rig.c);
	traffic(FRAMES_AFTER);
	check_queues();

	assert_int_equal(ixdp_mtu_set(rig.a.port, 9000), -EMSGSIZE);
	traffic(FRAMES_AFTER);
	check_queues();
	xdp_rig_end(&rig);
}

static int with_queues(void **state) {
	n_queues = *(unsigned *)*state;
	return 0;
}

int main(int argc, char **argv) {
	static unsigned numbers[] = {1, 4, 63, MAX_QUEUES};
	struct CMUnitTest tests[8];
	char names[8][64];
	threads = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	if (threads > MAX_THREADS || ixdp_xdp_workers(threads) != 0) {
		fprintf(stderr, "usage: %s WORKERS (1 to %d)\n", argv[0], MAX_THREADS);
		return 2;
	}
	for (unsigned i = 0; i < 8; i++) {
		snprintf(names[i], sizeof(names[i]), "%s, %u XDP TX queues",
			 i % 2 ? "every frame is sent once, whatever changes"
			       : "workers spread evenly",
			 numbers[i / 2]);
		tests[i] = (struct CMUnitTest){names[i],
					       i % 2 ? every_frame_is_sent_once_whatever_changes
						     : workers_spread_evenly_by_every_path,
					       with_queues, NULL, &numbers[i / 2]};
	}
	return cmocka_run_group_tests(tests, xdp_rig_setup, NULL);
}
