/* SPDX-License-Identifier: BSD-3-Clause */
/* What ports with an XDP program have to report: verdicts per RX queue, and how TX queues are
 * shared. */
#pragma once

#include "report.h"

#include <ixdp/xdp.h>
#include <stdatomic.h>
#include <stddef.h>

/* Of a worker; it alone writes them. */
struct xdp_worker {
	_Atomic uint64_t frames;		  /* that its programs have seen */
	_Atomic uint64_t sends[REPORT_MAX_PORTS]; /* of these, by port, those they wanted sent */
};

/* Verdicts as they are reported. */
#define XDP_VERDICTS(V) V(pass) V(drop) V(aborted) V(tx) V(tx_full) V(redirect) V(redirect_err)

struct xdp_verdicts {
#define V(name) uint64_t name;
	XDP_VERDICTS(V)
#undef V
};

/* What the last line about a port said. */
struct xdp_last {
	struct xdp_verdicts verdicts[IXDP_MAX_RX_QUEUES];
	struct ixdp_xdp_queue_stats queues[IXDP_XDP_MAX_QUEUES];
	uint64_t *sends; /* per worker */
};

struct xdp_report {
	const struct report *report;
	unsigned n_workers, rx_queues;
	const struct xdp_worker
	    *first; /* of the workers; the others follow, `stride` bytes apart */
	size_t stride;
	struct xdp_last last[REPORT_MAX_PORTS];
};

/*
 * Makes `report` show it with every interval and the totals. Workers, a number of them, first and
 * stride, must stay. Returns 0, or -ENOMEM.
 */
int xdp_report_init(struct xdp_report *xdp, struct report *report, unsigned rx_queues,
		    unsigned n_workers, const struct xdp_worker *first, size_t stride);
void xdp_report_free(struct xdp_report *xdp);

/* Says how many workers share which queues: on stdout, or on stderr when that is for JSON. */
void xdp_report_sharing(const struct xdp_report *xdp);

/* Counts frames that found no room in a TX ring as the ports' report_port.tx_refused. */
void xdp_report_refused(struct xdp_report *xdp, struct report *report);
