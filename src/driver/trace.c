/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Register accesses as log lines, in the datasheet's words. A line is held back until an access
 * comes that does not go on with it: the same register again with the same value, as in a wait, or
 * the next one of its array, as in a table that is cleared.
 */
#include "port.h"

#include <stdio.h>

static const struct reg {
	const char *name, *section;
	uint32_t offset, stride, count; /* 0: the end */
} regs[] = {
#define R(name, offset, stride, count, reset, access, section, what)                               \
	{#name, section, offset, stride, count},
    IXDP_REGISTERS(R){"?", "?", 0, 0, 0}
#undef R
};

static const struct {
	uint32_t reg, mask;
	unsigned low;
	const char *name;
} fields[] = {
#define F(reg, field, low, width) {REG_##reg, reg##_##field, low, #field},
    IXDP_FIELDS(F)
#undef F
};

/* Ports have several threads; they meet here only when traced. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The line of regs.h that an offset belongs to; n: which one of an array. */
static const struct reg *find(uint32_t offset, uint32_t *n) {
	for (const struct reg *reg = regs;; reg++) {
		*n = reg->stride ? (offset - reg->offset) / reg->stride : 0;
		if (reg->count == 0 ||
		    (*n < reg->count && offset == reg->offset + *n * reg->stride))
			return reg;
	}
}

/* Logs what is held back, if anything is. */
static void log_held(struct ixdp_port *port) {
	const struct trace *trace = &port->trace;
	const struct reg *reg = trace->reg;
	char index[24] = "", times[16] = "", text[320] = "";
	if (!reg) return;
	for (size_t i = 0, at = 0; i < sizeof(fields) / sizeof(fields[0]) && at < sizeof(text); i++)
		if (fields[i].reg == reg->offset && fields[i].mask & trace->fields) {
			uint32_t field = (trace->value & fields[i].mask) >> fields[i].low;
			at += snprintf(text + at, sizeof(text) - at,
				       field < 10 ? " %s=%u" : " %s=0x%x", fields[i].name, field);
		}
	if (trace->step)
		snprintf(index, sizeof(index), "[%u..%u]", trace->n, trace->n + trace->times - 1);
	else if (reg->count > 1)
		snprintf(index, sizeof(index), "[%u]", trace->n);
	if (trace->times > 1) snprintf(times, sizeof(times), " (x %u)", trace->times);
	ixdp_log(IXDP_LOG_DEBUG, "%s: %s %s%s 0x%08x%s (%s)%s", port->bus->name,
		 trace->write ? "write" : "read", reg->name, index, trace->value, text,
		 reg->section, times);
	port->trace.reg = NULL;
}

void trace_access(struct ixdp_port *port, bool write, uint32_t reg, uint32_t value) {
	struct trace *held = &port->trace, next = {NULL, write, 0, value, value, 0, 1};
	pthread_mutex_lock(&lock);
	next.reg = find(reg, &next.n);
	bool array = next.reg == held->reg;
	uint32_t step = held->times == 1 ? next.n - held->n : held->step;
	if (array && write == held->write && value == held->value && step <= 1 &&
	    next.n == held->n + step * held->times) {
		held->step = step;
		held->times++;
	} else {
		if (array && next.n == held->n + held->step * (held->times - 1))
			next.fields |= held->value ^ value;
		log_held(port);
		*held = next;
	}
	pthread_mutex_unlock(&lock);
}

void trace_flush(struct ixdp_port *port) {
	pthread_mutex_lock(&lock);
	log_held(port);
	pthread_mutex_unlock(&lock);
}
