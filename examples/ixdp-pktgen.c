/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends numbered test frames at a given rate, and checks what comes back.
 *
 *     ixdp-pktgen --rate 100kpps --duration 3 soft:a
 *     ixdp-pktgen --count 1000000 --size 1514 0000:03:00.0
 */
#include "common/elements.h"
#include "common/frame_text.h"
#include "common/run.h"

#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>

enum { DRY_RUN_FRAMES = 4 };

struct arguments {
	struct options common;
	struct ixdp_frame_config frame;
	unsigned flows;
	bool has_rate;
	struct ixdp_rate rate;
	bool has_src_mac;
	bool dry_run;
	char *device;
};

/* The frames of one TX queue: with numbers of their own, as queues may overtake each other. */
struct stream {
	struct ixdp_frame_config frame;
	unsigned flows;
	uint64_t written; /* frames so far */
};

struct pktgen {
	struct run run;
	struct ixdp_port *port;
	struct ixdp_pool *pool;
	struct stream streams[IXDP_MAX_TX_QUEUES];
	unsigned turn;				  /* the TX queue whose turn it is */
	unsigned elements;			  /* of a frame */
	struct ixdp_pkt ready[OPTIONS_MAX_BATCH]; /* written, not taken so far */
	unsigned n_ready;			  /* elements of these */
	uint64_t taken;				  /* frames that the port has accepted */
	bool paced;
	struct ixdp_pacer pacer;
	struct ixdp_frame_checker *checker;
};

/* data: room for a frame of the stream. */
static unsigned stream_write(struct stream *stream, uint8_t *data) {
	const uint64_t k = stream->written++;

	return ixdp_frame_write(&stream->frame, k % stream->flows, k / stream->flows, data);
}

/* pkts: as many empty packets as a frame takes. */
static void stream_fill(struct stream *stream, struct ixdp_pkt *pkts) {
	uint8_t whole[IXDP_FRAME_MAX];

	if (stream->frame.size <= IXDP_DATA_SIZE)
		pkts->len = stream_write(stream, pkts->data);
	else
		elements_scatter(pkts, whole, stream_write(stream, whole));
}

/* Takes fresh buffers for what is due. One that was sent is not ours: the NIC may still read it. */
static void prepare(struct pktgen *gen) {
	const struct options *opts = gen->run.opts;
	const uint64_t left = opts->count ? opts->count - gen->taken : UINT64_MAX;
	unsigned frames = opts->batch / gen->elements, n, whole;

	if (left < frames) frames = left;
	if (gen->paced) frames = ixdp_pacer_due(&gen->pacer, gen->run.now_ns, frames);
	n = ixdp_alloc(gen->pool, gen->ready, frames * gen->elements);
	whole = n - n % gen->elements; /* a pool that is low */
	ixdp_free(gen->pool, gen->ready + whole, n - whole);
	gen->n_ready = whole;
	for (unsigned i = 0; i < whole; i += gen->elements)
		stream_fill(&gen->streams[gen->turn], &gen->ready[i]);
}

static unsigned send_batch(struct pktgen *gen) {
	if (!gen->n_ready) prepare(gen);
	const int taken = ixdp_tx(gen->port, gen->turn, gen->ready, gen->n_ready);

	if (taken <= 0) return 0;
	const unsigned frames = taken / gen->elements;

	gen->taken += frames;
	gen->n_ready -= taken;
	memmove(gen->ready, gen->ready + taken, gen->n_ready * sizeof(*gen->ready));
	if (gen->paced) ixdp_pacer_sent(&gen->pacer, frames);
	if (!gen->n_ready) gen->turn = (gen->turn + 1) % gen->run.opts->config.tx_queues;
	return frames;
}

static unsigned receive_all(struct pktgen *gen) {
	struct ixdp_pkt pkts[OPTIONS_MAX_BATCH];
	uint8_t room[ELEMENTS_MAX_FRAME];
	unsigned received = 0;

	for (unsigned queue = 0; queue < gen->run.opts->config.rx_queues; queue++) {
		const int n = ixdp_rx(gen->port, queue, pkts, gen->run.opts->batch);

		for (unsigned i = 0, elements; (int)i < n; i += elements) {
			unsigned len;
			const uint8_t *data = elements_gather(&pkts[i], room, &len, &elements);

			ixdp_frame_check(gen->checker, data, len);
			received++;
		}
		if (n > 0) ixdp_free(gen->pool, pkts, n);
	}
	return received;
}

