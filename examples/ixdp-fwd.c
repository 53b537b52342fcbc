/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwards packets between two ports, or back out of one: the shortest useful program.
 *
 *     ixdp-fwd 0000:03:00.0 0000:03:00.1
 *     ixdp-fwd --duration 5 soft:a,peer=gen soft:b,peer=gen
 *
 * With --threads it is another one: an XDP program redirects, in workers as those of ixdp-xdp.
 */
#include "common/elements.h"
#include "common/workers.h"

#include <stdlib.h>

/* From an RX queue of one port to a TX queue of another, or of the same. */
struct path {
	struct ixdp_port *rx_port, *tx_port;
	unsigned rx_queue, tx_queue;
	struct ixdp_pkt pkts[OPTIONS_MAX_BATCH];
	struct ixdp_pkt *next; /* n elements from here on, whole frames, are to be sent */
	unsigned n;
	uint64_t *tx_refused; /* counts those that could not be */
};

/*
 * One batch: from the RX ring into an array of packets, and from there to the TX ring. Returns how
 * many frames were sent. A frame that spans several elements is received, and taken, with all of
 * them or not at all.
 */
static unsigned forward(struct path *path, unsigned batch, bool receive) {
	if (path->n == 0) {
		if (!receive) return 0;

		const int received = ixdp_rx(path->rx_port, path->rx_queue, path->pkts, batch);

		if (received <= 0) return 0;
		path->next = path->pkts;
		path->n = received;
		/* Here a program would read or change the packets: pkts[i].data, pkts[i].len. */
	}

	const int taken = ixdp_tx(path->tx_port, path->tx_queue, path->next, path->n);

	if (taken <= 0) return 0;
	const unsigned frames = elements_frames(path->next, taken);

	/* What a full TX ring did not take is still ours; it comes before anything new. */
	path->next += taken;
	path->n -= taken;
	return frames;
}

static void forward_all(struct run *run, struct path *paths, unsigned n_paths) {
	const struct options *opts = run->opts;
	uint64_t total = 0;
	unsigned moved;

	do {
		moved = 0;
		for (unsigned i = 0; i < n_paths; i++)
			moved += forward(&paths[i], opts->batch, !run->deaf);
		total += moved;
		if (opts->count && total >= opts->count) run_end(run);
	} while (run_goes_on(run, moved));

	for (unsigned i = 0; i < n_paths; i++) {
		ixdp_free(ixdp_port_pool(paths[i].tx_port), paths[i].next, paths[i].n);
		*paths[i].tx_refused += elements_frames(paths[i].next, paths[i].n);
	}
}

/*
 * RX queue q of a port goes to TX queue q of the other, as far as that has as many: a flow, which
 * RSS keeps on one queue, stays in order.
 */
static unsigned make_paths(struct run *run, struct path *paths) {
	struct report_port *ports = run->report.ports;
	const unsigned n_ports = run->report.n_ports;
	unsigned n = 0;

	for (unsigned queue = 0; queue < run->opts->config.rx_queues; queue++) {
		for (unsigned i = 0; i < n_ports; i++) {
			struct report_port *out = &ports[n_ports - 1 - i];
			struct path *path = &paths[n++];

			path->rx_port = ports[i].port;
			path->rx_queue = queue;
			path->tx_port = out->port;
			path->tx_queue = queue % run->opts->config.tx_queues;
			path->tx_refused = &out->tx_refused;
		}
	}
	return n;
}

enum { KEY_THREADS = 0x200 };

struct arguments {
	struct options common;
	char *names[REPORT_MAX_PORTS];
	unsigned n_names;
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
	static char *const software_ports[] = {"soft:a,peer=gen", "soft:b,peer=gen"};
	struct arguments *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->common;
		return 0;
	case KEY_THREADS:
		args->common.threads = options_number("--threads", arg, 1, WORKERS_MAX);
		return 0;
	case ARGP_KEY_ARG:
		run_add_name(args->names, &args->n_names, arg);
		return 0;
	case ARGP_KEY_NO_ARGS:
		for (unsigned i = 0; i < REPORT_MAX_PORTS; i++)
			args->names[args->n_names++] = software_ports[i];
		return 0;
	case ARGP_KEY_END:
		if (args->common.threads && args->common.config.tx_queues > IXDP_XDP_MAX_QUEUES)
			options_usage("--tx-queues %u: with --threads there are at most %d",
				      args->common.config.tx_queues, IXDP_XDP_MAX_QUEUES);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv) {
	static const struct argp_option options[] = {
	    {"threads", KEY_THREADS, "N", 0,
	     "Forward in N threads, 1 to 1024, by an XDP program that redirects; --tx-queues are "
	     "then shared (one thread, without XDP)",
	     1},
	    {0},
	};
	static const struct argp_child children[] = {{.argp = &options_argp}, {0}};
	static const struct argp argp = {
	    .options = options,
	    .parser = parse_option,
	    .children = children,
	    .args_doc = "[DEV [DEV]]",
	    .doc =
		"Forwards packets between two ports, or from one port back out of it.\n\n"
		"DEV is the PCI address of an Intel 82599 (0000:03:00.0) or a software port "
		"(soft:NAME[,key=value...]). Without any it forwards between soft:a,peer=gen "
		"and soft:b,peer=gen.\v"
		"With several --rx-queues, RSS spreads flows over them; what RX queue q of a port "
		"receives, TX queue q of the other sends.\n\n"
		"It ends at --duration, --count, SIGINT, SIGTERM or SIGHUP, and when all that its "
		"software ports' wires send is through.",
	};
	static struct path paths[REPORT_MAX_PORTS * IXDP_MAX_RX_QUEUES];
	struct arguments args = {0};
	static struct workers workers;
	static struct run run;

	options_parse(&argp, argc, argv, &args);
	if (args.common.threads) {
		/* As many as RX queues: workers of one then share one, and flows stay in order. */
		args.common.config.xdp_queues = args.common.config.tx_queues;
		args.common.config.tx_queues = 0;
	}
	if (run_open(&run, &args.common, args.names, args.n_names)) return EXIT_FAILURE;
	if (args.common.threads) return workers_main(&workers, &run, WORKERS_REDIRECT);
	/* What is for a port without link waits in its ring, which may fill up. */
	run_begin(&run);
	forward_all(&run, paths, make_paths(&run, paths));
	return run_close(&run);
}
