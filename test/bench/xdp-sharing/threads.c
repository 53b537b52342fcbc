/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it costs when threads share XDP TX queues: 1 to 256 of them on 64, 4 and 1 queues. All send
 * at once, as much as the rings take; then the software NIC steps, while nobody sends; and again.
 * ../README.md says how to read it.
 */
#include <ixdp/ixdp.h>
#include <ixdp/xdp.h>

#include "../measure.h"
#include "softnic/softnic.h"

#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_THREADS = 256,
	RS_DISTANCE = 32,    /* packets that the driver takes back at once */
	MAX_TURN = 256,	     /* packets of a worker at once */
	MAX_SAMPLES = 1024,  /* turns of a worker that are kept */
	GAVE_AWAY_NS = 1000, /* below that the clocks of CPU time and time differ by themselves */
	BARRIER_SPINS = 1000,
	ALONE_PART = 4, /* of the time: one worker sends alone */
};

static const unsigned queue_counts[] = {64, 4, 1}, batches[] = {1, 8, 32, 64};

enum {
	QUEUE_COUNTS = sizeof(queue_counts) / sizeof(queue_counts[0]),
	BATCHES = sizeof(batches) / sizeof(batches[0]),
	THREAD_COUNTS = 9, /* 1, 2, 4 ... 256 */
	CASES = QUEUE_COUNTS * BATCHES * THREAD_COUNTS,
};

struct question {
	unsigned threads, queues, batch, ms;
};

/* Per packet: the middle of all turns; the mean in time, and in CPU time; in the timer's unit. */
struct cost {
	double middle, mean, cpu;
};

struct answer {
	struct cost alone, all;
	uint64_t packets, sends, locked, contended, yields; /* of all */
	unsigned queues, shared;
	bool huge_pages;
};

struct worker {
	pthread_t thread;
	struct bench *bench;
	unsigned index;
	uint64_t packets, sends, turns;
	double time, cpu;
	double samples[MAX_SAMPLES];
};

/* Workers begin at the same time, so they spin for a while before they let others run. */
struct barrier {
	unsigned workers, arrived, generation;
};

struct bench {
	struct question q;
	struct ixdp_port *port;
	struct ixdp_pool *pool;
	struct softnic *nic;
	unsigned queues;
	unsigned turn;	 /* packets of a worker in a turn */
	unsigned groups; /* of workers that take turns, as the rings do not take all at once */
	double ns, timer, cpu_clock; /* of the timer's unit; what reading the clocks costs */
	struct barrier barrier;
	uint64_t deadline;
	bool stop;
	uint64_t sent; /* packets that left the NIC */
	struct worker *workers;
};

/* True for one of them, the last. */
static bool barrier_wait(struct barrier *b) {
	unsigned generation = __atomic_load_n(&b->generation, __ATOMIC_RELAXED), spins = 0;

	if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) == b->workers) {
		b->arrived = 0;
		__atomic_store_n(&b->generation, generation + 1, __ATOMIC_RELEASE);
		return true;
	}
	while (__atomic_load_n(&b->generation, __ATOMIC_ACQUIRE) == generation)
		if (++spins % BARRIER_SPINS == 0) sched_yield();
	return false;
}

/* How much of the time between was this thread's: all, unless the processor went elsewhere. */
static double cpu_time(const struct bench *b, double time, uint64_t cpu_ns) {
	double mine = ((double)cpu_ns - b->cpu_clock) / b->ns;

	return (time - mine) * b->ns > GAVE_AWAY_NS ? mine : time;
}

static void send_turn(struct bench *b, struct worker *w, const struct ixdp_pkt *pkts) {
	unsigned n = b->turn, batch = b->q.batch, sent = 0;
	uint64_t start, end, cpu;
	double time;

	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	start = timer_start();
	for (unsigned i = 0; i < n; i += batch)
		sent += (unsigned)ixdp_xdp_xmit(b->port, w->index, pkts + i, batch, 0);
	end = timer_end();
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	if (sent != n) fail("a ring was full");
	time = (double)(end - start) - b->timer;
	w->time += time;
	w->cpu += cpu_time(b, time, cpu);
	w->samples[w->turns++ % MAX_SAMPLES] = time / n;
	w->packets += n;
	w->sends += n / batch;
}

