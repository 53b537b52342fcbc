/* SPDX-License-Identifier: BSD-3-Clause */
#include "dma.h"

#include "base/error.h"
#include "leftovers.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES_DIR "/sys/devices/system/node"

enum { MAX_NODES = 1024 }; /* the kernel's largest CONFIG_NODES_SHIFT is 10 */

/* Huge pages of the machine, or of one node. */
struct page_counts {
	long total;
	long free; /* and not promised to anybody */
};

static int check_node(int node) {
	char path[64];

	if (node == -1)
		return 0;
	snprintf(path, sizeof(path), NODES_DIR "/node%d", node);
	if (node < 0 || access(path, F_OK))
		return ixdp_fail(EINVAL, "NUMA node %d: this machine has none of that number (%s)",
				 node, NODES_DIR);
	return 0;
}

static long read_count(const char *dir, const char *name) {
	char path[128];
	long count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/hugepages/hugepages-2048kB/%s", dir, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%ld", &count) != 1)
		count = 0;
	fclose(file);
	return count;
}

static struct page_counts count_pages(const char *dir) {
	return (struct page_counts){
	    .total = read_count(dir, "nr_hugepages"),
	    /* Reservations are counted for the whole machine only. */
	    .free = read_count(dir, "free_hugepages") - read_count(dir, "resv_hugepages"),
	};
}

static int fail_too_few(const struct dma_mem *mem) {
	long needed = (long)(mem->size / DMA_HUGE_PAGE);
	struct page_counts pages = count_pages("/sys/kernel/mm");
	char advice[100] = "see the mount's size= and the limits of the cgroup (hugetlb)";
	char where[80] = "", dir[64];

	if (mem->numa_node >= 0) {
		long everywhere = pages.free;
		snprintf(dir, sizeof(dir), NODES_DIR "/node%d", mem->numa_node);
		pages = count_pages(dir);
		snprintf(where, sizeof(where), " on NUMA node %d (%ld on all nodes)",
			 mem->numa_node, everywhere);
	}
	if (pages.free < needed)
		snprintf(advice, sizeof(advice), "run setup-hugetlbfs.sh --pages %ld",
			 pages.total + needed - pages.free);
	return ixdp_fail(ENOMEM, "too few huge pages: %ld of 2 MiB needed, %ld free%s: %s", needed,
			 pages.free, where, advice);
}

static int bind_to_node(const struct dma_mem *mem) {
	enum { BITS = 8 * sizeof(unsigned long) };
	unsigned long nodes[MAX_NODES / BITS] = {0};

	if (mem->numa_node < 0)
		return 0;
	nodes[mem->numa_node / BITS] = 1ul << mem->numa_node % BITS;
	/* The kernel takes one off the number of bits. */
	return (int)syscall(SYS_mbind, mem->addr, mem->size, MPOL_BIND, nodes, MAX_NODES + 1, 0);
}

/*
 * Maps a hugetlbfs file. mmap() reserves its pages or fails; but those may be on other nodes than
 * the one we bind to, where the first touch would end in SIGBUS: so the kernel touches them, and
 * returns an error instead. fallocate() would not do: on hugetlbfs it knows nothing of mbind().
 */
static bool map_file(struct dma_mem *mem, int fd) {
	int err;

	if (ftruncate(fd, (off_t)mem->size))
		return false;
	mem->addr = mmap(NULL, mem->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem->addr == MAP_FAILED)
		return false;
	if (bind_to_node(mem) == 0 && madvise(mem->addr, mem->size, MADV_POPULATE_WRITE) == 0)
		return true;
	err = errno;
	munmap(mem->addr, mem->size);
	errno = err;
	return false;
}

static int map_huge(struct dma_mem *mem) {
	int fd = dma_file_create(mem->path, sizeof(mem->path));
	int err = 0;

	if (fd < 0)
		return fd;
	if (!map_file(mem, fd))
		err = errno;
	close(fd);
	if (err)
		dma_file_remove(mem->path);
	switch (err) {
	case 0:
		return 0;
	case ENOMEM: /* from mmap() */
	case EFAULT: /* from madvise(): "would have been SIGBUS" */
		return fail_too_few(mem);
	default:
		return ixdp_fail(err, "%s: cannot map %zu bytes (needs Linux 5.14): %s", mem->path,
				 mem->size, strerror(err));
	}
}

/* Only the CPU and software ports see these, so any node is as good. */
static int map_ordinary(struct dma_mem *mem, size_t size) {
	static atomic_flag warned = ATOMIC_FLAG_INIT;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!atomic_flag_test_and_set(&warned))
		ixdp_log(IXDP_LOG_WARNING, "ordinary pages instead of huge ones: %s", ixdp_error());
	mem->size = (size + page - 1) / page * page;
	mem->page = mem->size;
	mem->huge = false;
	mem->path[0] = '\0';
	mem->addr = mmap(NULL, mem->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem->addr == MAP_FAILED)
		return ixdp_fail(ENOMEM, "cannot map %zu bytes of ordinary pages: %s", mem->size,
				 strerror(errno));
	return 0;
}

int dma_alloc(struct dma_mem **mem, size_t size, int numa_node, bool ordinary) {
	int err = check_node(numa_node);
	struct dma_mem *made;

	if (err)
		return err;
	made = calloc(1, sizeof(*made));
	if (!made)
		return ixdp_fail(ENOMEM, "out of memory");
	made->size = (size + DMA_HUGE_PAGE - 1) / DMA_HUGE_PAGE * DMA_HUGE_PAGE;
	made->page = DMA_HUGE_PAGE;
	made->huge = true;
	made->numa_node = numa_node;
	err = map_huge(made);
	if (err && ordinary)
		err = map_ordinary(made, size);
	if (err) {
		free(made);
		return err;
	}
	*mem = made;
	return 0;
}

void dma_free(struct dma_mem *mem) {
	munmap(mem->addr, mem->size);
	if (mem->huge)
		dma_file_remove(mem->path);
	free(mem->phys);
	free(mem);
}
