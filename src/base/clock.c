/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#include <time.h>

uint64_t clock_now_ns(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void clock_sleep_us(unsigned us) {
	struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
	while (nanosleep(&left, &left) < 0)
		;
}
