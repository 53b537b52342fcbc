/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMER_SAMPLES = 101, CALIBRATION_NS = 5000000 };

void fail(const char *what) {
	const char *why = ixdp_error();

	fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, what, *why ? ": " : "", why);
	exit(1);
}

unsigned number(const char *option, const char *text, unsigned min, unsigned max) {
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || value < min || value > max) {
		fprintf(stderr, "%s: --%s %s: not a number from %u to %u\n",
			program_invocation_short_name, option, text, min, max);
		exit(2);
	}
	return (unsigned)value;
}

static void print_log(enum ixdp_log_level level, const char *line, void *arg) {
	(void)level, (void)arg;
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

void log_warnings(void) { ixdp_log_set(print_log, NULL, IXDP_LOG_WARNING); }

uint64_t clock_ns(clockid_t clock) {
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

double timer_cost(void) {
	double costs[TIMER_SAMPLES];

	for (unsigned i = 0; i < TIMER_SAMPLES; i++) {
		uint64_t start = timer_start();

		costs[i] = (double)(timer_end() - start);
	}
	return median(costs, TIMER_SAMPLES);
}

double timer_ns(void) {
	uint64_t ns = clock_ns(CLOCK_MONOTONIC), start = timer_start(), now;

	do
		now = clock_ns(CLOCK_MONOTONIC);
	while (now - ns < CALIBRATION_NS);
	return (double)(now - ns) / (double)(timer_end() - start);
}

double probe(void) {
	uint64_t x = 3, start = timer_start();

	for (int i = 0; i < PROBE; i++) {
		x *= 0x9E3779B97F4A7C15;
		__asm__ volatile("" : "+r"(x));
	}
	return (double)(timer_end() - start);
}

static int compare(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double quantile(double *values, unsigned n, double fraction) {
	qsort(values, n, sizeof(*values), compare);
	return values[(unsigned)(fraction * (n - 1) + 0.5)];
}

double median(double *values, unsigned n) { return quantile(values, n, 0.5); }

void pin(unsigned nth) {
	static cpu_set_t allowed;
	cpu_set_t one;
	unsigned cpu = 0;

	if (CPU_COUNT(&allowed) == 0) sched_getaffinity(0, sizeof(allowed), &allowed);
	nth %= (unsigned)CPU_COUNT(&allowed);
	while (!CPU_ISSET(cpu, &allowed) || nth-- > 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

struct child child_start(const char *program, char *const args[]) {
	struct child child;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) fail("socketpair");
	child.pid = fork();
	if (child.pid < 0) fail("fork");
	if (child.pid == 0) {
		if (dup2(ends[1], STDIN_FILENO) < 0 || dup2(ends[1], STDOUT_FILENO) < 0) _exit(1);
		execv(*program ? program : "/proc/self/exe", args);
		perror(program);
		_exit(1);
	}
	close(ends[1]);
	child.fd = ends[0];
	return child;
}

/* Reads all of it; false at the end. */
static bool read_all(int fd, void *to, size_t size) {
	for (size_t have = 0; have < size;) {
		ssize_t n = read(fd, (char *)to + have, size - have);

		if (n <= 0) return false;
		have += (size_t)n;
	}
	return true;
}

void child_ask(const struct child *child, const void *question, size_t question_size, void *answer,
	       size_t answer_size) {
	if (send(child->fd, question, question_size, MSG_NOSIGNAL) != (ssize_t)question_size ||
	    !read_all(child->fd, answer, answer_size))
		fail("a measuring process has ended");
}

void child_end(const struct child *child) {
	int status;

	close(child->fd);
	if (waitpid(child->pid, &status, 0) < 0 || status != 0)
		fail("a measuring process has failed");
}

bool child_question(void *question, size_t size) { return read_all(STDIN_FILENO, question, size); }

void child_answer(const void *answer, size_t size) {
	if (write(STDOUT_FILENO, answer, size) != (ssize_t)size) fail("nobody hears the answer");
}
