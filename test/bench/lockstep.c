/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the driver costs per packet, on one core: the software NIC steps between the timed calls, so
 * that neither its work nor waiting for it is in the numbers. README.md says how to read them.
 */
#include <ixdp/ixdp.h>

#include "measure.h"
#include "softnic/softnic.h"

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_BATCH = 256,
	RING = 512,   /* the default of ixdp_config_init() */
	GROUP = 2048, /* packets per sample: refill and reclaim in chunks of 32 level out */
	PAYLOAD = 42, /* offset of the first byte behind Ethernet, IPv4 and UDP */
};

struct bench {
	struct ixdp_port *port;
	struct ixdp_pool *pool;
	struct softnic *nic;
	uint8_t frame[IXDP_MIN_FRAME];
	struct ixdp_pkt pkts[MAX_BATCH];
	struct ixdp_rx_hash hashes[MAX_BATCH];
};

/* An application that does nothing with its packets still reads and writes them. */
static inline void touch(const struct ixdp_pkt *pkts, int n) {
	for (int i = 0; i < n; i++)
		pkts[i].data[PAYLOAD]++;
}

/* The driver calls of one batch: what is timed, and what callgrind counts. Return packets moved. */
static __attribute__((noinline)) int calls_forward(struct bench *b, unsigned batch) {
	int n = ixdp_rx(b->port, 0, b->pkts, batch);

	touch(b->pkts, n);
	return ixdp_tx(b->port, 0, b->pkts, (unsigned)n);
}

static __attribute__((noinline)) int calls_tx(struct bench *b, unsigned batch) {
	int n = ixdp_alloc(b->pool, b->pkts, batch);

	for (int i = 0; i < n; i++)
		b->pkts[i].len = IXDP_MIN_FRAME;
	touch(b->pkts, n);
	return ixdp_tx(b->port, 0, b->pkts, (unsigned)n);
}

static __attribute__((noinline)) int calls_rx_drop(struct bench *b, unsigned batch) {
	int n = ixdp_rx(b->port, 0, b->pkts, batch);

	touch(b->pkts, n);
	ixdp_free(b->pool, b->pkts, (unsigned)n);
	return n;
}

static __attribute__((noinline)) int calls_rx_hash(struct bench *b, unsigned batch) {
	int n = ixdp_rx_hashed(b->port, 0, b->pkts, b->hashes, batch);

	touch(b->pkts, n);
	ixdp_free(b->pool, b->pkts, (unsigned)n);
	return n;
}

static __attribute__((noinline)) int calls_fwd_sums(struct bench *b, unsigned batch) {
	int n = ixdp_rx(b->port, 0, b->pkts, batch);

	touch(b->pkts, n);
	for (int i = 0; i < n; i++)
		b->pkts[i].flags |= IXDP_PKT_IP_CSUM | IXDP_PKT_L4_CSUM;
	return ixdp_tx(b->port, 0, b->pkts, (unsigned)n);
}

static const struct mode {
	const char *name;
	int (*calls)(struct bench *b, unsigned batch);
	bool receives;
	unsigned sends; /* descriptors per packet */
	bool offloads;	/* on the port that has them */
} modes[] = {
    {"forward", calls_forward, true, 1, false}, {"tx", calls_tx, false, 1, false},
    {"rx+drop", calls_rx_drop, true, 0, false}, {"rx+hash", calls_rx_hash, true, 0, false},
    {"rx+flags", calls_rx_drop, true, 0, true}, {"fwd+sums", calls_fwd_sums, true, 2, true},
};
static const unsigned batches[] = {1, 8, 32, 64, 256};

enum {
	MODES = sizeof(modes) / sizeof(modes[0]),
	BATCHES = sizeof(batches) / sizeof(batches[0]),
};

/* One group of packets, and how slow the core was beside it. */
struct sample {
	double cycles; /* per packet */
	double probe;
};

/* Steps the NIC until it has moved so many frames. */
static void step(struct bench *b, unsigned frames) {
	while (frames > 0) {
		unsigned moved = softnic_step(b->nic, frames);

		if (moved == 0) fail("the software NIC stands still");
		frames -= moved;
	}
}

