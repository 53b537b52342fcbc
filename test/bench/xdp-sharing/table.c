/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table by which ixgbe's sharing of XDP TX queues was judged, with ours beside it: messages
 * streamed, or sent as request and response, before (a worker on a queue of its own) and after (the
 * same worker on the same queue, which is shared as there are more workers than queues).
 * ../README.md says how to read it.
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
	THREADS_BEFORE = QUEUES,
	THREADS_AFTER = 2 * QUEUES,
	HEADERS = 42,	    /* Ethernet, IPv4, UDP */
	CLIENT_BATCH = 16,  /* frames sent at once: the kernel's bulk of redirected frames */
	SERVER_BATCH = 64,  /* frames received at once: a turn of the kernel's NAPI */
	IN_FLIGHT = 256,    /* messages on the way to a server and back */
	LOOK_AT_CLOCK = 16, /* batches between */
	SLICES = 20,
};

#define STUCK_NS UINT64_C(20000000000) /* a response that takes longer is lost */

enum kind { STREAM, RR };

/* A line of the patch's table: Mbit/s or transactions/s; 0: not in it. Linux commit 4fe815850bdc.
 */
static const struct row {
	bool client;
	enum kind kind;
	unsigned message; /* bytes */
	double before, after;
	bool unstable; /* as its author says */
} rows[] = {
    {true, STREAM, 64, 734.14, 714.20, false},
    {true, STREAM, 128, 1401.91, 1395.05, false},
    {true, STREAM, 512, 5311.67, 5292.84, false},
    {true, STREAM, 1024, 9277.40, 9356.22, true},
    {true, RR, 1, 22559.75, 21844.22, false},
    {true, RR, 128, 23169.54, 22725.13, false},
    {true, RR, 512, 21670.91, 21412.56, false},
    {false, STREAM, 64, 1416.49, 1383.12, false},
    {false, STREAM, 128, 3141.49, 3055.50, false},
    {false, STREAM, 512, 9488.73, 9487.44, false},
    {false, STREAM, 1024, 9491.17, 9356.22, true},
    {false, RR, 1, 23617.74, 23601.60, false},
    {false, RR, 128, 0, 0, false},
    {false, RR, 512, 0, 0, false},
};
static const char *const kinds[] = {"stream", "rr"};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

struct question {
	unsigned row, ms;
};

struct answer {
	double rate;   /* Mbit/s of messages, or transactions/s */
	double cycles; /* of the worker per message, in calls that moved some */
};

static double median_of(const struct answer *answers, unsigned n, bool cycles) {
	double values[n];

	for (unsigned i = 0; i < n; i++)
		values[i] = cycles ? answers[i].cycles : answers[i].rate;
	return median(values, n);
}

struct bench {
	struct ixdp_port *port, *peer;
	struct ixdp_pool *pool;
	unsigned len;
	uint8_t frame[IXDP_FRAME_MAX];
	uint64_t in_program;	   /* frames that the program has seen */
	uint64_t messages, cycles; /* moved by the worker, and how long that took */
	uint64_t moving;	   /* calls that moved some */
	double timer;		   /* what reading the clock costs */
	uint64_t sends;		   /* batches that went to the XDP TX queue */
};

/* A server's answer: exchanges the MAC addresses, and back it goes. */
static uint32_t prog_serve(struct ixdp_xdp_buff *xdp, void *arg) {
	uint8_t mac[6];

	++*(uint64_t *)arg;
	memcpy(mac, xdp->data, 6);
	memcpy(xdp->data, xdp->data + 6, 6);
	memcpy(xdp->data + 6, mac, 6);
	return XDP_TX;
}

/* A client's responses are for its caller. */
static uint32_t prog_pass(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)xdp;
	++*(uint64_t *)arg;
	return XDP_PASS;
}

static void account(struct bench *b, uint64_t start, uint64_t messages) {
	uint64_t end = timer_end();

	if (messages == 0) return;
	b->cycles += end - start;
	b->messages += messages;
	b->moving++;
}

static unsigned make(struct bench *b, struct ixdp_pkt *pkts, unsigned n) {
	n = (unsigned)ixdp_alloc(b->pool, pkts, n);
	for (unsigned i = 0; i < n; i++) {
		memcpy(pkts[i].data, b->frame, b->len);
		pkts[i].len = (uint16_t)b->len;
	}
	return n;
}

/* Sends messages by the XDP TX queue; what is not taken is freed. */
static void send_messages(struct bench *b, unsigned n) {
	struct ixdp_pkt pkts[IN_FLIGHT];
	uint64_t start;
	int sent;

	n = make(b, pkts, n);
	start = timer_start();
	sent = ixdp_xdp_xmit(b->port, 0, pkts, n, 0);
	if (sent < 0) fail("sending");
	account(b, start, (unsigned)sent);
	b->sends++;
	ixdp_free(b->pool, pkts + sent, n - (unsigned)sent);
}

