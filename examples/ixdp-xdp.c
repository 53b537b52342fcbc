/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs an XDP program over what ports receive, in any number of threads, which share the ports' TX
 * queues. common/workers.c has the programs and the loop of a thread.
 *
 *     ixdp-xdp --prog swap --threads 4 0000:03:00.0
 *     ixdp-xdp --prog tx --threads 130 --duration 5 soft:a,peer=gen
 */
#include "common/workers.h"

#include <stdlib.h>
#include <string.h>

enum key { KEY_PROG = 0x200, KEY_THREADS, KEY_QUEUES };

struct arguments {
	struct options common;
	enum workers_prog prog;
	char *names[REPORT_MAX_PORTS];
	unsigned n_names;
};

static enum workers_prog parse_prog(const char *text) {
	static const char *const names[] = {
	    [WORKERS_DROP] = "drop", [WORKERS_PASS] = "pass",	      [WORKERS_TX] = "tx",
	    [WORKERS_SWAP] = "swap", [WORKERS_REDIRECT] = "redirect",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i])) return i;
	options_usage("--prog %s: none of drop, pass, tx, swap and redirect", text);
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
	struct arguments *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		args->prog = WORKERS_PASS;
		state->child_inputs[0] = &args->common;
		return 0;
	case KEY_PROG:
		args->prog = parse_prog(arg);
		return 0;
	case KEY_THREADS:
		args->common.threads = options_number("--threads", arg, 1, WORKERS_MAX);
		return 0;
	case KEY_QUEUES:
		args->common.config.xdp_queues =
		    options_number("--queues", arg, 1, IXDP_XDP_MAX_QUEUES);
		return 0;
	case ARGP_KEY_ARG:
		run_add_name(args->names, &args->n_names, arg);
		return 0;
	case ARGP_KEY_END:
		if (args->n_names == 0) options_usage("DEV is missing: which port?");
		if (args->prog == WORKERS_REDIRECT && args->n_names == 1)
			options_usage("--prog redirect: needs a second DEV to send to");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv) {
	static const struct argp_option options[] = {
	    {"prog", KEY_PROG, "PROG", 0,
	     "What becomes of frames: drop, pass (freed by the worker), tx (back out of their "
	     "port), swap (likewise, MAC addresses exchanged), redirect (out of the other port) "
	     "(pass)",
	     1},
	    {"threads", KEY_THREADS, "N", 0, "Workers, 1 to 1024 (1)", 1},
	    {"queues", KEY_QUEUES, "N", 0,
	     "XDP TX queues per port, 1 to 64 (as many as workers, within 64)", 1},
	    {0},
	};
	static const struct argp_child children[] = {{.argp = &options_rx_argp}, {0}};
	static const struct argp argp = {
	    .options = options,
	    .parser = parse_option,
	    .children = children,
	    .args_doc = "DEV [DEV]",
	    .doc =
		"Runs an XDP program over the frames that one or two ports receive.\n\n"
		"DEV is the PCI address of an Intel 82599 (0000:03:00.0) or a software port "
		"(soft:NAME[,key=value...]).\v"
		"Worker w polls RX queue w modulo their number, of each port, and sends on XDP TX "
		"queue w modulo theirs. A TX queue that several workers send on has a lock.\n\n"
		"It ends at --duration, --count, SIGINT, SIGTERM or SIGHUP, and when all that its "
		"software ports' wires send is through.",
	};
	static struct workers workers;
	struct arguments args = {0};
	static struct run run;

	options_parse(&argp, argc, argv, &args);
	if (!args.common.threads) args.common.threads = 1;
	/* All TX queues are for XDP. */
	args.common.config.tx_queues = 0;
	if (run_open(&run, &args.common, args.names, args.n_names)) return EXIT_FAILURE;
	return workers_main(&workers, &run, args.prog);
}
