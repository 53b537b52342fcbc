/* SPDX-License-Identifier: BSD-3-Clause */
/* The software NIC as a bus. Its device addresses are virtual ones, unless a test wants others. */
#include "base/error.h"
#include "bus.h"
#include "softnic/softnic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { HUGE_PAGE_SHIFT = 21 };
_Static_assert(DMA_HUGE_PAGE == 1 << HUGE_PAGE_SHIFT, "one of them is wrong");

/* Memory that the NIC may touch. */
struct mapping {
	struct mapping *next;
	const struct dma_mem *mem;
	size_t piece;	  /* bytes of it that are contiguous for the NIC */
	uint64_t delta[]; /* device address minus virtual address, of each piece */
};

struct soft_bus {
	struct ixdp_bus bus;
	struct softnic *nic;
	struct mapping *mappings;
};

static uint64_t (*translate)(uintptr_t page);

void bus_soft_set_translator(uint64_t (*device_address)(uintptr_t page)) {
	translate = device_address;
}

static struct softnic *nic_of(struct ixdp_bus *bus) {
	return ((struct soft_bus *)bus)->nic;
}

static uint32_t soft_read32(struct ixdp_bus *bus, uint32_t reg) {
	return softnic_read32(nic_of(bus), reg);
}

static void soft_write32(struct ixdp_bus *bus, uint32_t reg, uint32_t value) {
	softnic_write32(nic_of(bus), reg, value);
}

static volatile uint32_t *soft_doorbell(struct ixdp_bus *bus, uint32_t reg) {
	return softnic_doorbell(nic_of(bus), reg);
}

static void unmap_pieces(struct soft_bus *b, const struct mapping *m, size_t end) {
	for (size_t at = 0; at < end; at += m->piece)
		softnic_dma_unmap(b->nic, (uintptr_t)m->mem->addr + at + m->delta[at / m->piece],
				  end - at < m->piece ? end - at : m->piece);
}

static int soft_dma_map(struct ixdp_bus *bus, struct dma_mem *mem, struct iova_table *table) {
	struct soft_bus *b = (struct soft_bus *)bus;
	size_t piece = translate ? DMA_HUGE_PAGE : mem->size;
	size_t pieces = (mem->size + piece - 1) / piece;
	struct mapping *m = calloc(1, sizeof(*m) + pieces * sizeof(m->delta[0]));

	if (!m)
		return ixdp_fail(ENOMEM, "%s: out of memory", bus->name);
	m->mem = mem;
	m->piece = piece;
	for (size_t at = 0; at < mem->size; at += piece) {
		uintptr_t addr = (uintptr_t)mem->addr + at;
		uint64_t iova = translate ? translate(addr) : addr;
		size_t len = mem->size - at < piece ? mem->size - at : piece;
		int err = softnic_dma_map(b->nic, mem->addr + at, len, iova);

		if (err) {
			unmap_pieces(b, m, at);
			free(m);
			return err;
		}
		m->delta[at / piece] = iova - addr;
	}
	m->next = b->mappings;
	b->mappings = m;
	*table = (struct iova_table){.base = (uintptr_t)mem->addr,
				     .shift = translate ? HUGE_PAGE_SHIFT : 63,
				     .delta = m->delta};
	return 0;
}

static void soft_dma_unmap(struct ixdp_bus *bus, struct dma_mem *mem) {
	struct soft_bus *b = (struct soft_bus *)bus;
	struct mapping **link = &b->mappings;
	struct mapping *m;

	while (*link && (*link)->mem != mem)
		link = &(*link)->next;
	m = *link;
	if (!m)
		return;
	*link = m->next;
	unmap_pieces(b, m, mem->size);
	free(m);
}

static int soft_dma_enable(struct ixdp_bus *bus, bool on) {
	softnic_bus_master(nic_of(bus), on);
	return 0;
}

static bool soft_transactions_pending(struct ixdp_bus *bus) {
	(void)bus;
	return false;
}

static uint64_t soft_now_ns(struct ixdp_bus *bus) {
	return softnic_now_ns(nic_of(bus));
}

static void soft_delay_us(struct ixdp_bus *bus, unsigned us) {
	softnic_delay_us(nic_of(bus), us);
}

static int soft_wire_stats(struct ixdp_bus *bus, struct ixdp_wire_stats *stats) {
	return softnic_wire_stats(nic_of(bus), stats);
}

static int soft_wire_stop(struct ixdp_bus *bus) {
	softnic_wire_stop(nic_of(bus));
	return 0;
}

/* Memory is unmapped by then. */
static void soft_close(struct ixdp_bus *bus) {
	softnic_close(nic_of(bus));
	free(bus);
}

static const struct ixdp_bus_ops soft_ops = {
    .read32 = soft_read32,
    .write32 = soft_write32,
    .doorbell = soft_doorbell,
    .dma_map = soft_dma_map,
    .dma_unmap = soft_dma_unmap,
    .dma_enable = soft_dma_enable,
    .transactions_pending = soft_transactions_pending,
    .now_ns = soft_now_ns,
    .delay_us = soft_delay_us,
    .wire_stats = soft_wire_stats,
    .wire_stop = soft_wire_stop,
    .close = soft_close,
};

struct softnic *bus_softnic(struct ixdp_bus *bus) {
	return bus->ops == &soft_ops ? nic_of(bus) : NULL;
}

int bus_soft_open(struct ixdp_bus **bus, const char *name) {
	struct soft_bus *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return ixdp_fail(ENOMEM, "soft:%s: out of memory", name);
	err = softnic_open(&b->nic, name);
	if (err) {
		free(b);
		return err;
	}
	b->bus.ops = &soft_ops;
	snprintf(b->bus.name, sizeof(b->bus.name), "soft:%s", softnic_name(b->nic));
	b->bus.device_id = 0x10FB;
	b->bus.numa_node = -1;
	b->bus.ordinary_pages = true;
	*bus = &b->bus;
	return 0;
}
