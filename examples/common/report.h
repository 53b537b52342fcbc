/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program prints: a line per port and interval, for eyes or as JSON, and totals last. */
#pragma once

#include <ixdp/ixdp.h>

enum { REPORT_MAX_PORTS = 2 };

struct json_object;

/* Everything that is counted, totals since open. counter_names in report.c names them as JSON does.
 */
enum counter {
	RX_PACKETS,
	RX_BYTES,
	TX_PACKETS,
	TX_BYTES,
	RX_DROPPED,
	TX_DROPPED,
	WIRE_TX_PACKETS, /* the wire's view: what it sent to the port, and received from it */
	WIRE_RX_PACKETS,
	CAPTURED, /* by ixdp-capture, whose LOST is the program's own, not the wire's */
	WRITTEN,
	LOST,
	MISORDERED,
	CORRUPT,
	FOREIGN,
	RX_LOST, /* of the program's own frames that came back */
	RX_MISORDERED,
	RX_CORRUPT,
	COUNTERS,
};

struct report_sample {
	int64_t n[COUNTERS];
	uint32_t shown; /* bit per counter: the port has it */
	unsigned link;	/* Mbit/s; 0: down */
};

struct report_port {
	struct ixdp_port *port;
	bool gone;	     /* it has been said that the device has gone; it has no totals */
	uint64_t tx_refused; /* frames that the program gave up: no TX ring took them */
	unsigned link;	     /* Mbit/s, and whether the peer has paused us, as last told */
	bool paused;
	struct report_sample last;
};

struct report {
	struct report_port ports[REPORT_MAX_PORTS];
	unsigned n_ports;
	bool json;
	bool headed;	       /* the table has its heading */
	double requested_mpps; /* below 0: not shown */
	double t;	       /* seconds from the start to the last interval's end */
	double asked;	       /* likewise, to when an interval was asked for last */
	unsigned skipped;      /* intervals that were not printed */
	/* The program's own counters; totals: the run is over. NULL: none. */
	void (*sample)(void *arg, struct report_sample *sample, bool totals);
	/*
	 * More about port i, behind its line, or as members of its object if there is one: since
	 * the last call for an interval, or since the beginning. NULL: none.
	 */
	void (*more)(void *arg, unsigned i, struct json_object *object, bool totals);
	void *arg;
};

/*
 * Prints what happened since the last interval; t: seconds since the start. When stdout is a pipe
 * that nobody reads, the work shall not wait for it: the interval then goes on to the next call. A
 * link that has changed, or a transmitter that is paused or no more, is a line on stderr. Returns
 * 0, or -errno with a line on stderr (stdout cannot be written, NIC gone).
 */
int report_interval(struct report *report, double t);

/* Prints the last, partial interval, so that intervals add up, and the totals. Returns likewise. */
int report_totals(struct report *report, double t);

/* Prints all statistics of ports and queues (without JSON: those that are not 0). Returns likewise.
 */
int report_stats(const struct report *report);

/* Gives a sample a counter: for report.sample(). */
void report_set(struct report_sample *sample, enum counter counter, uint64_t value);

/* Writes out what is printed so far. Returns 0, or -EIO with a line on stderr. */
int report_flush(void);

/* Prints a line on stderr, behind the program's name. */
void report_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
