/* SPDX-License-Identifier: BSD-3-Clause */
#include "xdp_report.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_QUEUES = 8 }; /* that are shown one by one in each interval */

/* The sum of what became of redirected frames that were not sent. */
static uint64_t redirect_errors(const struct ixdp_xdp_stats *stats) {
	return stats->redirect_full + stats->redirect_closed + stats->redirect_down +
	       stats->redirect_unprepared;
}

static struct xdp_verdicts get_verdicts(const struct ixdp_port *port, unsigned queue) {
	struct ixdp_xdp_stats stats;

	if (ixdp_xdp_stats_get(port, queue, &stats)) return (struct xdp_verdicts){0};
	return (struct xdp_verdicts){
	    .pass = stats.pass,
	    .drop = stats.drop,
	    .aborted = stats.aborted,
	    .tx = stats.tx,
	    .tx_full = stats.tx_full,
	    .redirect = stats.redirect + stats.redirect_self,
	    .redirect_err = redirect_errors(&stats),
	};
}

static uint64_t sends(const struct xdp_report *xdp, unsigned worker, unsigned i) {
	const char *at = (const char *)xdp->first + worker * xdp->stride;

	return ((const struct xdp_worker *)at)->sends[i];
}

/* --- since the last line, or in all -------------------------------------------------------- */

static struct xdp_verdicts show_verdicts(struct xdp_report *xdp, unsigned i, unsigned queue,
					 bool totals) {
	struct xdp_verdicts now = get_verdicts(xdp->report->ports[i].port, queue), shown = now;
	struct xdp_verdicts *last = &xdp->last[i].verdicts[queue];

	if (totals) return now;
#define V(name) shown.name -= last->name;
	XDP_VERDICTS(V)
#undef V
	*last = now;
	return shown;
}

static struct ixdp_xdp_queue_stats show_queue(struct xdp_report *xdp, unsigned i, unsigned queue,
					      bool totals) {
	struct ixdp_xdp_queue_stats now = {0}, *last = &xdp->last[i].queues[queue];

	ixdp_xdp_queue_stats_get(xdp->report->ports[i].port, queue, &now);
	struct ixdp_xdp_queue_stats shown = now;

	if (totals) return now;
	shown.packets -= last->packets;
	shown.locked -= last->locked;
	shown.contended -= last->contended;
	shown.yields -= last->yields;
	*last = now;
	return shown;
}

static uint64_t show_sends(struct xdp_report *xdp, unsigned i, unsigned worker, bool totals) {
	const uint64_t now = sends(xdp, worker, i), last = xdp->last[i].sends[worker];

	if (totals) return now;
	xdp->last[i].sends[worker] = now;
	return now - last;
}

/* --- JSON ---------------------------------------------------------------------------------- */

static void add(struct json_object *object, const char *name, uint64_t value) {
	json_object_object_add(object, name, json_object_new_uint64(value));
}

static struct json_object *add_to(struct json_object *array, unsigned queue) {
	struct json_object *entry = json_object_new_object();

	json_object_array_add(array, entry);
	add(entry, "queue", queue);
	return entry;
}

static void add_json(struct xdp_report *xdp, unsigned i, struct json_object *object, bool totals) {
	struct json_object *verdicts = json_object_new_array(), *queues = json_object_new_array();
	struct json_object *workers = json_object_new_array();

	for (unsigned q = 0; q < xdp->rx_queues; q++) {
		const struct xdp_verdicts shown = show_verdicts(xdp, i, q, totals);
		struct json_object *entry = add_to(verdicts, q);

#define V(name) add(entry, #name, shown.name);
		XDP_VERDICTS(V)
#undef V
	}
	for (unsigned q = 0; q < ixdp_xdp_queues(xdp->report->ports[i].port); q++) {
		const struct ixdp_xdp_queue_stats shown = show_queue(xdp, i, q, totals);
		struct json_object *entry = add_to(queues, q);

		add(entry, "packets", shown.packets);
		add(entry, "locked", shown.locked);
		add(entry, "contended", shown.contended);
		add(entry, "yields", shown.yields);
		json_object_object_add(entry, "shared", json_object_new_boolean(shown.shared));
	}
	for (unsigned w = 0; w < xdp->n_workers; w++)
		json_object_array_add(workers,
				      json_object_new_uint64(show_sends(xdp, i, w, totals)));
	json_object_object_add(object, "verdicts", verdicts);
	json_object_object_add(object, "xdp_tx", queues);
	json_object_object_add(object, "worker_sends", workers);
}

/* --- lines --------------------------------------------------------------------------------- */

