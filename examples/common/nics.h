/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PCI devices of the machine as somebody sees them who is about to give one to ixdp. Nothing is
 * changed. sysfs: where it is mounted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct nic {
	char address[24]; /* as ixdp_open() writes it: "0000:03:00.0" */
	uint16_t vendor, device, class;
	int numa_node;	     /* -1: unknown */
	char name[100];	     /* vendor and product, as lspci(8) has them */
	const char *refused; /* why ixdp_open() refuses it; NULL: it is an 82599 that it knows */
};

struct nics {
	struct nic *list; /* all PCI devices */
	unsigned n;
	char error[200]; /* when there is no list */
};

/* Returns 0, or -1 with nics->error. nics_free() in any case. */
int nics_find(struct nics *nics, const char *sysfs);
void nics_free(struct nics *nics);

/* The one at an address as people type it ("3:0.0"), or NULL. */
const struct nic *nics_get(const struct nics *nics, const char *address);

struct nic_use {
	bool free; /* ixdp_open() takes it without force */
	char text[200];
	char fix[200]; /* unless it is free */
};

/* Who has it. locks: folder of the lock files of ixdp. */
void nic_use_look(struct nic_use *use, const struct nic *nic, const char *sysfs, const char *locks);

/* Whether an IOMMU leaves the addresses of a NIC alone. type: receives its group's, or "none". */
bool nic_iommu_look(char *type, unsigned size, const struct nic *nic, const char *sysfs);
