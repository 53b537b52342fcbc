/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ixdp: a userspace driver for Intel 82599 10 GbE NICs. This header brings in all of it but XDP
 * (xdp.h, whose <linux/bpf.h> does not get on with <pcap.h>).
 *
 * Functions return 0 or a count, or a negative errno; ixdp_error() then says what failed. The
 * library never ends the process, and prints only through the log function.
 */
#pragma once

#include "frame.h"
#include "packet.h"
#include "port.h"
#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IXDP_VERSION "0.1.0"

/* What the last failed call of this thread has to say: one line, without a newline. */
IXDP_API const char *ixdp_error(void);

enum ixdp_log_level { IXDP_LOG_ERROR, IXDP_LOG_WARNING, IXDP_LOG_INFO, IXDP_LOG_DEBUG };

/*
 * line: one line, without a newline. Called on any thread, so it must be thread safe; and while a
 * port is at work, so it must not use one.
 */
typedef void ixdp_log_fn(enum ixdp_log_level level, const char *line, void *arg);

/*
 * Where log lines go, and down to which level. Without a function they go nowhere. Set it before
 * the first port is opened. Debug lines are accesses to registers, all but those for packets:
 * "soft:a: write RXDCTL[3] 0x02000000 ENABLE=1 (8.2.3.8.6)", with the datasheet's section, the
 * fields that are not 0 or have just changed, and "(x 17)" for as many in a row.
 */
IXDP_API void ixdp_log_set(ixdp_log_fn *fn, void *arg, enum ixdp_log_level level);

/* The version of the library that runs: IXDP_VERSION of its build. */
IXDP_API const char *ixdp_version(void);

#ifdef __cplusplus
}
#endif