static void *work(void *arg) {
	struct worker *w = arg;
	struct bench *b = w->bench;
	struct ixdp_pkt pkts[MAX_TURN];

	for (unsigned round = 0; !b->stop; round++) {
		bool mine = w->index / b->queues % b->groups == round % b->groups;

		if (mine && ixdp_alloc(b->pool, pkts, b->turn) != (int)b->turn)
			fail("the pool is empty");
		for (unsigned i = 0; mine && i < b->turn; i++)
			pkts[i].len = IXDP_MIN_FRAME;
		barrier_wait(&b->barrier);
		if (mine) send_turn(b, w, pkts);
		if (barrier_wait(&b->barrier)) {
			unsigned moved;

			while ((moved = softnic_step(b->nic, MAX_TURN)) > 0)
				b->sent += moved;
			b->stop = clock_ns(CLOCK_MONOTONIC) > b->deadline;
		}
		barrier_wait(&b->barrier);
	}
	return NULL;
}

/* So many workers, from the first on, for some time. */
static struct cost run(struct bench *b, unsigned active, uint64_t ns) {
	double *samples = malloc(sizeof(double) * MAX_SAMPLES * active);
	struct cost cost = {0};
	uint64_t packets = 0;
	size_t n = 0;

	if (!samples) fail("out of memory");
	b->stop = false;
	b->deadline = clock_ns(CLOCK_MONOTONIC) + ns;
	b->barrier = (struct barrier){.workers = active};
	for (unsigned i = 0; i < active; i++) {
		b->workers[i] = (struct worker){.bench = b, .index = i};
		if (pthread_create(&b->workers[i].thread, NULL, work, &b->workers[i]) != 0)
			fail("cannot start a thread");
	}
	for (unsigned i = 0; i < active; i++) {
		struct worker *w = &b->workers[i];

		pthread_join(w->thread, NULL);
		cost.mean += w->time;
		cost.cpu += w->cpu;
		packets += w->packets;
		for (unsigned s = 0; s < w->turns && s < MAX_SAMPLES; s++)
			samples[n++] = w->samples[s];
	}
	cost.middle = median(samples, (unsigned)n);
	cost.mean /= (double)packets;
	cost.cpu /= (double)packets;
	free(samples);
	return cost;
}

/* Whole batches, as many as the ring takes of all workers of a queue; else workers take turns. */
static void plan(struct bench *b, unsigned ring) {
	unsigned workers = (b->q.threads + b->queues - 1) / b->queues, batch = b->q.batch, fit;

	/* One descriptor stays unused, and the last few packets are not taken back yet. */
	ring -= RS_DISTANCE;
	b->turn = ring / workers / batch * batch;
	if (b->turn > MAX_TURN) b->turn = MAX_TURN;
	if (b->turn < batch) b->turn = batch;
	fit = ring / b->turn;
	b->groups = (workers + fit - 1) / fit;
}

static void bench_open(struct bench *b) {
	struct ixdp_pool_config pool = {.numa_node = -1, .ordinary_pages = true};
	double cpu_clock[101];
	struct ixdp_config cfg;

	softnic_set_stepped(true);
	ixdp_config_init(&cfg);
	cfg.rx_queues = 0;
	cfg.tx_queues = 0;
	cfg.xdp_queues = b->q.threads < b->q.queues ? b->q.threads : b->q.queues;
	cfg.tx_ring = b->q.queues > 4 ? 512 : 4096;
	cfg.threads = b->q.threads;
	pool.buffers = ixdp_pool_needed(&cfg);
	if (ixdp_xdp_workers(b->q.threads) < 0 || ixdp_pool_create(&b->pool, &pool) < 0)
		fail("workers and buffers");
	cfg.pool = b->pool;
	if (ixdp_xdp_open(&b->port, "soft:bench", &cfg) < 0) fail("soft:bench");
	b->nic = softnic_find("bench");
	softnic_tap(b->nic, NULL, NULL);
	b->queues = ixdp_xdp_queues(b->port);
	plan(b, cfg.tx_ring);
	b->ns = timer_ns();
	b->timer = timer_cost();
	for (unsigned i = 0; i < 101; i++) {
		uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		cpu_clock[i] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start);
	}
	b->cpu_clock = median(cpu_clock, 101);
}

