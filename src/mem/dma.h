/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a device may read and write: huge pages in named files of a hugetlbfs, or ordinary
 * pages where only software ports shall use it. The files outlive a process that dies: its card may
 * still write into the pages, which must not go to anybody else before it has been reset.
 *
 *	<mount>/ixdp-<pid>-<letters>/	of a process, locked while it lives
 *		mem-0, mem-1 ...	huge pages
 *		device-0000:03:00.0 ...	marks: this device may write into them
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DMA_HUGE_PAGE = 2 * 1024 * 1024 };

struct dma_mem {
	uint8_t *addr; /* zeroed; aligned to DMA_HUGE_PAGE if huge, else to a page */
	size_t size;   /* bytes, rounded up to whole pages */
	bool huge;
	int numa_node;	/* as asked for: -1 anywhere */
	char path[256]; /* the file; empty for ordinary pages */
	uint64_t *phys; /* per page: physical minus virtual address; NULL until iova_physical() */
};

/*
 * Allocates size bytes on a NUMA node (-1: any), on huge pages; if there are none and ordinary is
 * true, on ordinary ones, which the first time is a line in the log. -errno with ixdp_error():
 * -ENOENT no mount, -ENOMEM too few pages, -EACCES mount not writable, -EINVAL no such node.
 */
int dma_alloc(struct dma_mem **mem, size_t size, int numa_node, bool ordinary);

/* No device may write into it any more. In a child of fork() its parent's file stays. */
void dma_free(struct dma_mem *mem);

/* From now on the device (its canonical name) may write into our memory: a mark; and no longer. */
int dma_device_begin(const char *device);
void dma_device_end(const char *device);

/* After the device's reset: takes its marks from the dead, frees what has none; how many bytes. */
size_t dma_leftovers_clear(const char *device);

/* Tests only: another /proc/mounts to find the hugetlbfs in (NULL: the real one). */
void dma_set_mounts_file(const char *path);
