/* SPDX-License-Identifier: BSD-3-Clause */
/* How the driver reaches a NIC: on a PCI bus through sysfs, or the software NIC of this process. */
#pragma once

#include <ixdp/wire.h>

#include "../mem/iova.h"

/* What every bus has; the sysfs bus embeds it as its first member. */
struct ixdp_bus {
	const struct ixdp_bus_ops *ops;
	char name[IXDP_NAME_MAX]; /* canonical: "0000:03:00.0", "soft:a" */
	int numa_node;		  /* -1: unknown */
	bool ordinary_pages;	  /* the device can do without huge pages */
	struct softnic *nic;	  /* of a soft bus; NULL: a card */
};

/* Functions that return an int: 0 or -errno with ixdp_error(). */
struct ixdp_bus_ops {
	/* A register, by its offset in BAR 0. Any thread. */
	uint32_t (*read32)(struct ixdp_bus *bus, uint32_t reg);
	void (*write32)(struct ixdp_bus *bus, uint32_t reg, uint32_t value);
	/* Where to store for a write of RDT or TDT, as long as the bus is open. */
	volatile uint32_t *(*doorbell)(struct ixdp_bus *bus, uint32_t reg);
	/* Lets the device use the memory; the table of its addresses is valid until dma_unmap. */
	int (*dma_map)(struct ixdp_bus *bus, struct dma_mem *mem, struct iova_table *table);
	void (*dma_unmap)(struct ixdp_bus *bus, struct dma_mem *mem);
	/* Bus mastering and our memory's mark. On: after a reset, before rings. Off: when quiet. */
	int (*dma_enable)(struct ixdp_bus *bus, bool on);
	/* Config space, Device Status: a transaction of the device is still pending. */
	bool (*transactions_pending)(struct ixdp_bus *bus);
	/* The bus's clock: nanoseconds that only grow. A stepped software NIC has its own. */
	uint64_t (*now_ns)(struct ixdp_bus *bus);
	void (*delay_us)(struct ixdp_bus *bus, unsigned us);
	/* The wire, where it can be seen; NULL on a card. */
	int (*wire_stats)(struct ixdp_bus *bus, struct ixdp_wire_stats *stats);
	int (*wire_stop)(struct ixdp_bus *bus);
	/* Gives the device back as it was found, and frees bus. */
	void (*close)(struct ixdp_bus *bus);
};

/*
 * Reaches the NIC of that name, by its form; bus_soft_open() that of the name behind "soft:". The
 * device may be in any state afterwards, and may even be doing DMA for a process that died: quiet
 * and reset it first. force: take it although it is in use. Returns 0 or -errno with ixdp_error().
 */
int bus_open(struct ixdp_bus **bus, const char *name, bool force);
int bus_soft_open(struct ixdp_bus **bus, const char *name);

/* Tests only: path (kept) is used as /sys, and as /run for locks. NULL: the real ones. */
void bus_sysfs_set_root(const char *path);

/* Tests only: device addresses of (huge) pages, before memory is mapped. NULL: the virtual ones. */
void bus_soft_set_translator(uint64_t (*device_address)(uintptr_t page));
