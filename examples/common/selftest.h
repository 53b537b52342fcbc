/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC sends frames to itself, inside (HLREG0.LPBK), and what comes back is compared with what was
 * sent: what one who has a card can report.
 */
#pragma once

#include "findings.h"

/*
 * Opens the device three times, for some seconds in all, and prints a finding per check, then some
 * about "report", fit to be sent in. Without force a NIC that is in use is refused. what: which
 * device it is, for these.
 */
void selftest_run(struct findings *findings, const char *device, const char *what, bool force);

/* Prints whether a software port of its own sends and receives; status: of what is wrong. */
void selftest_software(struct findings *findings, enum finding_status status);
