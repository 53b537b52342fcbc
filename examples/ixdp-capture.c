/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes what a port receives into a capture file.
 *
 *     ixdp-capture --duration 10 -w new.pcap 0000:03:00.0
 *     ixdp-capture -w - soft:a,peer=gen,rate=1kpps | tcpdump -nr -
 */
#include "common/capture_file.h"
#include "common/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The frame of an RX queue that spans several packets: the capture file wants it in one piece. */
struct frame {
	uint8_t data[CAPTURE_MAX_SNAPLEN];
	uint32_t len; /* so far, what did not fit into data included */
};

struct capture {
	struct run run;
	struct ixdp_port *port;
	unsigned snaplen;
	struct capture_file file;
	uint64_t clock_ns; /* what is to be added to CLOCK_MONOTONIC to have the time of day */
	struct frame frames[IXDP_MAX_RX_QUEUES];
};

static uint64_t clock_ns(clockid_t clock) {
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void add_packet(struct capture *cap, struct frame *frame, const struct ixdp_pkt *pkt,
		       struct pcap_pkthdr *header) {
	const uint8_t *data = pkt->data;

	if (frame->len || pkt->flags & IXDP_PKT_CONTD) {
		const uint32_t at = smaller(frame->len, sizeof(frame->data));

		memcpy(frame->data + at, data, smaller(pkt->len, sizeof(frame->data) - at));
		data = frame->data;
	}
	frame->len += pkt->len;
	if (pkt->flags & IXDP_PKT_CONTD) return;
	header->len = frame->len;
	header->caplen = smaller(frame->len, cap->snaplen);
	frame->len = 0;
	capture_file_add(&cap->file, header, data);
}

/* One batch of each queue. Its packets have one time: when they were received. */
static unsigned capture(struct capture *cap) {
	const struct options *opts = cap->run.opts;
	struct ixdp_pkt pkts[OPTIONS_MAX_BATCH];
	unsigned moved = 0;

	for (unsigned queue = 0; queue < opts->config.rx_queues; queue++) {
		unsigned n = opts->batch;

		if (opts->count && opts->count - cap->file.captured < n)
			n = opts->count - cap->file.captured;

		const int received = ixdp_rx(cap->port, queue, pkts, n);

		if (received <= 0) continue;

		const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC) + cap->clock_ns;
		/* libpcap has nanoseconds where microseconds usually are. */
		struct pcap_pkthdr header = {.ts = {.tv_sec = (time_t)(now_ns / 1000000000),
						    .tv_usec = (suseconds_t)(now_ns % 1000000000)}};

		for (int i = 0; i < received; i++)
			add_packet(cap, &cap->frames[queue], &pkts[i], &header);
		ixdp_free(ixdp_port_pool(cap->port), pkts, received);
		moved += received;
	}
	return moved;
}

/*
 * The file has all that it shall have, or can take. Nobody can say when a card's wire has run
 * empty, so there what comes after the end is not waited for.
 */
static bool is_done(const struct capture *cap) {
	const uint64_t count = cap->run.opts->count;
	struct ixdp_wire_stats wire;

	return cap->file.failed || (count && cap->file.captured == count) || cap->run.deaf ||
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