/* One batch through driver and NIC. Returns how long the driver took, the clock's cost included. */
static uint64_t run_batch(struct bench *b, const struct mode *mode, unsigned batch) {
	uint64_t start, end;
	int n;

	if (mode->receives) {
		for (unsigned i = 0; i < batch; i++) {
			if (!softnic_inject(b->nic, b->frame, sizeof(b->frame)))
				fail("the software NIC takes no frame");
		}
		step(b, batch);
	}
	start = timer_start();
	n = mode->calls(b, batch);
	end = timer_end();
	if (n != (int)batch) fail("the driver moved less than a batch");
	step(b, mode->sends * batch);
	return end - start;
}

static void run_group(struct bench *b, const struct mode *mode, unsigned batch,
		      struct sample *out) {
	double before, after, cost = timer_cost();
	uint64_t sum = 0;

	for (unsigned packets = 0; packets < RING; packets += batch)
		run_batch(b, mode, batch);
	before = probe();
	for (unsigned packets = 0; packets < GROUP; packets += batch)
		sum += run_batch(b, mode, batch);
	after = probe();
	out->cycles = ((double)sum - cost * GROUP / batch) / GROUP;
	out->probe = before > after ? before : after;
}

/* Keeps the groups beside which the core was not slow; prints their median and minimum. */
static void report(const struct mode *mode, unsigned batch, const struct sample *samples,
		   unsigned rounds, double slow, double ns_per_cycle, bool json) {
	double kept[rounds], middle;
	unsigned n = 0;

	for (unsigned i = 0; i < rounds; i++) {
		if (samples[i].probe <= slow) kept[n++] = samples[i].cycles;
	}
	if (n == 0) { /* one round on a busy machine: better a bad number than none */
		for (n = 0; n < rounds; n++)
			kept[n] = samples[n].cycles;
	}
	middle = median(kept, n);
	if (json)
		printf("{\"mode\": \"%s\", \"batch\": %u, \"cycles\": %.2f, \"cycles_min\": %.2f, "
		       "\"ns\": %.2f, \"groups\": %u}\n",
		       mode->name, batch, middle, kept[0], middle * ns_per_cycle, n);
	else
		printf("%-8s %5u %8.1f %8.1f %8.2f %7u\n", mode->name, batch, middle, kept[0],
		       middle * ns_per_cycle, n);
}

/* benches: of the port without offloads, and of the one with. */
static void measure(struct bench benches[2], unsigned rounds, bool json) {
	struct sample *samples = calloc((size_t)MODES * BATCHES * rounds, sizeof(*samples));
	double best = 0, start_ns = (double)clock_ns(CLOCK_MONOTONIC), ns_per_cycle;
	uint64_t start = timer_start();
	struct ixdp_pool_stats pool;

	if (!samples) fail("out of memory");
	for (size_t round = 0; round < rounds; round++) {
		for (size_t c = 0; c < MODES * BATCHES; c++) {
			struct sample *sample = &samples[c * rounds + round];

			run_group(&benches[modes[c / BATCHES].offloads], &modes[c / BATCHES],
				  batches[c % BATCHES], sample);
			if (best == 0 || sample->probe < best) best = sample->probe;
		}
	}
	ns_per_cycle =
	    ((double)clock_ns(CLOCK_MONOTONIC) - start_ns) / (double)(timer_end() - start);

	ixdp_pool_get_stats(benches[0].pool, &pool);
	if (json)
		printf("{\"flags\": \"%s\", \"unit\": \"%s\", \"rounds\": %u, \"huge_pages\": %s, "
		       "\"core_per_cycle\": %.2f}\n",
		       BENCH_FLAGS, unit, rounds, pool.huge_pages ? "true" : "false",
		       PROBE * PROBE_LATENCY / best);
	else
		printf("%s; %s pages; the core runs %.2f cycles per unit below\n"
		       "%s per packet\nmode     batch   median  minimum       ns  groups\n",
		       BENCH_FLAGS, pool.huge_pages ? "huge" : "ordinary",
		       PROBE * PROBE_LATENCY / best, unit);
	for (size_t c = 0; c < MODES * BATCHES; c++)
		report(&modes[c / BATCHES], batches[c % BATCHES], &samples[c * rounds], rounds,
		       best * 1.05, ns_per_cycle, json);
	free(samples);
}

