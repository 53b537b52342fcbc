/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sharing an XDP TX queue costs the one thread that uses it: the queue's lock is off (as many
 * queues as workers), on (more workers than queues), or the driver was built without asking whether
 * there is one. The software NIC steps between the timed calls. ../README.md says how to read it.
 */
#include <ixdp/ixdp.h>
#include <ixdp/xdp.h>

#include "../measure.h"
#include "softnic/softnic.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUEUES = 2,
	THREADS_OFF = QUEUES,
	THREADS_ON = 2 * QUEUES,
	RING = 512,    /* the default of ixdp_config_init() */
	WINDOW = 256,  /* packets between two readings of the clock, or steps of the NIC */
	WINDOWS = 8,   /* of a sample */
	POLL_MAX = 64, /* packets that ixdp_xdp_poll() sends at once */
};

struct bench {
	struct ixdp_port *port;
	struct ixdp_pool *pool;
	struct softnic *nic;
	uint8_t frame[IXDP_MIN_FRAME];
	struct ixdp_pkt pkts[WINDOW];
	uint64_t batches, packets; /* so far */
};

/* Exchanges the MAC addresses, and back it goes. */
static uint32_t prog_swap(struct ixdp_xdp_buff *xdp, void *arg) {
	uint8_t mac[6];

	(void)arg;
	memcpy(mac, xdp->data, 6);
	memcpy(xdp->data, xdp->data + 6, 6);
	memcpy(xdp->data + 6, mac, 6);
	return XDP_TX;
}

static inline int xmit(struct bench *b, unsigned batch) {
	int sent = 0;

	for (unsigned i = 0; i < WINDOW; i += batch)
		sent += ixdp_xdp_xmit(b->port, 0, b->pkts + i, batch, 0);
	return sent;
}

static inline int poll_tx(struct bench *b, unsigned batch) {
	struct ixdp_pkt passed[POLL_MAX];
	int n = 0;

	for (unsigned i = 0; i < WINDOW; i += batch)
		n += ixdp_xdp_poll(b->port, 0, 0, passed, batch);
	return n;
}

/* What is timed, and what callgrind counts; and the same to warm up, which it does not count. */
static __attribute__((noinline)) int calls_xmit(struct bench *b, unsigned batch) {
	return xmit(b, batch);
}
static __attribute__((noinline)) int calls_poll(struct bench *b, unsigned batch) {
	return poll_tx(b, batch);
}
static __attribute__((noinline)) int warm_xmit(struct bench *b, unsigned batch) {
	return xmit(b, batch);
}
static __attribute__((noinline)) int warm_poll(struct bench *b, unsigned batch) {
	return poll_tx(b, batch);
}

static const struct mode {
	const char *name;
	int (*calls)(struct bench *b, unsigned batch);
	int (*warm)(struct bench *b, unsigned batch);
	bool polls;
} modes[] = {
    {"xmit", calls_xmit, warm_xmit, false},
    {"poll+tx", calls_poll, warm_poll, true},
};
static const unsigned batches[] = {1, 8, 32};

enum {
	MODES = sizeof(modes) / sizeof(modes[0]),
	BATCHES = sizeof(batches) / sizeof(batches[0]),
	CASES = MODES * BATCHES,
};

static void step(struct bench *b) {
	for (unsigned left = WINDOW; left > 0;) {
		unsigned moved = softnic_step(b->nic, left);

		if (moved == 0) fail("the software NIC stands still");
		left -= moved;
	}
}

/* A window through driver and NIC. Returns how long the driver took, the clock's cost included. */
static uint64_t run_window(struct bench *b, const struct mode *mode, unsigned batch, bool warm) {
	int (*calls)(struct bench *, unsigned) = warm ? mode->warm : mode->calls;
	uint64_t start, end;
	int n;

	if (mode->polls) {
		for (unsigned i = 0; i < WINDOW; i++)
			if (!softnic_inject(b->nic, b->frame, sizeof(b->frame)))
				fail("the software NIC takes no frame");
		step(b);
	} else {
		if (ixdp_alloc(b->pool, b->pkts, WINDOW) != WINDOW) fail("the pool is empty");
		for (unsigned i = 0; i < WINDOW; i++)
			b->pkts[i].len = IXDP_MIN_FRAME;
	}
	start = timer_start();
	n = calls(b, batch);
	end = timer_end();
	if (n != (mode->polls ? 0 : WINDOW)) fail("the driver moved less than a batch");
	step(b);
	b->batches += WINDOW / batch;
	b->packets += WINDOW;
	return end - start;
}

