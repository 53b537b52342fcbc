/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include "elements.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum key {
	KEY_DURATION = 0x100,
	KEY_COUNT,
	KEY_BATCH,
	KEY_RX_QUEUES,
	KEY_TX_QUEUES,
	KEY_RING,
	KEY_MTU,
	KEY_PAUSE,
	KEY_CPU,
	KEY_JSON,
	KEY_STATS,
	KEY_FORCE,
	KEY_VERBOSE,
};

/* The first one is not for programs that only receive. --help has them in order of their names. */
static const struct argp_option common_options[] = {
    {"tx-queues", KEY_TX_QUEUES, "N", 0, "TX queues per port, 1 to 128 (as many as RX queues)", 1},
    {NULL, 0, NULL, 0, "Common options:", 1},
    {"duration", KEY_DURATION, "SEC", 0, "End after SEC seconds (0.5, 3, ...)", 0},
    {"count", KEY_COUNT, "N", 0,
     "End after N frames (received by ixdp-fwd, ixdp-xdp and ixdp-capture, sent by ixdp-pktgen)",
     0},
    {"batch", KEY_BATCH, "N", 0,
     "Array elements per call, 1 to 256 (32): frames, of which one above 2048 bytes takes several",
     0},
    {"rx-queues", KEY_RX_QUEUES, "N", 0, "RX queues per port, 1 to 16 (1)", 0},
    {"ring", KEY_RING, "N", 0, "Descriptors per ring, a power of two, 64 to 4096 (512)", 0},
    {"mtu", KEY_MTU, "N", 0, "Receive frames of up to N bytes behind the header, 68 to 9000 (1500)",
     0},
    {"pause", KEY_PAUSE, "MODE", 0,
     "Flow control: rx (obey PAUSE frames), tx (send them), rx,tx or off (off)", 0},
    {"cpu", KEY_CPU, "LIST", 0, "Pin workers to these CPUs (1 or 0,2-3)", 0},
    {"json", KEY_JSON, NULL, 0, "One JSON object per port and second, totals last", 0},
    {"stats", KEY_STATS, NULL, 0, "Print all statistics of ports and queues at the end", 0},
    {"force", KEY_FORCE, NULL, 0, "Take a NIC although it is in use", 0},
    {"verbose", KEY_VERBOSE, NULL, 0, "Say on stderr what the driver does", 0},
    {0},
};

static enum ixdp_log_level log_level;

void options_usage(const char *fmt, ...) {
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
	exit(EXIT_USAGE);
}

uint64_t options_number(const char *option, const char *text, uint64_t min, uint64_t max) {
	char *end;

	errno = 0;
	const uint64_t number = strtoull(text, &end, 10);

	/* strtoull() would take blanks and a sign. */
	if (*text < '0' || *text > '9' || *end || errno || number < min || number > max) {
		if (max == UINT64_MAX)
			options_usage("%s %s: not a number from %lu upwards", option, text, min);
		options_usage("%s %s: not a number from %lu to %lu", option, text, min, max);
	}
	return number;
}

static double parse_seconds(const char *option, const char *text) {
	char *end;
	const double seconds = strtod(text, &end);

	if (!*text || *end || !isfinite(seconds) || seconds <= 0 || seconds > 1e9)
		options_usage("%s %s: not a time in seconds above 0", option, text);
	return seconds;
}

/* A CPU list as taskset(1) takes it: 1 or 0,2-3. All must be usable, or the run measures others. */
static void parse_cpus(const char *option, const char *text, cpu_set_t *cpus) {
	const char *at = text;
	cpu_set_t usable;

	CPU_ZERO(cpus);
	sched_getaffinity(0, sizeof(usable), &usable);
	do {
		char *end;
		const unsigned long first = strtoul(at, &end, 10);
		unsigned long last = first;
		bool good = *at >= '0' && *at <= '9';

		if (good && *end == '-') {
			at = end + 1;
			good = *at >= '0' && *at <= '9';
			last = strtoul(at, &end, 10);
		}
		if (!good || (*end && *end != ',') || first > last || last >= CPU_SETSIZE)
			options_usage("%s %s: not a list of CPUs like 1 or 0,2-3", option, text);
		for (unsigned long cpu = first; cpu <= last; cpu++) {
			if (!CPU_ISSET(cpu, &usable))
				options_usage("%s %s: this process cannot run on CPU %lu", option,
					      text, cpu);
			CPU_SET(cpu, cpus);
		}
		at = *end ? end + 1 : NULL;
	} while (at);
}

