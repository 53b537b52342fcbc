/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses under which a device sees our memory. */
#pragma once

#include "dma.h"

/*
 * From addresses of one dma_mem to a device's: one number to add per page, so that no case needs a
 * branch. Where virtual addresses are the device's own, shift is 63 and the one delta is 0.
 */
struct iova_table {
	uintptr_t base;
	unsigned shift;
	const uint64_t *delta;
};

static inline uint64_t iova_of(const struct iova_table *table, const void *addr) {
	return (uintptr_t)addr + table->delta[((uintptr_t)addr - table->base) >> table->shift];
}

/* The table of a device that sees virtual addresses. */
void iova_identity(struct iova_table *table, const struct dma_mem *mem);

/* Of one that sees physical ones: read from pagemap once per mem, and kept in it. 0 or -errno. */
int iova_physical(struct iova_table *table, struct dma_mem *mem);

/* Tests only: another pagemap file (NULL: /proc/self/pagemap). */
void iova_set_pagemap_file(const char *path);