/* One turn of the program over what has come. Returns how many frames passed, which are freed. */
static int poll_once(struct bench *b, bool serves) {
	struct ixdp_pkt pkts[SERVER_BATCH];
	uint64_t seen = b->in_program, start = timer_start();
	int n = ixdp_xdp_poll(b->port, 0, 0, pkts, SERVER_BATCH);

	if (n < 0) fail("receiving");
	account(b, start, serves ? b->in_program - seen : 0);
	if (serves && b->in_program != seen) b->sends++;
	ixdp_free(b->pool, pkts, (unsigned)n);
	return n;
}

/* The other end, which is no matter of XDP: sends one, or receives what is there. */
static void peer_send(struct bench *b) {
	struct ixdp_pkt pkt;

	if (make(b, &pkt, 1) != 1 || ixdp_tx(b->peer, 0, &pkt, 1) != 1) fail("the peer's sending");
}

static int peer_receive(struct bench *b, bool echo) {
	struct ixdp_pkt pkt;
	int n = ixdp_rx(b->peer, 0, &pkt, 1);

	if (n < 0) fail("the peer's receiving");
	if (n > 0 && echo && ixdp_tx(b->peer, 0, &pkt, 1) != 1) fail("the peer's sending");
	if (n > 0 && !echo) ixdp_free(b->pool, &pkt, 1);
	return n;
}

/* Goes on until a step has done something. */
static void await(struct bench *b, int (*step)(struct bench *b, bool arg), bool arg) {
	uint64_t seen = b->in_program, start = 0;

	for (unsigned turn = 1; step(b, arg) == 0 && b->in_program == seen; turn++) {
		uint64_t now = turn % 1024 ? 0 : clock_ns(CLOCK_MONOTONIC);

		if (now && !start) start = now;
		if (now && now - start > STUCK_NS) fail("a message was lost");
	}
}

/* One transaction, or a batch of a stream. */
static void turn(struct bench *b, const struct row *row) {
	if (row->kind == STREAM && row->client) {
		send_messages(b, CLIENT_BATCH);
	} else if (row->kind == STREAM) {
		poll_once(b, true);
	} else if (row->client) {
		send_messages(b, 1);
		await(b, peer_receive, true);
		await(b, poll_once, false);
	} else {
		peer_send(b);
		await(b, poll_once, true);
		await(b, peer_receive, false);
	}
}

static void bench_open(struct bench *b, const struct row *row) {
	struct ixdp_frame_config frame = {.size = IXDP_MIN_FRAME, .dst_mac = {2}, .src_mac = {2}};
	ixdp_xdp_prog *prog = row->client ? prog_pass : prog_serve;
	bool loops = row->kind == STREAM && !row->client;
	struct ixdp_config cfg;
	struct ixdp_link link;

	*b = (struct bench){.len = HEADERS + row->message, .timer = timer_cost()};
	if (b->len < IXDP_MIN_FRAME) b->len = IXDP_MIN_FRAME;
	frame.size = (uint16_t)b->len;
	ixdp_frame_write(&frame, 0, 0, b->frame);
	ixdp_config_init(&cfg);
	cfg.tx_queues = 0;
	cfg.xdp_queues = QUEUES;
	pin(0); /* the software NICs' thread, which the first port starts */
	if (ixdp_xdp_open(&b->port, loops ? "soft:dut,peer=loop" : "soft:dut", &cfg) < 0 ||
	    ixdp_xdp_attach(b->port, prog, &b->in_program) < 0)
		fail("soft:dut");
	if (row->kind == RR && ixdp_open(&b->peer, "soft:far,peer=dut", NULL) < 0) fail("soft:far");
	pin(1);
	b->pool = ixdp_port_pool(b->port);
	if (ixdp_link_wait(b->port, 1000, &link) < 0 ||
	    (b->peer && ixdp_link_wait(b->peer, 1000, &link) < 0))
		fail("no link");
	if (row->kind == STREAM && row->client) softnic_tap(softnic_find("dut"), NULL, NULL);
	if (loops) send_messages(b, IN_FLIGHT);
}