static void bench_open(struct bench *b, unsigned threads) {
	struct ixdp_frame_config frame = {.size = IXDP_MIN_FRAME, .dst_mac = {2}, .src_mac = {2}};
	struct ixdp_config cfg;

	pin(0);
	log_warnings();
	softnic_set_stepped(true);
	ixdp_config_init(&cfg);
	cfg.tx_queues = 0;
	cfg.xdp_queues = QUEUES;
	if (ixdp_xdp_workers(threads) < 0 || ixdp_xdp_open(&b->port, "soft:bench", &cfg) < 0 ||
	    ixdp_xdp_attach(b->port, prog_swap, NULL) < 0)
		fail("soft:bench");
	b->pool = ixdp_port_pool(b->port);
	b->nic = softnic_find("bench");
	softnic_tap(b->nic, NULL, NULL);
	ixdp_frame_write(&frame, 0, 0, b->frame);
}

/* A lock is taken exactly once a batch, or never; nothing was lost on the way. */
static void bench_close(struct bench *b, unsigned threads) {
	struct ixdp_xdp_queue_stats stats;

	ixdp_xdp_queue_stats_get(b->port, 0, &stats);
	if (stats.shared != (threads > QUEUES) || stats.contended > 0 || stats.yields > 0 ||
	    stats.locked != (stats.shared ? b->batches : 0))
		fail("the queue was not locked exactly once a batch, or never");
	if (stats.packets != b->packets) fail("the queue has not sent all frames");
	if (softnic_violations(b->nic) > 0) fail(softnic_last_violation(b->nic));
	ixdp_close(b->port);
}

struct question {
	unsigned mode, batch;
};

struct answer {
	double cycles; /* per packet */
	double probe;
};

/* A process of one configuration. */
static void child(unsigned threads) {
	static struct bench bench;
	struct question q;

	bench_open(&bench, threads);
	while (child_question(&q, sizeof(q))) {
		const struct mode *mode = &modes[q.mode];
		double cost = timer_cost(), before, after;
		struct answer a;
		uint64_t sum = 0;

		for (unsigned packets = 0; packets < RING; packets += WINDOW)
			run_window(&bench, mode, q.batch, true);
		before = probe();
		for (unsigned i = 0; i < WINDOWS; i++)
			sum += run_window(&bench, mode, q.batch, false);
		after = probe();
		a.cycles = ((double)sum - cost * WINDOWS) / (WINDOWS * WINDOW);
		a.probe = before > after ? before : after;
		child_answer(&a, sizeof(a));
	}
	bench_close(&bench, threads);
}

static const struct variant {
	const char *name;
	const char *suffix; /* of the program */
	unsigned threads;
} variants[] = {
    {"unchecked", "-unchecked", THREADS_OFF},
    {"off", "", THREADS_OFF},
    {"off again", "", THREADS_OFF},
    {"on", "", THREADS_ON},
};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

/* Prints the samples beside which the core was not slow. */
static void report(unsigned c, struct answer *samples[VARIANTS], unsigned rounds, double slow,
		   FILE *json) {
	const struct mode *mode = &modes[c / BATCHES];
	unsigned batch = batches[c % BATCHES];

	printf("%-8s %5u", mode->name, batch);
	for (unsigned v = 0; v < VARIANTS; v++) {
		double kept[rounds];
		unsigned n = 0;

		for (unsigned i = 0; i < rounds; i++)
			if (samples[v][i].probe <= slow) kept[n++] = samples[v][i].cycles;
		if (n == 0) /* few rounds on a busy machine: better bad numbers than none */
			for (; n < rounds; n++)
				kept[n] = samples[v][n].cycles;
		printf("  %6.2f [%6.2f]", median(kept, n), quantile(kept, n, 0));
		if (json)
			fprintf(json,
				"{\"measurement\": \"lockstep\", \"mode\": \"%s\", \"batch\": %u, "
				"\"variant\": \"%s\", \"cycles\": %.3f, \"q1\": %.3f, \"q3\": "
				"%.3f, \"minimum\": %.3f, \"samples\": %u}\n",
				mode->name, batch, variants[v].name, median(kept, n),
				quantile(kept, n, 0.25), quantile(kept, n, 0.75), kept[0], n);
	}
	printf("\n");
}

