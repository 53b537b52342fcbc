/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Huge pages as ixdp uses them: how many there are, the hugetlbfs, and what processes have on it.
 * Each has a folder there, ixdp-PID-START, which is locked while it lives, with its memory in files
 * mem-N and a mark device-ADDRESS for each card that may write into them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { HUGE_PAGE = 2 * 1024 * 1024, HUGE_MAX_NODES = 64, HUGE_MAX_MARKS = 8 };

struct huge_pages {
	long total; /* below 0: cannot be read */
	long free;  /* of the machine: without those that are promised to somebody */
};

/* Counts pages of 2 MiB; node -1: of the machine. */
struct huge_pages huge_pages_count(const char *sysfs, int node);

/* How many pages a port with the defaults takes. */
long huge_pages_needed(void);

/*
 * Finds the hugetlbfs that ixdp uses: the first with pages of 2 MiB. mounts: what /proc/mounts is.
 * False, and path empty: there is none.
 */
bool huge_mount_find(char *path, size_t size, const char *mounts);

struct huge_folder {
	char name[64];
	bool readable; /* what follows is known */
	bool alive;    /* its process is */
	size_t bytes;  /* of memory */
	char marks[HUGE_MAX_MARKS][24];
	unsigned n_marks;
};

/* Calls fn for each folder of ixdp on the mount. */
void huge_folders_each(const char *mount, void (*fn)(void *arg, const struct huge_folder *folder),
		       void *arg);
