/* SPDX-License-Identifier: BSD-3-Clause */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char error_text[512];

static struct {
	ixdp_log_fn *fn;
	void *arg;
	enum ixdp_log_level level;
} sink;

bool log_debug;

int ixdp_fail(int err, const char *fmt, ...) {
	va_list args;
	va_start(args, fmt);
	vsnprintf(error_text, sizeof(error_text), fmt, args);
	va_end(args);
	return -err;
}

const char *ixdp_error(void) { return error_text; }

void ixdp_log_set(ixdp_log_fn *fn, void *arg, enum ixdp_log_level level) {
	sink.fn = fn;
	sink.arg = arg;
	sink.level = level;
	log_debug = fn && level >= IXDP_LOG_DEBUG;
}

void ixdp_log(enum ixdp_log_level level, const char *fmt, ...) {
	char line[512];
	va_list args;
	if (!sink.fn || level > sink.level) return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	sink.fn(level, line, sink.arg);
}

const char *ixdp_version(void) { return IXDP_VERSION; }
