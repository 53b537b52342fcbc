/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <ixdp/xdp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	MS = 1000 * 1000,	  /* nanoseconds */
	LINK_WAIT_MS = 10 * 1000, /* auto-negotiation takes 3 s and more */
	LINK_SLICE_MS = 100,	  /* between looks for a signal meanwhile */
	LINK_QUIET_MS = 1000,	  /* that long without a word about it */
	LOOK_MS = 1,		  /* between looks at the wires */
	ENDLESS_MS = 100,	  /* to receive from a wire of which no end can be seen */
	STUCK_MS = 2 * 1000,	  /* nothing moves any more */
	DRAIN_MS = 10 * 1000,	  /* something moves that has no end after all */
	QUIET_LOOKS = 3,	  /* see is_quiet() */
};

static volatile sig_atomic_t signals;

static void count_signal(int signal) {
	(void)signal;
	signals++;
}

static uint64_t clock_ns(void) {
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static double seconds(const struct run *run) { return (double)(run->now_ns - run->start_ns) / 1e9; }

int run_check_streams(void) {
	const bool closed = fcntl(STDOUT_FILENO, F_GETFD) < 0;
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	if (!closed) return 0;
	report_error("stdout is closed: nowhere to report to");
	return -EBADF;
}

static void catch_signals(void) {
	const struct sigaction count = {.sa_handler = count_signal};
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGINT, &count, NULL);
	sigaction(SIGTERM, &count, NULL);
	sigaction(SIGHUP, &count, NULL); /* a session that ends must not leave a card running */
	/* A reader that has gone is an error of the next write, not the end without closing. */
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL); /* likewise a file that may not grow */
}

static void close_ports(struct run *run) {
	while (run->report.n_ports)
		ixdp_close(run->report.ports[--run->report.n_ports].port);
}

static int open_port(const struct options *opts, const char *name, struct ixdp_port **port) {
	if (!opts->threads) return ixdp_open(port, name, &opts->config);
	const int err = ixdp_xdp_workers(opts->threads);

	return err ? err : ixdp_xdp_open(port, name, &opts->config);
}

void run_add_name(char *names[REPORT_MAX_PORTS], unsigned *n, char *name) {
	if (*n == REPORT_MAX_PORTS) options_usage("%s: a third device; it takes two at most", name);
	names[(*n)++] = name;
}

int run_open(struct run *run, const struct options *opts, char *const *names, unsigned n) {
	*run = (struct run){
	    .opts = opts,
	    .report = {.json = opts->json, .requested_mpps = -1},
	};
	int err = run_check_streams();

	if (err) return err;
	catch_signals();
	for (unsigned i = 0; i < n; i++) {
		err = open_port(opts, names[i], &run->report.ports[i].port);
		if (err) {
			report_error("%s", ixdp_error());
			close_ports(run);
			return err;
		}
		run->report.n_ports++;
	}
	/* Only now: a software NIC's thread, which the first port started, shall not be pinned. */
	if (opts->pin && sched_setaffinity(0, sizeof(opts->cpus), &opts->cpus)) {
		err = -errno;
		report_error("--cpu: cannot run there: %s", strerror(errno));
		close_ports(run);
	}
	return err;
}

/* waited_ms: by all ports together. */
static bool wait_link(struct report_port *port, unsigned *waited_ms) {
	struct ixdp_link link;
	int err;

	while ((err = ixdp_link_wait(port->port, LINK_SLICE_MS, &link))) {
		if (err == -ENODEV) return false;
		*waited_ms += LINK_SLICE_MS;
		if (*waited_ms == LINK_QUIET_MS)
			report_error("warning: %s: waiting for link", ixdp_port_name(port->port));
		if (signals || *waited_ms >= LINK_WAIT_MS) return false;
	}
	port->link = link.mbps;
	return true;
}

/* Each device is there. One that is not is named, once, and the run is over. */
static bool devices_answer(struct run *run) {
	struct ixdp_link link;

	for (unsigned i = 0; i < run->report.n_ports && !run->over; i++)
		if (ixdp_link_get(run->report.ports[i].port, &link)) {
			report_error("%s", ixdp_error());
			run->report.ports[i].gone = true;
			run->over = run->failed = true;
		}
	return !run->over;
}

