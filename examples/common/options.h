/* SPDX-License-Identifier: BSD-3-Clause */
/* The options that all programs have, and how they complain about them: by name, exit code 2. */
#pragma once

#include <argp.h>
#include <ixdp/ixdp.h>
#include <sched.h>

enum {
	EXIT_USAGE = 2,
	OPTIONS_MAX_BATCH = 256,
	OPTIONS_MTU = 1500, /* unless asked for another, or by the program */
};

struct options {
	double duration;	   /* seconds; 0: until something else ends the run */
	uint64_t count;		   /* frames; 0: no limit */
	unsigned batch;		   /* array elements per call: room for a frame of the MTU */
	struct ixdp_config config; /* for every port */
	unsigned threads;	   /* workers of ports that are opened for XDP; 0: they are not */
	bool pin;		   /* keep the worker on these CPUs */
	cpu_set_t cpus;
	bool json;
	bool stats; /* print all statistics at the end */
};

/*
 * The common options, to be the child of a program's own parser. Its input is a struct options,
 * which it fills with the defaults first. At its ARGP_KEY_END the program's parser finds an MTU of
 * 0 when none was given, and may set one.
 */
extern const struct argp options_argp;

/* The same for a program that only receives: without --tx-queues. */
extern const struct argp options_rx_argp;

/*
 * Parses a command line; input is for the program's parser. --help, --version and wrong usage end
 * the process. Afterwards log lines of the library go to stderr, with IXDP_TRACE=regs in the
 * environment also those about registers.
 */
void options_parse(const struct argp *argp, int argc, char **argv, void *input);

/* The library has logged an error, which is a failure even where no call returned one. */
bool options_error_logged(void);

/* Ends the process for wrong usage. The line, on stderr, begins with the name of the option. */
_Noreturn void options_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The number that an option was given, within limits; ends the process if it is none. */
uint64_t options_number(const char *option, const char *text, uint64_t min, uint64_t max);
