/* SPDX-License-Identifier: BSD-3-Clause */
/* Real time, for NICs that have no time of their own. */
#pragma once

#include <stdint.h>

/* Nanoseconds that only grow (CLOCK_MONOTONIC). */
uint64_t clock_now_ns(void);

/* Sleeps at least so long, through signals. */
void clock_sleep_us(unsigned us);