bool run_begin(struct run *run) {
	unsigned waited_ms = 0;
	bool up = true;

	for (unsigned i = 0; i < run->report.n_ports && !signals; i++) {
		struct report_port *port = &run->report.ports[i];

		if (wait_link(port, &waited_ms) || signals) continue;
		if (!devices_answer(run)) return false;
		report_error("%s: no link after %d s: LINKS.UP (register 0x042a4) is still clear; "
			     "cable, module, or peer?",
			     ixdp_port_name(port->port), LINK_WAIT_MS / 1000);
		up = false;
	}
	run->linkless = !up;
	run->start_ns = run->now_ns = clock_ns();
	for (unsigned i = 0; i < run->report.n_ports; i++)
		run->sent_ns[i] = run->now_ns;
	if (signals) run_end(run);
	return up;
}

void run_end(struct run *run) {
	if (run->ending) return;
	run->ending = true;
	run->end_ns = run->idle_ns = run->look_ns = run->now_ns;
	run->end_signals = signals;
	run->moved = 0;
	for (unsigned i = 0; i < run->report.n_ports; i++)
		ixdp_wire_stop(run->report.ports[i].port);
}

/* All wires that send by themselves have an end, and have reached it. */
static bool sources_exhausted(const struct run *run) {
	bool any = false;

	for (unsigned i = 0; i < run->report.n_ports; i++) {
		struct ixdp_wire_stats wire;

		if (ixdp_wire_stats_get(run->report.ports[i].port, &wire) || !wire.source) continue;
		if (!wire.finite || !wire.exhausted) return false;
		any = true;
	}
	return any;
}

/* A wire goes on although the run ends: a card's, or that of a peer which does not know. */
static bool is_endless(const struct run *run) {
	for (unsigned i = 0; i < run->report.n_ports; i++) {
		struct ixdp_wire_stats wire;

		if (ixdp_wire_stats_get(run->report.ports[i].port, &wire) ||
		    (wire.source && !wire.exhausted))
			return true;
	}
	return false;
}

/*
 * Nothing is under way on the port's wire or in its TX rings; once nothing is received any more,
 * only the latter count.
 */
static bool is_drained(const struct run *run, struct ixdp_port *port) {
	struct ixdp_wire_stats wire;
	struct ixdp_stats stats;

	if (!run->deaf) return !ixdp_wire_stats_get(port, &wire) && wire.drained;
	return !ixdp_stats_get(port, &stats) && !stats.tx_pending;
}

/*
 * Everything has run empty. One look is not enough: a frame may go from a port that is looked at
 * second to one that was looked at first, and one that had left the wire by then may be in an RX
 * ring until the next round of work.
 */
static bool is_quiet(struct run *run, bool idle) {
	bool empty = idle;

	for (unsigned i = 0; i < run->report.n_ports; i++)
		empty &= is_drained(run, run->report.ports[i].port);
	run->quiet = empty ? run->quiet + 1 : 0;
	return run->quiet == QUIET_LOOKS;
}

/* It is time to end: the user, the clock or the sources say so. */
static bool is_over(const struct run *run) {
	if (signals) return true;
	return run->opts->duration > 0 && seconds(run) >= run->opts->duration;
}

/*
 * The end of receiving: in time on a wire that has no end, as otherwise the run had none; late on
 * one that should have run empty.
 */
static void stop_receiving(struct run *run) {
	const uint64_t ms = is_endless(run) ? ENDLESS_MS : DRAIN_MS;

	if (run->deaf || run->now_ns - run->end_ns < ms * MS) return;
	run->deaf = true;
	run->deaf_ns = run->now_ns;
}

/*
 * Fails, with one line about the port that holds up the others: what one does not send, none
 * receives.
 */
static void fail_stuck(struct run *run, double waited) {
	const struct report *report = &run->report;

	run->failed = true;
	for (unsigned i = 0; i < report->n_ports; i++) {
		const char *name = ixdp_port_name(report->ports[i].port);
		struct ixdp_stats stats;

		if (ixdp_stats_get(report->ports[i].port, &stats) ||
		    stats.tx_packets >= stats.tx_taken)
			continue;
		report_error("%s: does not send: tx_packets stays at %" PRIu64 ", %" PRIu64
			     " more are in its TX rings; given up after %.0f s",
			     name, stats.tx_packets, stats.tx_taken - stats.tx_packets, waited);
		return;
	}
	for (unsigned i = 0; i < report->n_ports; i++) {
		const char *name = ixdp_port_name(report->ports[i].port);
		struct ixdp_stats stats;

		if (is_drained(run, report->ports[i].port) ||
		    ixdp_stats_get(report->ports[i].port, &stats))
			continue;
		report_error("%s: does not receive: rx_packets stays at %" PRIu64
			     ", more are on its wire; given up after %.0f s",
			     name, stats.rx_packets, waited);
		return;
	}
	report_error("frames are still under way after %.0f s: given up", waited);
}