/* What workers have counted is what queues have, and what left the NIC. */
static void add_up(struct bench *b, struct answer *a, const struct answer *before) {
	uint64_t packets = 0, sends = 0;

	*a = (struct answer){.queues = b->queues};
	for (unsigned q = 0; q < b->queues; q++) {
		struct ixdp_xdp_queue_stats s;

		ixdp_xdp_queue_stats_get(b->port, q, &s);
		if (s.shared != (q + b->queues < b->q.threads) || (!s.shared && s.locked > 0))
			fail("a queue is shared, or not, against the rule");
		if (s.contended > s.locked || (s.yields > 0 && s.contended == 0))
			fail("more waiting than locking");
		a->packets += s.packets;
		a->locked += s.locked;
		a->contended += s.contended;
		a->yields += s.yields;
		a->shared += s.shared;
	}
	if (a->packets != b->sent) fail("the NIC has sent another number of packets");
	a->packets -= before->packets;
	a->locked -= before->locked;
	a->contended -= before->contended;
	a->yields -= before->yields;
	for (unsigned i = 0, q = 0; i < b->q.threads; i++) {
		struct worker *w = &b->workers[i];

		packets += w->packets;
		a->sends += w->sends;
		if (q + b->queues < b->q.threads) sends += w->sends;
		if (++q == b->queues) q = 0;
	}
	if (a->packets != packets) fail("queues have sent another number of packets than workers");
	if (a->locked != sends) fail("a shared queue was not locked exactly once a batch");
}

/* A process of one configuration. */
static void child(void) {
	static struct bench b;
	struct answer a, alone;
	struct ixdp_pool_stats pool;
	struct cost one, all;

	/* No warnings: that there are too few huge pages is in the report. */
	if (!child_question(&b.q, sizeof(b.q))) return;
	b.workers = calloc(b.q.threads, sizeof(*b.workers));
	if (!b.workers) fail("out of memory");
	bench_open(&b);
	one = run(&b, 1, (uint64_t)b.q.ms * 1000000 / ALONE_PART);
	memset(b.workers + 1, 0, (b.q.threads - 1) * sizeof(*b.workers));
	add_up(&b, &alone, &(struct answer){0});
	all = run(&b, b.q.threads, (uint64_t)b.q.ms * 1000000);
	add_up(&b, &a, &alone);
	a.alone = one;
	a.all = all;
	ixdp_pool_get_stats(b.pool, &pool);
	a.huge_pages = pool.huge_pages;
	if (softnic_violations(b.nic) > 0) fail(softnic_last_violation(b.nic));
	ixdp_close(b.port);
	if (ixdp_pool_destroy(b.pool) < 0) fail("buffers");
	child_answer(&a, sizeof(a));
}

static struct answer ask(const struct question *q) {
	char *args[] = {"xdp-threads", "--child", NULL};
	struct child one = child_start("", args);
	struct answer a;

	child_ask(&one, q, sizeof(*q), &a, sizeof(a));
	child_end(&one);
	return a;
}

/* The middle of a member that lies so many bytes into the answers. */
static double middle(const struct answer *answers, unsigned n, size_t offset) {
	double values[n];

	for (unsigned i = 0; i < n; i++)
		memcpy(&values[i], (const char *)&answers[i] + offset, sizeof(double));
	return median(values, n);
}
#define MIDDLE(member) middle(answers, n, offsetof(struct answer, member))