/* What we have counted is what the driver has, and exactly what is shared has locked. */
static void bench_close(struct bench *b, const struct row *row, unsigned threads) {
	struct ixdp_xdp_queue_stats mine, other;
	struct ixdp_xdp_stats xdp;
	struct ixdp_wire_stats wire;
	bool shared = threads > QUEUES;

	ixdp_xdp_stats_get(b->port, 0, &xdp);
	ixdp_xdp_queue_stats_get(b->port, 0, &mine);
	ixdp_xdp_queue_stats_get(b->port, 1, &other);
	for (uint64_t start = clock_ns(CLOCK_MONOTONIC);;) {
		if (ixdp_wire_stats_get(b->port, &wire) < 0) fail("soft:dut");
		if (wire.from_port_packets == mine.packets) break;
		if (clock_ns(CLOCK_MONOTONIC) - start > STUCK_NS)
			fail("the wire has not got what was sent");
	}
	if (mine.packets != b->messages || other.packets != 0)
		fail("the queue has sent another number of messages than the worker");
	if (mine.shared != shared || mine.locked != (shared ? b->sends : 0) || mine.contended > 0)
		fail("the queue was not locked exactly once a batch, or never");
	if (xdp.pass + xdp.tx != b->in_program ||
	    xdp.tx + (row->client || row->kind == RR ? 0 : IN_FLIGHT) !=
		(row->client ? 0 : mine.packets))
		fail("frames and verdicts do not add up");
	if (b->peer) ixdp_close(b->peer);
	ixdp_close(b->port);
}

/* What flows in a part of a measurement. */
static struct answer measure_slice(struct bench *b, const struct row *row, uint64_t length) {
	uint64_t messages = b->messages, cycles = b->cycles, moving = b->moving;
	uint64_t start = clock_ns(CLOCK_MONOTONIC), now;
	struct answer a;

	do {
		for (unsigned i = 0; i < LOOK_AT_CLOCK; i++)
			turn(b, row);
		now = clock_ns(CLOCK_MONOTONIC);
	} while (now - start < length || b->messages == messages);
	messages = b->messages - messages;
	a.rate = (double)messages / ((double)(now - start) / 1e9);
	if (row->kind == STREAM) a.rate *= row->message * 8 / 1e6;
	a.cycles = ((double)(b->cycles - cycles) - b->timer * (double)(b->moving - moving)) /
		   (double)messages;
	return a;
}

/* Medians of slices, as the machine has other things to do in some of them. */
static struct answer measure(const struct row *row, unsigned ms, unsigned threads) {
	static struct bench bench;
	struct answer slices[SLICES];

	bench_open(&bench, row);
	for (unsigned i = 0; i < SLICES / 4; i++) /* to warm up */
		measure_slice(&bench, row, (uint64_t)ms * 1000000 / SLICES);
	for (unsigned i = 0; i < SLICES; i++)
		slices[i] = measure_slice(&bench, row, (uint64_t)ms * 1000000 / SLICES);
	bench_close(&bench, row, threads);
	return (struct answer){median_of(slices, SLICES, false), median_of(slices, SLICES, true)};
}

/* A process of one configuration. */
static void child(unsigned threads) {
	struct question q;

	log_warnings();
	pin(1);
	if (ixdp_xdp_workers(threads) < 0) fail("workers");
	while (child_question(&q, sizeof(q))) {
		struct answer a = measure(&rows[q.row], q.ms, threads);

		child_answer(&a, sizeof(a));
	}
}

/* The second is there for the noise: the first once more. */
enum { BEFORE, AGAIN, AFTER, VARIANTS };

/* How much more one of two is, in percent, of each round; sorted afterwards by quantile(). */
static void percents(double *out, const struct answer *from, const struct answer *to, unsigned n) {
	for (unsigned i = 0; i < n; i++)
		out[i] = (to[i].rate / from[i].rate - 1) * 100;
}

