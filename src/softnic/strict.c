/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a careful driver does not do, though silicon may let it pass: counted, put into words, and
 * logged once for each register. The checks themselves are where the thing happens.
 */
#include "nic.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool log_now(struct softnic *nic, enum nic_violation kind, uint32_t reg) {
	const unsigned room = sizeof(nic->logged) / sizeof(nic->logged[0]);

	for (unsigned i = 0; i < nic->n_logged; i++)
		if (nic->logged[i].kind == kind && nic->logged[i].reg == reg) return false;
	if (nic->n_logged == room) return false;
	nic->logged[nic->n_logged].kind = kind;
	nic->logged[nic->n_logged++].reg = reg;
	return true;
}

void nic_violation(struct softnic *nic, enum nic_violation kind, uint32_t reg, const char *fmt,
		   ...) {
	char name[32];
	va_list args;
	int used;

	if (!nic->strict && kind != VIOLATION_STRAY_DMA) return;
	nic->violations++;
	nic_reg_name(reg, name, sizeof(name));
	used = snprintf(nic->violation, sizeof(nic->violation), "soft:%s: %s: ", nic->name, name);
	va_start(args, fmt);
	vsnprintf(nic->violation + used, sizeof(nic->violation) - used, fmt, args);
	va_end(args);
	if (log_now(nic, kind, reg)) ixdp_log(IXDP_LOG_WARNING, "%s", nic->violation);
}

void nic_strict_write(struct softnic *nic, const struct nic_reg *reg, uint32_t offset,
		      uint32_t value) {
	uint32_t stored = nic->regs[offset / 4];
	uint32_t reserved = reg->fields ? ~reg->fields : 0;

	if (reg->access == NIC_RO)
		nic_violation(nic, VIOLATION_READ_ONLY, offset, "written (0x%08X): it is read-only",
			      value);
	else if ((value ^ stored) & reserved)
		nic_violation(nic, VIOLATION_RESERVED, offset,
			      "written with 0x%08X while it holds 0x%08X: changes reserved bits "
			      "0x%08X",
			      value, stored, (value ^ stored) & reserved);
}

unsigned softnic_violations(struct softnic *nic) {
	unsigned violations;

	nic_lock_take(&nic->lock);
	violations = nic->violations;
	nic_lock_give(&nic->lock);
	return violations;
}

const char *softnic_last_violation(struct softnic *nic) {
	/* A copy: the NIC may find the next one while the caller reads. */
	static _Thread_local char text[sizeof(nic->violation)];

	nic_lock_take(&nic->lock);
	memcpy(text, nic->violation, sizeof(text));
	nic_lock_give(&nic->lock);
	return text;
}