static void generate(struct pktgen *gen) {
	const uint64_t count = gen->run.opts->count;
	unsigned moved;

	do {
		moved = 0;
		if (!gen->run.ending) moved += send_batch(gen);
		if (count && gen->taken == count) run_end(&gen->run);
		if (!gen->run.deaf) moved += receive_all(gen);
	} while (run_goes_on(&gen->run, moved));
	ixdp_free(gen->pool, gen->ready, gen->n_ready);
}

/* Adds what became of our frames, unless nothing can come back: the wire keeps them, and looks. */
static void sample_returned(void *arg, struct report_sample *sample, bool totals) {
	const struct pktgen *gen = arg;
	struct ixdp_frame_counts counts;
	struct ixdp_wire_stats wire;
	uint64_t seen = 0, lost;

	ixdp_frame_checker_counts(gen->checker, &counts);
	if (!counts.frames && !ixdp_wire_stats_get(gen->port, &wire) && wire.checks) return;
	lost = counts.lost;
	for (unsigned i = 0; i < gen->run.opts->config.tx_queues; i++)
		seen += ixdp_frame_checker_seen(gen->checker, gen->streams[i].frame.generator);
	/* The last ones leave no gap when they are missing. */
	if (totals && (seen || !counts.good) && (uint64_t)sample->n[TX_PACKETS] > seen + lost)
		lost = (uint64_t)sample->n[TX_PACKETS] - seen;
	report_set(sample, RX_LOST, lost);
	report_set(sample, RX_MISORDERED, counts.misordered + counts.duplicated);
	report_set(sample, RX_CORRUPT, counts.corrupt);
}

/* Frames per second to ask for; more than the line carries is asked for in vain. */
static double requested_pps(const struct arguments *args) {
	const struct ixdp_rate line = {.value = 100, .unit = IXDP_RATE_PERCENT};
	double pps;

	if (ixdp_rate_pps(args->has_rate ? &args->rate : &line, args->frame.size, &pps))
		report_error("--rate: %s; going on with what the line carries", ixdp_error());
	return pps;
}

static int set_up(struct pktgen *gen, const struct arguments *args) {
	const double pps = requested_pps(args);

	gen->port = gen->run.report.ports[0].port;
	gen->pool = ixdp_port_pool(gen->port);
	gen->checker = ixdp_frame_checker_new();
	if (!gen->checker) {
		report_error("no memory to check frames with");
		return -1;
	}
	gen->elements = elements_of(args->frame.size);
	for (unsigned i = 0; i < args->common.config.tx_queues; i++) {
		struct stream *stream = &gen->streams[i];

		*stream = (struct stream){.frame = args->frame, .flows = args->flows};
		stream->frame.generator = ixdp_frame_generator();
		if (!args->has_src_mac) ixdp_mac_get(gen->port, stream->frame.src_mac);
	}
	/*
	 * The pacer may make up for 50 ms: as long as a busy machine may well run something else on
	 * our CPU. With less each such pause would lower the rate.
	 */
	gen->paced = args->has_rate;
	ixdp_pacer_init(&gen->pacer, pps, args->common.batch + (unsigned)(pps / 20));
	gen->run.report.requested_mpps = pps / 1e6;
	gen->run.report.sample = sample_returned;
	gen->run.report.arg = gen;
	return 0;
}