static void print_verdicts(struct xdp_report *xdp, unsigned i, bool totals) {
	for (unsigned q = 0; q < xdp->rx_queues; q++) {
		const struct xdp_verdicts shown = show_verdicts(xdp, i, q, totals);
		const char *comma = "";

		printf("          rx queue %u: ", q);
#define V(name)                                                                                    \
	if (shown.name) {                                                                          \
		printf("%s" #name " %" PRIu64, comma, shown.name);                                 \
		comma = ", ";                                                                      \
	}
		XDP_VERDICTS(V)
#undef V
		puts(*comma ? "" : "nothing");
	}
}

static void print_queue(const struct ixdp_xdp_queue_stats *shown) {
	printf("packets %" PRIu64, shown->packets);
	if (shown->shared)
		printf(", shared: locked %" PRIu64 ", contended %" PRIu64 ", yields %" PRIu64,
		       shown->locked, shown->contended, shown->yields);
	putchar('\n');
}

static void print_queues(struct xdp_report *xdp, unsigned i, bool totals) {
	const unsigned n = ixdp_xdp_queues(xdp->report->ports[i].port);
	struct ixdp_xdp_queue_stats sum = {0};

	for (unsigned q = 0; q < n; q++) {
		const struct ixdp_xdp_queue_stats shown = show_queue(xdp, i, q, totals);

		sum.packets += shown.packets;
		sum.locked += shown.locked;
		sum.contended += shown.contended;
		sum.yields += shown.yields;
		sum.shared |= shown.shared;
		if ((!totals && n > FEW_QUEUES) || (!shown.packets && !shown.locked)) continue;
		printf("          xdp tx queue %u: ", q);
		print_queue(&shown);
	}
	printf("          xdp tx queues, %u in all: ", n);
	print_queue(&sum);
}

/* Of the port's own frames, which may have gone out of another one. */
static void print_workers(const struct xdp_report *xdp, unsigned i) {
	unsigned have_sent = 0;

	for (unsigned w = 0; w < xdp->n_workers; w++)
		have_sent += sends(xdp, w, i) > 0;
	if (have_sent)
		printf("          %u of %u workers have sent some of them\n", have_sent,
		       xdp->n_workers);
}

static void more(void *arg, unsigned i, struct json_object *object, bool totals) {
	struct xdp_report *xdp = arg;

	if (object) {
		add_json(xdp, i, object, totals);
		return;
	}
	print_verdicts(xdp, i, totals);
	if (totals) print_workers(xdp, i);
	print_queues(xdp, i, totals);
}

int xdp_report_init(struct xdp_report *xdp, struct report *report, unsigned rx_queues,
		    unsigned n_workers, const struct xdp_worker *first, size_t stride) {
	int err = 0;

	*xdp = (struct xdp_report){
	    .report = report,
	    .n_workers = n_workers,
	    .rx_queues = rx_queues,
	    .first = first,
	    .stride = stride,
	};
	for (unsigned i = 0; i < report->n_ports; i++) {
		xdp->last[i].sends = calloc(n_workers, sizeof(uint64_t));
		if (!xdp->last[i].sends) err = -ENOMEM;
	}
	if (err) {
		xdp_report_free(xdp);
		return err;
	}
	report->more = more;
	report->arg = xdp;
	return 0;
}

void xdp_report_free(struct xdp_report *xdp) {
	for (unsigned i = 0; i < REPORT_MAX_PORTS; i++)
		free(xdp->last[i].sends);
}

/* Queues first to last, to which so many workers come. */
static void print_share(FILE *to, unsigned first, unsigned last, unsigned workers) {
	fprintf(to, first == last ? "queue %u has " : "queues %u to %u have ", first, last);
	fprintf(to, first == last ? "%u" : "%u each", workers);
	if (workers > 1) fputs(", and a lock", to);
}

void xdp_report_sharing(const struct xdp_report *xdp) {
	FILE *to = xdp->report->json ? stderr : stdout;

	for (unsigned i = 0; i < xdp->report->n_ports; i++) {
		const struct ixdp_port *port = xdp->report->ports[i].port;
		const unsigned n = ixdp_xdp_queues(port), more_than = xdp->n_workers % n;

		fprintf(to, "%s: %u workers on %u XDP TX queues: ", ixdp_port_name(port),
			xdp->n_workers, n);
		if (more_than > 0) {
			print_share(to, 0, more_than - 1, xdp->n_workers / n + 1);
			fputs("; ", to);
		}
		print_share(to, more_than, n - 1, xdp->n_workers / n);
		fputc('\n', to);
	}
}

void xdp_report_refused(struct xdp_report *xdp, struct report *report) {
	for (unsigned i = 0; i < report->n_ports; i++) {
		const struct ixdp_port *port = report->ports[i].port;
		const struct ixdp_port *other = report->ports[report->n_ports - 1 - i].port;
		struct ixdp_xdp_stats own, others;
		uint64_t refused = 0;

		for (unsigned q = 0; q < xdp->rx_queues; q++) {
			if (ixdp_xdp_stats_get(port, q, &own) ||
			    ixdp_xdp_stats_get(other, q, &others))
				continue;
			refused += own.tx_full + redirect_errors(&others);
		}
		report->ports[i].tx_refused = refused;
	}
}