static void measure(const char *self, unsigned rounds, FILE *json) {
	struct answer *samples[CASES][VARIANTS];
	struct child children[VARIANTS];
	double best = 0;

	pin(0);
	for (unsigned v = 0; v < VARIANTS; v++) {
		char path[4096], threads[16];
		char *args[] = {path, "--child", threads, NULL};

		snprintf(path, sizeof(path), "%s%s", self, variants[v].suffix);
		snprintf(threads, sizeof(threads), "%u", variants[v].threads);
		children[v] = child_start(path, args);
		for (unsigned c = 0; c < CASES; c++)
			if (!(samples[c][v] = calloc(rounds, sizeof(struct answer))))
				fail("out of memory");
	}
	for (unsigned i = 0; i < rounds * CASES * VARIANTS; i++) {
		unsigned round = i / (CASES * VARIANTS), c = i / VARIANTS % CASES;
		unsigned v = (i + round) % VARIANTS; /* each comes first as often as the others */
		struct question q = {c / BATCHES, batches[c % BATCHES]};
		struct answer *a = &samples[c][v][round];

		child_ask(&children[v], &q, sizeof(q), a, sizeof(*a));
		if (best == 0 || a->probe < best) best = a->probe;
	}
	for (unsigned v = 0; v < VARIANTS; v++)
		child_end(&children[v]);
	printf("%s\n%s per packet, one thread, NIC stepped: median [minimum]\nmode     batch",
	       BENCH_FLAGS, unit);
	for (unsigned v = 0; v < VARIANTS; v++)
		printf("  %15s", variants[v].name);
	printf("\n");
	for (unsigned c = 0; c < CASES; c++) {
		report(c, samples[c], rounds, best * 1.05, json);
		for (unsigned v = 0; v < VARIANTS; v++)
			free(samples[c][v]);
	}
}

/* For callgrind: one mode, untimed. */
static void count(const char *name, unsigned threads, unsigned batch, unsigned windows) {
	static struct bench bench;
	const struct mode *mode = &modes[0];

	while (mode < modes + MODES && strcmp(mode->name, name) != 0)
		mode++;
	if (mode == modes + MODES) fail("--count: not xmit or poll+tx");
	bench_open(&bench, threads);
	for (unsigned i = 0; i < RING / WINDOW; i++)
		run_window(&bench, mode, batch, true);
	for (unsigned i = 0; i < windows; i++)
		run_window(&bench, mode, batch, false);
	bench_close(&bench, threads);
}

static int usage(FILE *out, int status) {
	fputs("usage: xdp-lockstep [--rounds N] [--json FILE]\n"
	      "       xdp-lockstep --count xmit|poll+tx [--threads 2|4] [--batch N] [--windows N]\n"
	      "The first form times a queue that is not shared against one that is, in N rounds\n"
	      "(300). The second runs one mode, untimed, for callgrind: windows of 256 packets;\n"
	      "with 4 threads the queue is shared.\n",
	      out);
	return status;
}

int main(int argc, char **argv) {
	static const struct option options[] = {
	    {"rounds", required_argument, NULL, 'r'},
	    {"json", required_argument, NULL, 'j'},
	    {"count", required_argument, NULL, 'c'},
	    {"threads", required_argument, NULL, 't'},
	    {"batch", required_argument, NULL, 'b'},
	    {"windows", required_argument, NULL, 'w'},
	    {"child", required_argument, NULL, 'C'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	unsigned rounds = 300, threads = THREADS_OFF, batch = 32, windows = 16;
	const char *counted = NULL;
	FILE *json = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			rounds = number("rounds", optarg, 1, 10000);
		else if (c == 't')
			threads = number("threads", optarg, THREADS_OFF, THREADS_ON);
		else if (c == 'b')
			batch = number("batch", optarg, 1, POLL_MAX);
		else if (c == 'w')
			windows = number("windows", optarg, 1, 1u << 20);
		else if (c == 'c')
			counted = optarg;
		else if (c == 'j' && !(json = fopen(optarg, "w")))
			fail("cannot write the file of --json");
		else if (c == 'C')
			return child(number("child", optarg, THREADS_OFF, THREADS_ON)), 0;
		else if (c == 'h' || c == '?')
			return usage(c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
	}
	if (optind < argc || WINDOW % batch != 0) return usage(stderr, 2);
	if (counted)
		count(counted, threads, batch, windows);
	else
		measure(argv[0], rounds, json);
	if (json && fclose(json) != 0) fail("cannot write the file of --json");
	return 0;
}