static void report(const struct question *q, const struct answer *answers, unsigned n, FILE *json) {
	struct answer sum = answers[0];
	double locked;

	for (unsigned i = 1; i < n; i++) {
		sum.packets += answers[i].packets;
		sum.sends += answers[i].sends;
		sum.locked += answers[i].locked;
		sum.contended += answers[i].contended;
		sum.yields += answers[i].yields;
	}
	locked = sum.locked ? (double)sum.locked : 1;
	printf("%6u %7u %5u %6u  %7.1f %7.1f %7.1f %9.1f  %9.4f %10.2f %8.2f\n", q->queues,
	       q->threads, q->batch, sum.shared, MIDDLE(alone.middle), MIDDLE(all.middle),
	       MIDDLE(all.cpu), MIDDLE(all.mean), (double)sum.locked / (double)sum.packets,
	       1e3 * (double)sum.contended / locked, 1e3 * (double)sum.yields / locked);
	if (!json) return;
	fprintf(
	    json,
	    "{\"measurement\": \"threads\", \"queues\": %u, \"threads\": %u, \"batch\": %u, "
	    "\"shared\": %u, \"alone\": %.3f, \"median\": %.3f, \"cpu\": %.3f, \"mean\": %.3f, ",
	    q->queues, q->threads, q->batch, sum.shared, MIDDLE(alone.middle), MIDDLE(all.middle),
	    MIDDLE(all.cpu), MIDDLE(all.mean));
	fprintf(json,
		"\"packets\": %llu, \"batches\": %llu, \"locked\": %llu, \"contended\": %llu, "
		"\"yields\": %llu, \"rounds\": %u, \"huge_pages\": %s}\n",
		(unsigned long long)sum.packets, (unsigned long long)sum.sends,
		(unsigned long long)sum.locked, (unsigned long long)sum.contended,
		(unsigned long long)sum.yields, n, sum.huge_pages ? "true" : "false");
}

/* Blocks of a number of queues and a batch, as gnuplot likes them. */
static void measure(unsigned rounds, unsigned ms, unsigned max_threads, FILE *json) {
	struct answer *answers[CASES];
	struct question questions[CASES];
	unsigned n = 0, huge = 0;

	for (unsigned c = 0; c < CASES; c++) {
		struct question q = {.queues = queue_counts[c / (BATCHES * THREAD_COUNTS)],
				     .batch = batches[c / THREAD_COUNTS % BATCHES],
				     .threads = 1u << c % THREAD_COUNTS,
				     .ms = ms};
		if (q.threads > max_threads) continue;
		if (!(answers[n] = calloc(rounds, sizeof(struct answer)))) fail("out of memory");
		questions[n++] = q;
	}
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned c = 0; c < n; c++)
			answers[c][round] = ask(&questions[c]);
	for (unsigned c = 0; c < n; c++)
		huge += answers[c][0].huge_pages;
	printf("# huge pages in %u of %u configurations\n", huge, n);
	printf("# %s per packet sent: alone: one thread; then all: median, mean of CPU time, mean "
	       "of time\n# locks per packet; of 1000 locks those contended, and yields\n"
	       "# queues threads batch shared    alone  median     cpu      time  locks/pkt "
	       "contended/k yields/k\n",
	       unit);
	for (unsigned c = 0; c < n; c++) {
		if (c > 0 && questions[c].threads == 1) printf("\n\n");
		report(&questions[c], answers[c], rounds, json);
		free(answers[c]);
	}
}

static int usage(FILE *out, int status) {
	fputs("usage: xdp-threads [--rounds N] [--ms N] [--max-threads N] [--json FILE]\n"
	      "Cost of sending by 1, 2, 4 ... 256 threads on 64, 4 and 1 queues: N rounds (3) of\n"
	      "N ms (150) each.\n",
	      out);
	return status;
}

int main(int argc, char **argv) {
	static const struct option options[] = {
	    {"rounds", required_argument, NULL, 'r'},
	    {"ms", required_argument, NULL, 'm'},
	    {"json", required_argument, NULL, 'j'},
	    {"max-threads", required_argument, NULL, 't'},
	    {"child", no_argument, NULL, 'C'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	unsigned rounds = 3, ms = 150, max_threads = MAX_THREADS;
	FILE *json = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			rounds = number("rounds", optarg, 1, 1000);
		else if (c == 'm')
			ms = number("ms", optarg, 1, 60000);
		else if (c == 't')
			max_threads = number("max-threads", optarg, 1, MAX_THREADS);
		else if (c == 'j' && !(json = fopen(optarg, "w")))
			fail("cannot write the file of --json");
		else if (c == 'C')
			return child(), 0;
		else if (c == 'h' || c == '?')
			return usage(c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
	}
	if (optind < argc) return usage(stderr, 2);
	measure(rounds, ms, max_threads, json);
	if (json && fclose(json) != 0) fail("cannot write the file of --json");
	return 0;
}
