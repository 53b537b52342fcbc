/* SPDX-License-Identifier: BSD-3-Clause */
/* What the benchmarks here have in common: a clock, medians, and processes that take turns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Prints "PROGRAM: what", and the reason that ixdp gave if there is one; exits. */
_Noreturn void fail(const char *what);

/* The value of an option, or exit with usage's status. */
unsigned number(const char *option, const char *text, unsigned min, unsigned max);

/* Warnings and errors of the library, to stderr. */
void log_warnings(void);

uint64_t clock_ns(clockid_t clock);

#if defined(__x86_64__)
static const char unit[] __attribute__((unused)) = "TSC cycles";

/* Fences keep work from moving across the clock's reading, in either direction. */
static inline uint64_t timer_start(void) {
	uint64_t now;

	_mm_lfence();
	now = __rdtsc();
	_mm_lfence();
	return now;
}

static inline uint64_t timer_end(void) {
	unsigned cpu;
	uint64_t now = __rdtscp(&cpu);

	_mm_lfence();
	return now;
}
#else
static const char unit[] __attribute__((unused)) = "ns";

static inline uint64_t timer_start(void) { return clock_ns(CLOCK_MONOTONIC); }

static inline uint64_t timer_end(void) { return timer_start(); }
#endif

/* What two readings of the clock take when nothing lies between them. */
double timer_cost(void);

/* How many nanoseconds a unit of the timer is; takes some milliseconds. */
double timer_ns(void);

enum {
	PROBE = 4096,	   /* multiplications, each of which needs the one before */
	PROBE_LATENCY = 3, /* core cycles of one, on every x86 of the last ten years */
};

/* A fixed piece of arithmetic: slower than at other times when something else disturbs the core. */
double probe(void);

/* Sorts values and returns the one in the middle; or the one that a fraction of them lies below. */
double median(double *values, unsigned n);
double quantile(double *values, unsigned n, double fraction);

/* From now on the thread, and those that it starts, run on the nth of the CPUs that it may use. */
void pin(unsigned nth);

/*
 * Processes that take turns: how many workers there are can be said once a process, so that each
 * configuration needs one of its own. A child reads questions from stdin, answers to stdout, and
 * ends with its input.
 */
struct child {
	pid_t pid;
	int fd;
};

/* Starts a program, NULL-terminated arguments; "" for the one that is running. */
struct child child_start(const char *program, char *const args[]);
void child_ask(const struct child *child, const void *question, size_t question_size, void *answer,
	       size_t answer_size);
void child_end(const struct child *child); /* fails if the child did */

/* In the child: the next question; false at the end. */
bool child_question(void *question, size_t size);
void child_answer(const void *answer, size_t size);