static void bench_open(struct bench *b, const char *name, unsigned offloads) {
	struct ixdp_frame_config frame = {.size = IXDP_MIN_FRAME, .dst_mac = {2}, .src_mac = {2}};
	struct ixdp_config cfg;
	char port[32];

	ixdp_config_init(&cfg);
	cfg.offloads = offloads;
	if (offloads) cfg.tx_ring *= 2; /* packets have two descriptors there */
	struct ixdp_pool_config pool = {
	    .buffers = ixdp_pool_needed(&cfg), .numa_node = -1, .ordinary_pages = true};

	if (ixdp_pool_create(&b->pool, &pool) < 0) fail("pool");
	cfg.pool = b->pool;
	snprintf(port, sizeof(port), "soft:%s", name);
	if (ixdp_open(&b->port, port, &cfg) < 0) fail(port);
	b->nic = softnic_find(name);
	softnic_tap(b->nic, NULL, NULL);
	ixdp_frame_write(&frame, 0, 0, b->frame);
}

static void bench_close(struct bench *b) {
	if (softnic_violations(b->nic) > 0) fail(softnic_last_violation(b->nic));
	ixdp_close(b->port);
	ixdp_pool_destroy(b->pool);
}

static void usage(FILE *out) {
	fputs("usage: lockstep [--rounds N] [--json]\n"
	      "       lockstep --count-mode MODE [--batch N] [--packets N]\n"
	      "The first form times all modes and batches, in N rounds (300).\n"
	      "The second runs one of them, untimed, for callgrind. Modes: forward, tx, rx+drop,\n"
	      "rx+hash, rx+flags, fwd+sums.\n",
	      out);
}

static const struct mode *mode_by_name(const char *name) {
	for (unsigned i = 0; i < MODES; i++) {
		if (strcmp(name, modes[i].name) == 0) return &modes[i];
	}
	fprintf(stderr, "lockstep: --count-mode %s: no such mode\n", name);
	exit(2);
}

struct options {
	const struct mode *count; /* NULL: time all of them */
	unsigned rounds;
	unsigned batch;
	unsigned packets;
	bool json;
};

/* Returns -1 to go on, or the program's exit status. */
static int parse(struct options *o, int argc, char **argv) {
	static const struct option options[] = {
	    {"rounds", required_argument, NULL, 'r'},
	    {"json", no_argument, NULL, 'j'},
	    {"count-mode", required_argument, NULL, 'c'},
	    {"batch", required_argument, NULL, 'b'},
	    {"packets", required_argument, NULL, 'p'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'r':
			o->rounds = number("rounds", optarg, 1, 10000);
			break;
		case 'j':
			o->json = true;
			break;
		case 'c':
			o->count = mode_by_name(optarg);
			break;
		case 'b':
			o->batch = number("batch", optarg, 1, MAX_BATCH);
			break;
		case 'p':
			o->packets = number("packets", optarg, 0, 1u << 30);
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind < argc) {
		usage(stderr);
		return 2;
	}
	return -1;
}

int main(int argc, char **argv) {
	struct options o = {.rounds = 300, .batch = 32, .packets = 1u << 14};
	static struct bench benches[2];
	int status = parse(&o, argc, argv);
	cpu_set_t cpu;

	if (status >= 0) return status;

	/* Stay on this CPU: another one's caches are cold. */
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);

	log_warnings();
	softnic_set_stepped(true);
	bench_open(&benches[0], "plain", 0);
	bench_open(&benches[1], "offloads", IXDP_OFFLOAD_VLAN_STRIP | IXDP_OFFLOAD_CSUM);
	if (o.count) {
		for (unsigned done = 0; done < o.packets; done += o.batch)
			run_batch(&benches[o.count->offloads], o.count, o.batch);
	} else {
		measure(benches, o.rounds, o.json);
	}
	bench_close(&benches[1]);
	bench_close(&benches[0]);
	return 0;
}
