/* SPDX-License-Identifier: BSD-3-Clause */
/* The software NIC as a bus. Its device addresses are virtual ones, unless a test wants others. */
#include "base/error.h"
#include "bus.h"
#include "softnic/softnic.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t (*translate)(uintptr_t page);

void bus_soft_set_translator(uint64_t (*device_address)(uintptr_t page)) {
	translate = device_address;
}

static uint32_t soft_read32(struct ixdp_bus *bus, uint32_t reg) {
	return softnic_read32(bus->nic, reg);
}

static void soft_write32(struct ixdp_bus *bus, uint32_t reg, uint32_t value) {
	softnic_write32(bus->nic, reg, value);
}

static volatile uint32_t *soft_doorbell(struct ixdp_bus *bus, uint32_t reg) {
	return softnic_doorbell(bus->nic, reg);
}

/* Where the NIC is to see the memory at addr. */
static uint64_t iova_for(const uint8_t *addr) {
	return translate ? translate((uintptr_t)addr) : (uintptr_t)addr;
}

/* How much of mem, from offset `at` on, is contiguous for the NIC. */
static size_t piece(const struct dma_mem *mem, size_t at) {
	size_t rest = mem->size - at;
	return translate && rest > DMA_HUGE_PAGE ? DMA_HUGE_PAGE : rest;
}

static void soft_dma_unmap(struct ixdp_bus *bus, struct dma_mem *mem) {
	for (size_t at = 0; at < mem->size; at += piece(mem, at))
		softnic_dma_unmap(bus->nic, iova_for(mem->addr + at), piece(mem, at));
}

/* A test's addresses take the place of physical ones. */
static int soft_dma_map(struct ixdp_bus *bus, struct dma_mem *mem, struct iova_table *table) {
	size_t pages = mem->size / DMA_HUGE_PAGE + 1;
	int err = 0;
	if (translate && !mem->phys && !(mem->phys = calloc(pages, sizeof(*mem->phys))))
		return ixdp_fail(ENOMEM, "%s: out of memory", bus->name);
	for (size_t at = 0; !err && at < mem->size; at += piece(mem, at)) {
		uint8_t *addr = mem->addr + at;
		err = softnic_dma_map(bus->nic, addr, piece(mem, at), iova_for(addr));
		if (translate) mem->phys[at / DMA_HUGE_PAGE] = iova_for(addr) - (uintptr_t)addr;
	}
	if (err) soft_dma_unmap(bus, mem);
	iova_identity(table, mem);
	if (translate)
		*table = (struct iova_table){table->base, __builtin_ctz(DMA_HUGE_PAGE), mem->phys};
	return err;
}

static int soft_dma_enable(struct ixdp_bus *bus, bool on) {
	softnic_bus_master(bus->nic, on);
	return 0;
}

static bool soft_transactions_pending(struct ixdp_bus *bus) {
	(void)bus;
	return false;
}

static uint64_t soft_now_ns(struct ixdp_bus *bus) { return softnic_now_ns(bus->nic); }

static void soft_delay_us(struct ixdp_bus *bus, unsigned us) { softnic_delay_us(bus->nic, us); }

static int soft_wire_stats(struct ixdp_bus *bus, struct ixdp_wire_stats *stats) {
	return softnic_wire_stats(bus->nic, stats);
}

static int soft_wire_stop(struct ixdp_bus *bus) {
	softnic_wire_stop(bus->nic);
	return 0;
}

/* Memory is unmapped by then. */
static void soft_close(struct ixdp_bus *bus) {
	softnic_close(bus->nic);
	free(bus);
}

/* clang-format off */
static const struct ixdp_bus_ops soft_ops = {
	.read32 = soft_read32, .write32 = soft_write32, .doorbell = soft_doorbell,
	.dma_map = soft_dma_map, .dma_unmap = soft_dma_unmap, .dma_enable = soft_dma_enable,
	.transactions_pending = soft_transactions_pending, .now_ns = soft_now_ns,
	.delay_us = soft_delay_us, .wire_stats = soft_wire_stats,
	.wire_stop = soft_wire_stop, .close = soft_close,
};
/* clang-format on */

int bus_soft_open(struct ixdp_bus **bus, const char *name) {
	struct ixdp_bus *b = calloc(1, sizeof(*b));
	if (!b) return ixdp_fail(ENOMEM, "soft:%s: out of memory", name);
	*b = (struct ixdp_bus){.ops = &soft_ops, .numa_node = -1, .ordinary_pages = true};
	int err = softnic_open(&b->nic, name);
	if (err) {
		free(b);
		return err;
	}
	snprintf(b->name, sizeof(b->name), "soft:%s", softnic_name(b->nic));
	*bus = b;
	return 0;
}
