/* SPDX-License-Identifier: BSD-3-Clause */
#include "iova.h"
#include "base/error.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* /proc/PID/pagemap: one of these per page; see Documentation/admin-guide/mm/pagemap.rst. */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_PFN ((UINT64_C(1) << 55) - 1)

static const char *pagemap_file = "/proc/self/pagemap";

void iova_set_pagemap_file(const char *path) { pagemap_file = path ? path : "/proc/self/pagemap"; }

void iova_identity(struct iova_table *table, const struct dma_mem *mem) {
	static const uint64_t zero;
	*table = (struct iova_table){(uintptr_t)mem->addr, 63, &zero};
}

/* What makes the address of a huge page a physical one. */
static int read_delta(int pagemap, const uint8_t *addr, uint64_t *delta) {
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), entry;
	off_t at = (off_t)((uintptr_t)addr / page * sizeof(entry));
	ssize_t n = pread(pagemap, &entry, sizeof(entry), at);
	if (n < 0) return ixdp_fail(EIO, "%s: %m", pagemap_file);
	if (n != sizeof(entry))
		return ixdp_fail(EIO, "%s: entry of %p ends after %zd bytes", pagemap_file, addr,
				 n);
	if (!(entry & PAGEMAP_PRESENT))
		return ixdp_fail(EFAULT, "%s: page at %p is not present", pagemap_file, addr);
	if (!(entry & PAGEMAP_PFN))
		return ixdp_fail(EPERM, "%s hides physical addresses: run as root (CAP_SYS_ADMIN)",
				 pagemap_file);
	*delta = (entry & PAGEMAP_PFN) * page - (uintptr_t)addr;
	if (*delta % DMA_HUGE_PAGE)
		return ixdp_fail(EINVAL, "%s: page at %p is not a huge page", pagemap_file, addr);
	return 0;
}

/* Fills mem->phys. */
static int read_deltas(struct dma_mem *mem) {
	uint64_t *delta = calloc(mem->size / DMA_HUGE_PAGE, sizeof(*delta));
	if (!delta) return ixdp_fail(ENOMEM, "out of memory");
	int pagemap = open(pagemap_file, O_RDONLY | O_CLOEXEC);
	int err = pagemap < 0 ? ixdp_fail(errno, "%s: %m", pagemap_file) : 0;
	for (size_t at = 0; !err && at < mem->size; at += DMA_HUGE_PAGE)
		err = read_delta(pagemap, mem->addr + at, &delta[at / DMA_HUGE_PAGE]);
	close(pagemap);
	if (err)
		free(delta);
	else
		mem->phys = delta;
	return err;
}

int iova_physical(struct iova_table *table, struct dma_mem *mem) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of every mem->phys */
	if (!mem->huge) return ixdp_fail(EINVAL, "ordinary pages may move: run setup-hugetlbfs.sh");
	pthread_mutex_lock(&lock);
	int err = mem->phys ? 0 : read_deltas(mem);
	pthread_mutex_unlock(&lock);
	*table = (struct iova_table){(uintptr_t)mem->addr, 21, mem->phys};
	return err;
}