static int dry_run(const struct arguments *args) {
	struct stream stream = {.frame = args->frame, .flows = args->flows};
	const uint64_t n = args->common.count ? args->common.count : DRY_RUN_FRAMES;
	uint8_t data[IXDP_FRAME_MAX];

	stream.frame.generator = ixdp_frame_generator();
	for (uint64_t i = 0; i < n; i++)
		frame_print(data, stream_write(&stream, data));
	return report_flush() ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* An MTU that nobody asked for is one with which the frames can come back. */
static void choose_mtu(struct arguments *args) {
	unsigned *mtu = &args->common.config.mtu;
	const unsigned needed = args->frame.size - ETH_HLEN;

	if (!*mtu) *mtu = needed > OPTIONS_MTU ? needed : OPTIONS_MTU;
	if (needed > *mtu)
		options_usage("--size %u: too long for --mtu %u, which allows %u", args->frame.size,
			      *mtu, *mtu + ETH_HLEN);
}

static void check_arguments(const struct arguments *args) {
	if (args->dry_run && args->common.json)
		options_usage("--dry-run: has no JSON form, leave --json out");
	if (!args->dry_run && !args->device)
		options_usage("DEV is missing: a PCI address or soft:NAME");
}

enum key { KEY_SIZE = 0x200, KEY_RATE, KEY_FLOWS, KEY_DST_MAC, KEY_SRC_MAC, KEY_DRY_RUN };

static const struct argp_option own_options[] = {
    {"size", KEY_SIZE, "N", 0, "Bytes per frame without FCS, 60 to 9014 (60)", 0},
    {"rate", KEY_RATE, "RATE", 0,
     "200kpps, 2.5Gbit (L1: with preamble, gap and FCS) or 33% of the line (as fast as it goes)",
     0},
    {"flows", KEY_FLOWS, "N", 0, "Source addresses and ports to alternate, 1 to 65536 (1)", 0},
    {"dst-mac", KEY_DST_MAC, "MAC", 0, "Destination address (02:00:00:00:00:01)", 0},
    {"src-mac", KEY_SRC_MAC, "MAC", 0, "Source address (the port's own)", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Print the first --count frames (4), open no device", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
	struct arguments *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->common;
		return 0;
	case KEY_SIZE:
		args->frame.size = options_number("--size", arg, IXDP_FRAME_MIN, IXDP_FRAME_MAX);
		return 0;
	case KEY_RATE:
		if (ixdp_rate_parse(arg, &args->rate)) options_usage("--rate: %s", ixdp_error());
		args->has_rate = true;
		return 0;
	case KEY_FLOWS:
		args->flows = options_number("--flows", arg, 1, IXDP_FRAME_MAX_FLOWS);
		return 0;
	case KEY_DST_MAC:
		if (!frame_parse_mac(arg, args->frame.dst_mac))
			options_usage("--dst-mac %s: not an address like 02:00:00:00:00:01", arg);
		return 0;
	case KEY_SRC_MAC:
		if (!frame_parse_mac(arg, args->frame.src_mac) || (args->frame.src_mac[0] & 1))
			options_usage("--src-mac %s: not a unicast address like 02:00:00:00:00:01",
				      arg);
		args->has_src_mac = true;
		return 0;
	case KEY_DRY_RUN:
		args->dry_run = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->device) options_usage("%s: a second device; it takes one", arg);
		args->device = arg;
		return 0;
	case ARGP_KEY_END:
		check_arguments(args);
		choose_mtu(args);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv) {
	static const struct argp_child children[] = {{.argp = &options_argp}, {0}};
	static const struct argp argp = {
	    .options = own_options,
	    .parser = parse_option,
	    .children = children,
	    .args_doc = "DEV",
	    .doc =
		"Sends numbered test frames, and checks what comes back.\n\n"
		"DEV is the PCI address of an Intel 82599 (0000:03:00.0) or a software port "
		"(soft:NAME[,key=value...]).\v"
		"It ends at --duration, --count, SIGINT, SIGTERM or SIGHUP. With several TX queues "
		"each sends a sequence of its own, batches in turn; with several RX queues RSS "
		"spreads the --flows over them. Without --mtu, the MTU is that of --size, and 1500 "
		"at least. --dry-run shows source "
		"address 00:00:00:00:00:00 unless given one.",
	};
	static struct pktgen gen;
	struct arguments args = {
	    .frame = {.size = IXDP_FRAME_MIN, .dst_mac = {2, 0, 0, 0, 0, 1}},
	    .flows = 1,
	};

	options_parse(&argp, argc, argv, &args);
	if (args.dry_run) return dry_run(&args);
	if (run_open(&gen.run, &args.common, &args.device, 1)) return EXIT_FAILURE;
	if (set_up(&gen, &args) || !run_begin(&gen.run))
		gen.run.failed = true;
	else
		generate(&gen);
	const int status = run_close(&gen.run);

	ixdp_frame_checker_free(gen.checker);
	return status;
}
