/* SPDX-License-Identifier: BSD-3-Clause */
/* How every part of ixdp reports: an error message per thread, and log lines for the application.
 */
#pragma once

#include <errno.h>
#include <ixdp/ixdp.h>

/*
 * Sets this thread's ixdp_error() to one line (what failed, where, what to do) and returns -err.
 * err: a positive errno. Use: return ixdp_fail(ENOENT, "%s: no such file", path);
 */
int ixdp_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Gives a line to the application's log function, if there is one for this level. Any thread. */
void ixdp_log(enum ixdp_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The application wants to see debug lines: to be asked before much is done for one. */
extern bool log_debug;

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
