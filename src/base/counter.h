/* SPDX-License-Identifier: BSD-3-Clause */
/* A number that one thread changes and others may read at any time. */
#pragma once

#include <stdint.h>

static inline void counter_add(uint64_t *counter, uint64_t n) {
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline uint64_t counter_get(const uint64_t *counter) {
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}
