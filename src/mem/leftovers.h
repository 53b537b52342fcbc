/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory files in this process's folder on the hugetlbfs; see dma.h for what the folder is for. */
#pragma once

#include <stddef.h>

/*
 * Makes a new memory file; the first one brings the folder with it, and sweeps away what dead
 * processes left that no device can write into.
 * path: receives its name. Returns a file descriptor that the caller closes, or -errno with
 * ixdp_error().
 */
int dma_file_create(char *path, size_t size);

/* Removes a memory file of this process, one inherited through fork() not. */
void dma_file_remove(const char *path);