static unsigned parse_pause(const char *option, const char *text) {
	static const struct {
		const char *text;
		unsigned pause;
	} all[] = {
	    {"off", 0},
	    {"rx", IXDP_PAUSE_RX},
	    {"tx", IXDP_PAUSE_TX},
	    {"rx,tx", IXDP_PAUSE_RX | IXDP_PAUSE_TX},
	};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(text, all[i].text)) return all[i].pause;
	options_usage("%s %s: none of rx, tx, rx,tx and off", option, text);
}

/* What is not given is 0, so that a program's own parser may choose at its end: see complete(). */
static void set_defaults(struct options *opts) {
	*opts = (struct options){.batch = 32};
	ixdp_config_init(&opts->config);
	opts->config.mtu = 0;
	opts->config.tx_queues = 0;
	log_level = IXDP_LOG_WARNING;
}

static void complete(struct options *opts) {
	struct ixdp_config *config = &opts->config;

	if (!config->mtu) config->mtu = OPTIONS_MTU;
	if (!config->tx_queues) config->tx_queues = config->rx_queues;
	if (opts->batch < elements_of_mtu(config->mtu))
		options_usage(
		    "--batch %u: a frame of --mtu %u may take %u elements, so --batch %u or more",
		    opts->batch, config->mtu, elements_of_mtu(config->mtu),
		    elements_of_mtu(config->mtu));
}

static error_t parse_common(int key, char *arg, struct argp_state *state) {
	struct options *opts = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		set_defaults(opts);
		/* One line for wrong usage: without a second one that recommends --help. */
		state->err_stream = NULL;
		return 0;
	case KEY_DURATION:
		opts->duration = parse_seconds("--duration", arg);
		return 0;
	case KEY_COUNT:
		opts->count = options_number("--count", arg, 1, UINT64_MAX);
		return 0;
	case KEY_BATCH:
		opts->batch = options_number("--batch", arg, 1, OPTIONS_MAX_BATCH);
		return 0;
	case KEY_RX_QUEUES:
		opts->config.rx_queues = options_number("--rx-queues", arg, 1, IXDP_MAX_RX_QUEUES);
		return 0;
	case KEY_TX_QUEUES:
		opts->config.tx_queues = options_number("--tx-queues", arg, 1, IXDP_MAX_TX_QUEUES);
		return 0;
	case KEY_RING:
		opts->config.rx_ring = options_number("--ring", arg, IXDP_MIN_RING, IXDP_MAX_RING);
		opts->config.tx_ring = opts->config.rx_ring;
		if (opts->config.rx_ring & (opts->config.rx_ring - 1))
			options_usage("--ring %s: not a power of two (64, 128, ... 4096)", arg);
		return 0;
	case KEY_MTU:
		opts->config.mtu = options_number("--mtu", arg, IXDP_MIN_MTU, IXDP_MAX_MTU);
		return 0;
	case KEY_PAUSE:
		opts->config.pause = parse_pause("--pause", arg);
		return 0;
	case KEY_CPU:
		parse_cpus("--cpu", arg, &opts->cpus);
		opts->pin = true;
		return 0;
	case KEY_JSON:
		opts->json = true;
		return 0;
	case KEY_STATS:
		opts->stats = true;
		return 0;
	case KEY_FORCE:
		opts->config.force = true;
		return 0;
	case KEY_VERBOSE:
		log_level = IXDP_LOG_INFO;
		return 0;
	case ARGP_KEY_SUCCESS: /* after each parser's ARGP_KEY_END */
		complete(opts);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp options_argp = {.options = common_options, .parser = parse_common};
const struct argp options_rx_argp = {.options = common_options + 1, .parser = parse_common};

static void print_version(FILE *stream, struct argp_state *state) {
	(void)state;
	fprintf(stream, "%s %s\n", program_invocation_short_name, ixdp_version());
}

static atomic_bool error_logged;

bool options_error_logged(void) { return atomic_load(&error_logged); }

static void log_line(enum ixdp_log_level level, const char *line, void *arg) {
	static const char *const names[] = {"error", "warning", "info", "debug"};

	(void)arg;
	if (level == IXDP_LOG_ERROR) atomic_store(&error_logged, true);
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, names[level], line);
}

/* Register accesses are the library's debug lines. */
static void parse_trace(const char *trace) {
	if (!trace || !*trace) return;
	if (strcmp(trace, "regs") != 0)
		options_usage("IXDP_TRACE=%s: only \"regs\" can be traced", trace);
	log_level = IXDP_LOG_DEBUG;
}

void options_parse(const struct argp *argp, int argc, char **argv, void *input) {
	argp_program_version_hook = print_version;
	/* getopt has already named an option that it does not know. */
	if (argp_parse(argp, argc, argv, 0, NULL, input)) exit(EXIT_USAGE);
	parse_trace(getenv("IXDP_TRACE"));
	ixdp_log_set(log_line, NULL, log_level);
}