static void report(const struct row *row, struct answer *answers[VARIANTS], unsigned n,
		   FILE *json) {
	double diff[n], noise[n], rate[VARIANTS], cycles[VARIANTS];
	double theirs = row->before > 0 ? (row->after / row->before - 1) * 100 : 0;
	const char *side = row->client ? "client" : "server", *kind = kinds[row->kind];

	percents(diff, answers[BEFORE], answers[AFTER], n);
	percents(noise, answers[BEFORE], answers[AGAIN], n);
	for (unsigned v = 0; v < VARIANTS; v++) {
		rate[v] = median_of(answers[v], n, false);
		cycles[v] = median_of(answers[v], n, true);
	}
	printf("%s %-6s %4u", side, kind, row->message);
	if (row->before > 0)
		printf(" %9.2f %9.2f %+6.2f%c", row->before, row->after, theirs,
		       row->unstable ? '?' : ' ');
	else
		printf(" %9s %9s %6s ", "-", "-", "-");
	printf(" %10.2f %10.2f %+6.2f [%+6.2f %+6.2f]  %+6.2f [%+6.2f %+6.2f]  %6.1f %6.1f\n",
	       rate[BEFORE], rate[AFTER], median(diff, n), quantile(diff, n, 0.25),
	       quantile(diff, n, 0.75), median(noise, n), quantile(noise, n, 0.25),
	       quantile(noise, n, 0.75), cycles[BEFORE], cycles[AFTER]);
	if (!json) return;
	fprintf(json,
		"{\"measurement\": \"table\", \"side\": \"%s\", \"kind\": \"%s\", \"message\": %u, "
		"\"unit\": \"%s\", \"theirs_before\": %.2f, \"theirs_after\": %.2f, \"before\": "
		"%.3f, \"after\": %.3f, ",
		side, kind, row->message, row->kind == STREAM ? "Mbit/s" : "transactions/s",
		row->before, row->after, rate[BEFORE], rate[AFTER]);
	fprintf(json,
		"\"percent\": %.3f, \"percent_q1\": %.3f, \"percent_q3\": %.3f, \"noise\": %.3f, "
		"\"noise_q1\": %.3f, \"noise_q3\": %.3f, ",
		median(diff, n), quantile(diff, n, 0.25), quantile(diff, n, 0.75), median(noise, n),
		quantile(noise, n, 0.25), quantile(noise, n, 0.75));
	fprintf(json, "\"cycles_before\": %.2f, \"cycles_after\": %.2f, \"rounds\": %u}\n",
		cycles[BEFORE], cycles[AFTER], n);
}

static void compare_all(unsigned rounds, unsigned ms, FILE *json) {
	struct answer *answers[ROWS][VARIANTS];
	struct child children[VARIANTS];

	for (unsigned v = 0; v < VARIANTS; v++) {
		char threads[16];
		char *args[] = {"xdp-table", "--child", threads, NULL};

		snprintf(threads, sizeof(threads), "%d",
			 v == AFTER ? THREADS_AFTER : THREADS_BEFORE);
		children[v] = child_start("", args);
		for (unsigned r = 0; r < ROWS; r++)
			if (!(answers[r][v] = calloc(rounds, sizeof(struct answer))))
				fail("out of memory");
	}
	for (unsigned i = 0; i < rounds * ROWS * VARIANTS; i++) {
		unsigned round = i / (ROWS * VARIANTS), r = i / VARIANTS % ROWS;
		unsigned v = (i + round) % VARIANTS; /* each comes first as often as the others */
		struct question q = {r, ms};

		child_ask(&children[v], &q, sizeof(q), &answers[r][v][round],
			  sizeof(struct answer));
	}
	for (unsigned v = 0; v < VARIANTS; v++)
		child_end(&children[v]);
	printf(
	    "Mbit/s of messages (stream), transactions/s (rr): medians of %u interleaved runs of "
	    "%u ms\n%% [quartiles]; noise: 'before' once more; cycles: %s of the worker per "
	    "message\n"
	    "                     theirs                        ours\n"
	    "test            B    before     after      %%      before      after      %% "
	    "[quartiles    ]   noise [quartiles    ]  cycles  after\n",
	    rounds, ms, unit);
	for (unsigned r = 0; r < ROWS; r++) {
		report(&rows[r], answers[r], rounds, json);
		for (unsigned v = 0; v < VARIANTS; v++)
			free(answers[r][v]);
	}
}

static int usage(FILE *out, int status) {
	fputs("usage: xdp-table [--rounds N] [--ms N] [--json FILE]\n"
	      "Messages through a program that transmits, on a queue of its own and on a shared\n"
	      "one: N rounds (12) of N ms (100) for each test, in turn.\n",
	      out);
	return status;
}

int main(int argc, char **argv) {
	static const struct option options[] = {
	    {"rounds", required_argument, NULL, 'r'}, {"ms", required_argument, NULL, 'm'},
	    {"json", required_argument, NULL, 'j'},   {"child", required_argument, NULL, 'C'},
	    {"help", no_argument, NULL, 'h'},	      {NULL, 0, NULL, 0},
	};
	unsigned rounds = 12, ms = 100;
	FILE *json = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			rounds = number("rounds", optarg, 1, 1000);
		else if (c == 'm')
			ms = number("ms", optarg, 1, 60000);
		else if (c == 'j' && !(json = fopen(optarg, "w")))
			fail("cannot write the file of --json");
		else if (c == 'C')
			return child(number("child", optarg, THREADS_BEFORE, THREADS_AFTER)), 0;
		else if (c == 'h' || c == '?')
			return usage(c == 'h' ? stdout : stderr, c == 'h' ? 0 : 2);
	}
	if (optind < argc) return usage(stderr, 2);
	compare_all(rounds, ms, json);
	if (json && fclose(json) != 0) fail("cannot write the file of --json");
	return 0;
}