/* What is under way shall not be waited for any longer. */
static bool is_given_up(struct run *run) {
	const uint64_t since_ns = run->deaf ? run->deaf_ns : run->end_ns;

	if (signals > run->end_signals) return true;
	if (run->now_ns - run->idle_ns < (uint64_t)STUCK_MS * MS &&
	    (!run->deaf || run->now_ns - since_ns < (uint64_t)DRAIN_MS * MS))
		return false;
	fail_stuck(run, (double)(run->now_ns - since_ns) / 1e9);
	return true;
}

/* A port with frames to send, and a link, has sent none for so long that it will not any more. */
static bool is_stuck(struct run *run, unsigned i) {
	struct ixdp_port *port = run->report.ports[i].port;
	struct ixdp_stats stats;
	struct ixdp_link link;

	if (ixdp_stats_get(port, &stats) || ixdp_link_get(port, &link)) return false;
	if (!link.up || stats.tx_taken == stats.tx_packets || stats.tx_packets != run->sent[i]) {
		run->sent[i] = stats.tx_packets;
		run->sent_ns[i] = run->now_ns;
	}
	return run->now_ns - run->sent_ns[i] >= (uint64_t)STUCK_MS * MS;
}

static void interval(struct run *run) {
	const int err = report_interval(&run->report, seconds(run));

	run->over |= err == -ENODEV;
	run->failed |= err != 0;
	if (err) run_end(run);
	for (unsigned i = 0; i < run->report.n_ports && !run->ending; i++)
		if (is_stuck(run, i)) {
			fail_stuck(run, (double)STUCK_MS / 1000);
			run->over = true;
			run_end(run);
		}
}

/* Returns true when the wires are to be looked at, which is not for every round. */
static bool is_look_due(struct run *run) {
	if (run->now_ns < run->look_ns) return false;
	run->look_ns = run->now_ns + (uint64_t)LOOK_MS * MS;
	return true;
}

bool run_goes_on(struct run *run, unsigned moved) {
	if (run->over) return false;
	run->now_ns = clock_ns();
	run->moved += moved;
	if (moved)
		run->idle_ns = run->now_ns;
	else
		sched_yield(); /* to the thread of the software NICs, should CPUs be few */

	/* Intervals end at whole seconds. */
	if ((uint64_t)seconds(run) > (uint64_t)run->report.asked) interval(run);

	const bool look = is_look_due(run), idle = run->moved == 0;

	if (look) run->moved = 0;
	/* Where frames move there is a device. */
	if (run->over || (look && idle && !devices_answer(run))) return false;
	if (!run->ending) {
		if (is_over(run) || (look && sources_exhausted(run))) run_end(run);
		return true;
	}
	if (look) stop_receiving(run);
	return !is_given_up(run) && !(look && is_quiet(run, idle));
}

static bool links_up(const struct run *run) {
	struct ixdp_link link;

	for (unsigned i = 0; i < run->report.n_ports; i++)
		if (ixdp_link_get(run->report.ports[i].port, &link) || !link.up) return false;
	return true;
}

int run_close(struct run *run) {
	for (unsigned i = 0; i < run->report.n_ports; i++) {
		for (unsigned queue = 0; queue < run->opts->config.tx_queues; queue++)
			ixdp_tx_clean(run->report.ports[i].port, queue);
	}
	/* What is said at the beginning is an error if it was true to the end. */
	if (run->linkless && !links_up(run)) run->failed = true;
	if (run->start_ns && (report_totals(&run->report, seconds(run)) ||
			      (run->opts->stats && report_stats(&run->report))))
		run->failed = true;
	/* Closing has its own limits; cut short it would leave a card in a state of its own. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	close_ports(run);
	return run->failed || options_error_logged() ? EXIT_FAILURE : EXIT_SUCCESS;
}
