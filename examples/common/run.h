/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a program: open ports, wait for link, work until it is time to end, let rings and
 * wires run empty, print totals, close. The work itself is the program's:
 *
 *     run_open(&run, &opts, names, n);
 *     run_begin(&run);
 *     do
 *             moved = ...;
 *     while (run_goes_on(&run, moved));
 *     return run_close(&run);
 */
#pragma once

#include "options.h"
#include "report.h"

struct run {
	const struct options *opts;
	struct report report; /* with the ports */
	uint64_t start_ns;
	uint64_t now_ns; /* as of run_begin() or run_goes_on() */
	bool ending;	 /* send nothing new: what is under way runs out */
	bool deaf;	 /* receive nothing any more: what is to be sent runs out */
	bool failed;	 /* the exit code will be 1 */
	bool over;	 /* nothing is left to be waited for: a device has gone, or sends no more */
	bool linkless;	 /* a port had no link when the run began */
	uint64_t deaf_ns;		    /* since when nothing is received */
	uint64_t end_ns;		    /* when it began to end */
	int end_signals;		    /* signals caught by then: one more ends the waiting */
	uint64_t idle_ns;		    /* since when nothing has moved */
	uint64_t look_ns;		    /* when to look at the wires next */
	uint64_t sent[REPORT_MAX_PORTS];    /* tx_packets at the last interval */
	uint64_t sent_ns[REPORT_MAX_PORTS]; /* since when they stay */
	unsigned moved;			    /* frames moved since the last look */
	unsigned quiet;			    /* looks in succession that found everything empty */
};

/*
 * Sees to it that a stream which is closed does not become one of the files that are opened next.
 * Returns 0, or -EBADF with a line on stderr when stdout is closed. run_open() does it, too.
 */
int run_check_streams(void);

/* Adds a device that the command line names to those before; one too many ends the process. */
void run_add_name(char *names[REPORT_MAX_PORTS], unsigned *n, char *name);

/*
 * Opens the ports, and catches SIGINT and SIGTERM. Returns 0, or -errno with a line on stderr;
 * then nothing is open.
 */
int run_open(struct run *run, const struct options *opts, char *const *names, unsigned n);

/*
 * Waits up to 10 s for link on all ports, then starts the clock. A signal ends the waiting and, at
 * once, the run. Returns false, with a line on stderr, when a port still has no link after that
 * time.
 */
bool run_begin(struct run *run);

/*
 * To be called after each round of work. moved: how many frames it received or sent. Prints
 * intervals. Begins to end the run on a signal, at --duration, and when all sources of the wires
 * are through; false when, after that, nothing is under way any more.
 */
bool run_goes_on(struct run *run, unsigned moved);

/* Begins to end the run: the sources of the wires stop. The program sends nothing new. */
void run_end(struct run *run);

/* Prints totals if the run has begun, closes the ports. Returns the exit code. */
int run_close(struct run *run);
