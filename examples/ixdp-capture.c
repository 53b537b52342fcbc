/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes what a port receives into a capture file.
 *
 *     ixdp-capture --duration 10 -w new.pcap 0000:03:00.0
 *     ixdp-capture -w - soft:a,peer=gen,rate=1kpps | tcpdump -nr -
 */
#include "common/capture_file.h"
#include "common/elements.h"
#include "common/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct capture {
	struct run run;
	struct ixdp_port *port;
	unsigned snaplen;
	struct capture_file file;
	uint64_t clock_ns; /* what is to be added to CLOCK_MONOTONIC to have the time of day */
};

static uint64_t clock_ns(clockid_t clock) {
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Whether the file has as many frames as it shall have. */
static bool is_full(const struct capture *cap) {
	return cap->run.opts->count && cap->file.captured == cap->run.opts->count;
}

/*
 * The frames of a batch, in one piece each, as the file wants them. They have one time: when they
 * were received.
 */
static void add_frames(struct capture *cap, const struct ixdp_pkt *pkts, unsigned n) {
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC) + cap->clock_ns;
	/* libpcap has nanoseconds where microseconds usually are. */
	struct pcap_pkthdr header = {.ts = {.tv_sec = (time_t)(now_ns / 1000000000),
					    .tv_usec = (suseconds_t)(now_ns % 1000000000)}};
	uint8_t room[ELEMENTS_MAX_FRAME];

	for (unsigned i = 0, elements; i < n && !is_full(cap); i += elements) {
		unsigned len;
		const uint8_t *data = elements_gather(&pkts[i], room, &len, &elements);

		header.len = len;
		header.caplen = len < cap->snaplen ? len : cap->snaplen;
		capture_file_add(&cap->file, &header, data);
	}
}

/* One batch of each queue. */
static unsigned capture(struct capture *cap) {
	const struct options *opts = cap->run.opts;
	const unsigned fewest = elements_of_mtu(opts->config.mtu);
	struct ixdp_pkt pkts[OPTIONS_MAX_BATCH];
	unsigned moved = 0;

	for (unsigned queue = 0; queue < opts->config.rx_queues && !is_full(cap); queue++) {
		const uint64_t left = opts->count ? opts->count - cap->file.captured : opts->batch;
		unsigned n = left < opts->batch ? left : opts->batch;

		/* Room for a long frame may be filled by several short ones, of which some are not
		 * wanted. */
		if (n < fewest) n = fewest;
		const int received = ixdp_rx(cap->port, queue, pkts, n);

		if (received <= 0) continue;
		add_frames(cap, pkts, received);
		ixdp_free(ixdp_port_pool(cap->port), pkts, received);
		moved += elements_frames(pkts, received);
	}
	return moved;
}

/*
 * The file has all that it shall have, or can take. Nobody can say when a card's wire has run
 * empty, so there what comes after the end is not waited for.
 */
static bool is_done(const struct capture *cap) {
	struct ixdp_wire_stats wire;

	return cap->file.failed || is_full(cap) || cap->run.deaf ||
	       (cap->run.ending && ixdp_wire_stats_get(cap->port, &wire) == -ENOTSUP);
}

/* At each interval: all that was captured is now in the file or lost, and others see it. */
static void sample_file(void *arg, struct report_sample *sample, bool totals) {
	struct capture *cap = arg;

	(void)totals;
	capture_file_flush(&cap->file);
	report_set(sample, CAPTURED, cap->file.captured);
	report_set(sample, WRITTEN, cap->file.written);
	report_set(sample, LOST, cap->file.captured - cap->file.written);
	/* The wire misses that which came here. */
	sample->shown &= ~(1u << MISORDERED | 1u << CORRUPT | 1u << FOREIGN);
}

enum key { KEY_SNAPLEN = 0x200 };

static const struct argp_option own_options[] = {
    {"write", 'w', "FILE", 0, "Write FILE, which is made anew; \"-\" is stdout", 0},
    {"snaplen", KEY_SNAPLEN, "N", 0, "Write the first N bytes of a frame, 1 to 65535 (65535)", 0},
    {0},
};

struct arguments {
	struct options common;
	unsigned snaplen;
	char *file;
	char *device;
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
	struct arguments *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->common;
		return 0;
	case 'w':
		args->file = arg;
		return 0;
	case KEY_SNAPLEN:
		args->snaplen = options_number("--snaplen", arg, 1, CAPTURE_MAX_SNAPLEN);
		return 0;
	case ARGP_KEY_ARG:
		if (args->device) options_usage("%s: a second device; it takes one", arg);
		args->device = arg;
		return 0;
	case ARGP_KEY_END:
		if (!args->device) options_usage("DEV is missing: a PCI address or soft:NAME");
		if (!args->file) options_usage("-w FILE is missing: where the frames shall go");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char doc[] =
    "Writes the frames that a port receives into a capture file, as tcpdump(1) and wireshark(1) "
    "read it: pcap with nanoseconds.\n\n"
    "DEV is the PCI address of an Intel 82599 (0000:03:00.0) or a software port "
    "(soft:NAME[,key=value...]).\v"
    "A frame's time is that at which its batch was received. It never goes back, even when the "
    "clock is set meanwhile.\n\n"
    "The file is brought up to date once a second, so that it can be read while it grows. With "
    "-w - what is otherwise printed on stdout goes to stderr.\n\n"
    "It ends at --duration, at --count (with exactly so many frames), on SIGINT, SIGTERM or SIGHUP, and "
    "when all that its software port's wire sends is through. It ends with a line that says why, "
    "and exit code 1, when the file takes no more: the disk is full, or the reader of the pipe has "
    "gone. The file is whole up to its last frame even then.\n\n"
    "At the end, captured == written + lost: frames that the program received, those that are in "
    "the file, those that it could not write. What the port itself had to drop is in rx_dropped; "
    "a larger --ring and several --rx-queues with --cpu help against that.\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong usage.";

int main(int argc, char **argv) {
	static const struct argp_child children[] = {{.argp = &options_rx_argp}, {0}};
	static const struct argp argp = {
	    .options = own_options,
	    .parser = parse_option,
	    .children = children,
	    .args_doc = "-w FILE DEV",
	    .doc = doc,
	};
	struct arguments args = {.snaplen = CAPTURE_MAX_SNAPLEN};
	static struct capture cap;

	options_parse(&argp, argc, argv, &args);
	args.common.config.tx_queues = 0;
	/* The port first: without it a file that is there already stays. */
	if (run_open(&cap.run, &args.common, &args.device, 1)) return EXIT_FAILURE;
	cap.port = cap.run.report.ports[0].port;
	cap.run.report.sample = sample_file;
	cap.run.report.arg = &cap;
	cap.snaplen = args.snaplen;
	cap.clock_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	if (!capture_file_open(&cap.file, args.file, args.snaplen)) {
		unsigned moved;

		/* Link may as well come later. */
		run_begin(&cap.run);
		do
			moved = capture(&cap);
		while (run_goes_on(&cap.run, moved) && !is_done(&cap));
	}

	const int status = run_close(&cap.run);

	return capture_file_close(&cap.file) ? EXIT_FAILURE : status;
}
