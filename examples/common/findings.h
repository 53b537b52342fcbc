/* SPDX-License-Identifier: BSD-3-Clause */
/* What ixdp-doctor found: a line each, for eyes and grep(1), or a JSON object each. */
#pragma once

#include <stdbool.h>

enum finding_status {
	FINDING_PASS, /* as it should be */
	FINDING_INFO, /* neither right nor wrong */
	FINDING_SKIP, /* not for ixdp */
	FINDING_WARN, /* something to mend, which is not in the way of what was asked for */
	FINDING_FAIL, /* something that is */
	FINDING_STATUSES,
};

struct findings {
	bool json;
	unsigned n[FINDING_STATUSES];
};

/*
 * Prints a finding.
 * item: what was looked at; about: which one of these, or NULL.
 * fix: what to do, or NULL.
 */
void findings_add(struct findings *findings, enum finding_status status, const char *item,
		  const char *about, const char *fix, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
