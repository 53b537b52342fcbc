/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const counter_names[COUNTERS] = {
    [RX_PACKETS] = "rx_packets",
    [RX_BYTES] = "rx_bytes",
    [TX_PACKETS] = "tx_packets",
    [TX_BYTES] = "tx_bytes",
    [RX_DROPPED] = "rx_dropped",
    [TX_DROPPED] = "tx_dropped",
    [WIRE_TX_PACKETS] = "wire_tx_packets",
    [WIRE_RX_PACKETS] = "wire_rx_packets",
    [CAPTURED] = "captured",
    [WRITTEN] = "written",
    [LOST] = "lost",
    [MISORDERED] = "misordered",
    [CORRUPT] = "corrupt",
    [FOREIGN] = "foreign",
    [RX_LOST] = "rx_lost",
    [RX_MISORDERED] = "rx_misordered",
    [RX_CORRUPT] = "rx_corrupt",
};

/* What derives from a sample of differences over dt seconds. */
struct rates {
	double rx_mpps, tx_mpps;
	double rx_gbps_l1, tx_gbps_l1;
};

void report_error(const char *fmt, ...) {
	char line[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

void report_set(struct report_sample *sample, enum counter counter, uint64_t value) {
	sample->n[counter] = (int64_t)value;
	sample->shown |= 1u << counter;
}

static void tell_changes(struct report_port *port, unsigned link, bool paused) {
	const char *name = ixdp_port_name(port->port);

	if (link != port->link && link)
		report_error("warning: %s: link is up, %u Mbit/s", name, link);
	else if (link != port->link)
		report_error("warning: %s: link is down", name);
	if (paused != port->paused)
		report_error(paused ? "warning: %s: the peer has paused us"
				    : "warning: %s: no longer paused",
			     name);
	port->link = link;
	port->paused = paused;
}

static int take_sample(const struct report *report, struct report_port *port, bool totals,
		       struct report_sample *sample) {
	struct ixdp_wire_stats wire;
	struct ixdp_stats stats;
	struct ixdp_link link;

	*sample = (struct report_sample){0};
	if (port->gone) return -ENODEV;
	if (!ixdp_wire_stats_get(port->port, &wire)) {
		report_set(sample, WIRE_TX_PACKETS, wire.to_port_packets);
		report_set(sample, WIRE_RX_PACKETS, wire.from_port_packets);
		if (wire.checks) {
			report_set(sample, LOST, wire.lost);
			report_set(sample, MISORDERED, wire.misordered);
			report_set(sample, CORRUPT, wire.corrupt);
			report_set(sample, FOREIGN, wire.foreign);
		}
	}
	if (ixdp_stats_get(port->port, &stats) || ixdp_link_get(port->port, &link)) {
		report_error("%s", ixdp_error());
		port->gone = true;
		return -ENODEV;
	}
	sample->link = link.up ? link.mbps : 0;
	tell_changes(port, sample->link, stats.tx_paused);
	report_set(sample, RX_PACKETS, stats.rx_packets);
	report_set(sample, RX_BYTES, stats.rx_bytes);
	report_set(sample, TX_PACKETS, stats.tx_packets);
	report_set(sample, TX_BYTES, stats.tx_bytes);
	report_set(sample, RX_DROPPED, stats.rx_dropped);
	/* What still waits in a ring when the run is over will not be sent any more. */
	report_set(sample, TX_DROPPED,
		   port->tx_refused + (totals ? stats.tx_pending : 0) + stats.tx_dropped);
	if (report->sample) report->sample(report->arg, sample, totals);
	return 0;
}

static struct report_sample difference(const struct report_sample *now,
				       const struct report_sample *last) {
	struct report_sample diff = *now;

	for (unsigned i = 0; i < COUNTERS; i++)
		diff.n[i] -= last->n[i];
	return diff;
}

static double gbps_l1(int64_t packets, int64_t bytes, double dt) {
	return (double)(bytes + packets * IXDP_FRAME_OVERHEAD) * 8 / 1e9 / dt;
}

static struct rates rates(const struct report_sample *diff, double dt) {
	const int64_t *n = diff->n;

	if (dt <= 0) return (struct rates){0};
	return (struct rates){
	    .rx_mpps = (double)n[RX_PACKETS] / 1e6 / dt,
	    .tx_mpps = (double)n[TX_PACKETS] / 1e6 / dt,
	    .rx_gbps_l1 = gbps_l1(n[RX_PACKETS], n[RX_BYTES], dt),
	    .tx_gbps_l1 = gbps_l1(n[TX_PACKETS], n[TX_BYTES], dt),
	};
}

static void add_double(struct json_object *object, const char *name, double value) {
	struct json_object *number = json_object_new_double(value);

	json_object_set_serializer(number, json_object_double_to_json_string, (void *)"%.6f", NULL);
	json_object_object_add(object, name, number);
}

static void add_counters(struct json_object *object, const struct report_sample *sample,
			 enum counter first, enum counter last) {
	for (unsigned i = first; i <= last; i++) {
		if (sample->shown & 1u << i)
			json_object_object_add(object, counter_names[i],
					       json_object_new_int64(sample->n[i]));
	}
}

static void print_json(const struct report *report, unsigned i, const struct report_sample *sample,
		       double t, double dt, bool final) {
	const char *port = ixdp_port_name(report->ports[i].port);
	struct json_object *object = json_object_new_object();
	const struct rates rate = rates(sample, dt);

	add_double(object, "t", t);
	json_object_object_add(object, "port", json_object_new_string(port));
	add_counters(object, sample, RX_PACKETS, TX_BYTES);
	add_double(object, "rx_mpps", rate.rx_mpps);
	add_double(object, "tx_mpps", rate.tx_mpps);
	add_double(object, "rx_gbps_l1", rate.rx_gbps_l1);
	add_double(object, "tx_gbps_l1", rate.tx_gbps_l1);
	add_counters(object, sample, RX_DROPPED, TX_DROPPED);
	json_object_object_add(object, "link", json_object_new_int64(sample->link));
	json_object_object_add(object, "final", json_object_new_boolean(final));
	add_counters(object, sample, WIRE_TX_PACKETS, RX_CORRUPT);
	if (report->requested_mpps >= 0)
		add_double(object, "requested_mpps", report->requested_mpps);
	if (report->more) report->more(report->arg, i, object, final);
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
	json_object_put(object);
}

static void print_row(struct report *report, unsigned i, const struct report_sample *sample,
		      double t, double dt) {
	const char *port = ixdp_port_name(report->ports[i].port);
	const struct rates rate = rates(sample, dt);

	if (!report->headed) {
		printf("%8s  %-14s %8s %10s %9s %8s %10s %9s  %s\n", "time/s", "port", "rx Mpps",
		       "rx Gbit/s", "rx drops", "tx Mpps", "tx Gbit/s", "tx drops", "link");
		report->headed = true;
	}
	printf("%8.1f  %-14s %8.3f %10.3f %9" PRId64 " %8.3f %10.3f %9" PRId64 "  ", t, port,
	       rate.rx_mpps, rate.rx_gbps_l1, sample->n[RX_DROPPED], rate.tx_mpps, rate.tx_gbps_l1,
	       sample->n[TX_DROPPED]);
	if (sample->link)
		printf("%u Mbit/s\n", sample->link);
	else
		puts("down");
	if (report->more) report->more(report->arg, i, NULL, false);
}

static void print_total(const struct report *report, unsigned i, const struct report_sample *sample,
			double t) {
	const char *port = ixdp_port_name(report->ports[i].port);
	const struct rates rate = rates(sample, t);
	const int64_t *n = sample->n;

	printf("   total  %s in %.3f s: received %" PRId64 " (%.3f Mpps), dropped %" PRId64
	       "; sent %" PRId64 " (%.3f Mpps), dropped %" PRId64,
	       port, t, n[RX_PACKETS], rate.rx_mpps, n[RX_DROPPED], n[TX_PACKETS], rate.tx_mpps,
	       n[TX_DROPPED]);
	if (report->requested_mpps >= 0) printf("; requested %.3f Mpps", report->requested_mpps);
	for (unsigned c = CAPTURED; c < COUNTERS; c++) {
		const bool follows = sample->shown & 1u << (c - 1) && c != CAPTURED && c != RX_LOST;

		if (sample->shown & 1u << c)
			printf("%s%s %" PRId64, follows ? ", " : "; ", counter_names[c], n[c]);
	}
	putchar('\n');
	if (report->more) report->more(report->arg, i, NULL, true);
}

int report_flush(void) {
	static bool told; /* what comes after it fails as well */

	if (!fflush(stdout) && !ferror(stdout)) return 0;
	if (!told) report_error("stdout: %s", strerror(errno));
	told = true;
	return -EIO;
}

/* Whether stdout takes some lines now: a pipe with room for PIPE_BUF bytes, or an error at once. */
static bool takes_lines(void) {
	struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&fd, 1, 0) != 0;
}

int report_interval(struct report *report, double t) {
	const double dt = t - report->t;
	const bool skip = !takes_lines();

	report->asked = t;
	report->skipped += skip;
	for (unsigned i = 0; i < report->n_ports; i++) {
		struct report_port *port = &report->ports[i];
		struct report_sample now;

		/* Skipped or not: counters of the NIC must be read, capture files be written. */
		if (take_sample(report, port, false, &now)) return -ENODEV;
		if (skip) continue;
		const struct report_sample diff = difference(&now, &port->last);

		if (report->json)
			print_json(report, i, &diff, t, dt, false);
		else
			print_row(report, i, &diff, t, dt);
		port->last = now;
	}
	if (skip) return 0;
	report->t = t;
	return report_flush();
}

int report_totals(struct report *report, double t) {
	int gone = 0;

	if (report->skipped)
		report_error(
		    "%u intervals had no line of their own, as nobody read stdout; they are in "
		    "the next one",
		    report->skipped);
	for (unsigned i = 0; i < report->n_ports; i++) {
		struct report_port *port = &report->ports[i];
		struct report_sample now;

		if (take_sample(report, port, true, &now)) {
			gone = -ENODEV;
			continue;
		}
		const struct report_sample diff = difference(&now, &port->last);

		if (report->json) {
			print_json(report, i, &diff, t, t - report->t, false);
			print_json(report, i, &now, t, t, true);
		} else {
			print_total(report, i, &now, t);
		}
	}
	return report_flush() ? -EIO : gone;
}

/* The statistics of a port or a queue, whose names tell what they are. */
static void print_list(const char *whose, const char *const *names, const void *values, unsigned n,
		       struct json_object *object) {
	for (unsigned i = 0; i < n; i++) {
		const uint64_t value = ((const uint64_t *)values)[i];

		if (object)
			json_object_object_add(object, names[i], json_object_new_uint64(value));
		else if (value)
			printf("   stats  %s: %s %" PRIu64 "\n", whose, names[i], value);
	}
}

/* An object at the end of an array, if there is one. */
static struct json_object *next_of(struct json_object *array) {
	struct json_object *next = array ? json_object_new_object() : NULL;

	if (array) json_object_array_add(array, next);
	return next;
}

/* json: receives lists of all queues, as long as there are any; NULL: they are printed. */
static void print_queues(struct ixdp_port *port, struct json_object *rx_json,
			 struct json_object *tx_json) {
	char whose[IXDP_NAME_MAX + 16];
	struct ixdp_rx_queue_stats rx;
	struct ixdp_tx_queue_stats tx;
	const char *const *names;
	unsigned n;

	names = ixdp_rx_queue_stats_names(&n);
	for (unsigned q = 0; !ixdp_rx_queue_stats_get(port, q, &rx); q++) {
		snprintf(whose, sizeof(whose), "%s rx %u", ixdp_port_name(port), q);
		print_list(whose, names, &rx, n, next_of(rx_json));
	}
	names = ixdp_tx_queue_stats_names(&n);
	for (unsigned q = 0; !ixdp_tx_queue_stats_get(port, q, &tx); q++) {
		snprintf(whose, sizeof(whose), "%s tx %u", ixdp_port_name(port), q);
		print_list(whose, names, &tx, n, next_of(tx_json));
	}
}

static void print_json_stats(struct ixdp_port *port, const struct ixdp_stats *stats) {
	struct json_object *line = json_object_new_object(), *totals = json_object_new_object();
	struct json_object *rx = json_object_new_array(), *tx = json_object_new_array();
	unsigned n;
	const char *const *names = ixdp_stats_names(&n);

	print_list(ixdp_port_name(port), names, stats, n, totals);
	print_queues(port, rx, tx);
	json_object_object_add(line, "port", json_object_new_string(ixdp_port_name(port)));
	json_object_object_add(line, "stats", totals);
	json_object_object_add(line, "rx_queues", rx);
	json_object_object_add(line, "tx_queues", tx);
	puts(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
	json_object_put(line);
}

int report_stats(const struct report *report) {
	unsigned n;
	const char *const *names = ixdp_stats_names(&n);

	for (unsigned i = 0; i < report->n_ports; i++) {
		struct ixdp_port *port = report->ports[i].port;
		struct ixdp_stats stats;

		if (ixdp_stats_get(port, &stats)) {
			report_error("%s", ixdp_error());
			return -ENODEV;
		}
		if (report->json) {
			print_json_stats(port, &stats);
			continue;
		}
		print_list(ixdp_port_name(port), names, &stats, n, NULL);
		print_queues(port, NULL, NULL);
	}
	return report_flush();
}
