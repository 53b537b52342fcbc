/* SPDX-License-Identifier: BSD-3-Clause */
/* The soft bus: a frame is sent by registers and one descriptor, through each kind of mapping. */
#include "bus/bus.h"
#include "driver/regs.h"
#include "softnic/softnic.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { PAGES = 3, MEMORY = (1 + PAGES) * DMA_HUGE_PAGE, RING = 8, LEN = 60 };

static struct ixdp_bus *bus;
static uint8_t *memory;	      /* ordinary memory in pieces that a device may see anywhere: */
static struct dma_mem ring;   /* the first for descriptors */
static struct dma_mem frames; /* and PAGES more */
static uint8_t last_frame[LEN];
static unsigned n_sent;

static bool on_sent(const uint8_t *frame, size_t len, void *arg) {
	(void)arg;
	assert_int_equal(len, LEN);
	memcpy(last_frame, frame, len);
	n_sent++;
	return true;
}

static int setup(void **state) {
	(void)state;
	softnic_set_stepped(true);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) return -1;
	ring = (struct dma_mem){.addr = memory, .size = DMA_HUGE_PAGE};
	frames = (struct dma_mem){.addr = memory + DMA_HUGE_PAGE, .size = PAGES * DMA_HUGE_PAGE};
	n_sent = 0;
	if (bus_open(&bus, "soft:a,peer=loop", false) < 0) return -1;
	softnic_tap(bus->nic, on_sent, NULL);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	if (bus) bus->ops->close(bus);
	bus = NULL;
	bus_soft_set_translator(NULL);
	free(ring.phys);
	free(frames.phys);
	munmap(memory, MEMORY);
	return 0;
}

static void write_reg(uint32_t reg, uint32_t value) { bus->ops->write32(bus, reg, value); }

static void start_queue(uint64_t base) {
	write_reg(REG_N(TDBAL, 0), (uint32_t)base);
	write_reg(REG_N(TDBAH, 0), (uint32_t)(base >> 32));
	write_reg(REG_N(TDLEN, 0), RING * sizeof(struct desc));
	write_reg(REG_DMATXCTL, bus->ops->read32(bus, REG_DMATXCTL) | DMATXCTL_TE);
	write_reg(REG_N(TXDCTL, 0), TXDCTL_ENABLE);
}

/* Sends LEN bytes at a device address; how many frames have left the NIC so far. */
static unsigned send(unsigned slot, uint64_t address) {
	struct desc *desc = (struct desc *)ring.addr;

	desc[slot].qw0 = htole64(address);
	desc_publish(&desc[slot], TXD_DTYP_DATA | TXD_DEXT | TXD_EOP | TXD_IFCS | TXD_RS | LEN |
				      (uint64_t)LEN << TXD_PAYLEN_LOW);
	__atomic_store_n(bus->ops->doorbell(bus, REG_N(TDT, 0)), htole32(slot + 1),
			 __ATOMIC_RELEASE);
	softnic_step(bus->nic, 1);
	softnic_step(bus->nic, 1);
	return n_sent;
}

static void fill(uint8_t *at, uint8_t first) {
	for (unsigned i = 0; i < LEN; i++)
		at[i] = (uint8_t)(first + i);
}

static void bus_is_the_software_nic_of_that_name(void **state) {
	struct ixdp_bus *second;
	struct ixdp_wire_stats stats;

	(void)state;
	assert_string_equal(bus->name, "soft:a");
	assert_int_equal(bus->numa_node, -1);
	assert_true(bus->ordinary_pages);
	assert_ptr_equal(bus->nic, softnic_find("a"));
	assert_false(bus->ops->transactions_pending(bus));
	write_reg(REG_N(TDBAL, 3), 0x12345680);
	assert_int_equal(softnic_peek(bus->nic, REG_N(TDBAL, 3)), 0x12345680);
	assert_int_equal(bus->ops->read32(bus, REG_N(TDBAL, 3)), 0x12345680);
	assert_ptr_equal(bus->ops->doorbell(bus, REG_N(TDT, 2)),
			 softnic_doorbell(bus->nic, REG_N(TDT, 2)));
	assert_int_equal(bus->ops->wire_stats(bus, &stats), 0);
	assert_int_equal(bus->ops->wire_stop(bus), 0);

	assert_int_equal(bus_open(&second, "soft:a", false), -EBUSY);
	assert_int_equal(bus_open(&second, "soft:", false), -EINVAL);
	bus->ops->close(bus);
	assert_null(softnic_find("a"));
	assert_int_equal(bus_open(&bus, "soft:a", false), 0);
}

static void time_is_the_model_s(void **state) {
	uint64_t start = bus->ops->now_ns(bus);

	(void)state;
	assert_int_equal(bus->ops->now_ns(bus), start);
	bus->ops->delay_us(bus, 3000000);
	assert_true(bus->ops->now_ns(bus) - start >= UINT64_C(3000000000));
	assert_true(bus->ops->now_ns(bus) - start < UINT64_C(4000000000));
}

static void device_addresses_are_virtual_ones(void **state) {
	struct iova_table table;
	struct iova_table ring_table;
	uint8_t *frame = frames.addr + DMA_HUGE_PAGE - LEN / 2;

	(void)state;
	assert_int_equal(bus->ops->dma_map(bus, &frames, &table), 0);
	assert_int_equal(bus->ops->dma_map(bus, &ring, &ring_table), 0);
	assert_int_equal(iova_of(&table, frames.addr), (uintptr_t)frames.addr);
	assert_int_equal(iova_of(&table, frames.addr + frames.size - 1),
			 (uintptr_t)frames.addr + frames.size - 1);
	start_queue(iova_of(&ring_table, ring.addr));
	/* It lies across two pages, which are neighbours. */
	fill(frame, 1);
	assert_int_equal(bus->ops->dma_enable(bus, true), 0);
	assert_int_equal(send(0, iova_of(&table, frame)), 1);
	assert_memory_equal(last_frame, frame, LEN);

	/* Each mapping ends by itself: the ring is still there. */
	bus->ops->dma_unmap(bus, &frames);
	assert_int_equal(send(1, iova_of(&ring_table, ring.addr)), 2);
	assert_int_equal(softnic_violations(bus->nic), 0);
	assert_int_equal(send(2, (uintptr_t)frame), 2);
	assert_int_equal(softnic_violations(bus->nic), 1);
	bus->ops->dma_unmap(bus, &ring);
}

/* Ordinary memory may be less than a huge page, and other memory begin right behind it. */
static void unmapping_ends_where_the_memory_ends(void **state) {
	struct dma_mem before = {.addr = frames.addr - 4096, .size = 4096};
	struct iova_table table;

	(void)state;
	assert_int_equal(bus->ops->dma_map(bus, &before, &table), 0);
	assert_int_equal(bus->ops->dma_map(bus, &frames, &table), 0);
	bus->ops->dma_unmap(bus, &before);
	assert_true(bus->ops->dma_map(bus, &frames, &table) < 0);
	bus->ops->dma_unmap(bus, &frames);
}

/* Whatever the queues say, command register bit 2 decides. */
static void nothing_moves_without_bus_mastering(void **state) {
	struct iova_table table;

	(void)state;
	assert_int_equal(bus->ops->dma_map(bus, &ring, &table), 0);
	start_queue(iova_of(&table, ring.addr));
	assert_int_equal(send(0, iova_of(&table, ring.addr)), 0);
	assert_int_equal(bus->ops->dma_enable(bus, true), 0);
	assert_int_equal(send(0, iova_of(&table, ring.addr)), 1);
	assert_int_equal(bus->ops->dma_enable(bus, false), 0);
	assert_int_equal(send(1, iova_of(&table, ring.addr)), 1);
	bus->ops->dma_unmap(bus, &ring);
}

/* Physical memory: pages in reverse order. ixy took neighbours for granted (58ab76a).
 */
static uint64_t reversed(uintptr_t page) { return UINT64_C(0x1000000000000) - page; }

static void device_addresses_go_backwards(void **state) {
	struct iova_table table;
	struct iova_table ring_table;

	(void)state;
	bus_soft_set_translator(reversed);
	frames.size -= 4096; /* as ordinary memory may end anywhere */
	assert_int_equal(bus->ops->dma_map(bus, &ring, &ring_table), 0);
	assert_int_equal(bus->ops->dma_map(bus, &frames, &table), 0);
	assert_int_equal(bus->ops->dma_enable(bus, true), 0);
	start_queue(iova_of(&ring_table, ring.addr));
	for (unsigned i = 0; i < PAGES; i++) {
		uint8_t *page = frames.addr + (size_t)i * DMA_HUGE_PAGE;
		uint8_t *end = i < PAGES - 1 ? page + DMA_HUGE_PAGE : frames.addr + frames.size;
		uint8_t *frame = end - LEN;

		assert_int_equal(iova_of(&table, page), reversed((uintptr_t)page));
		assert_int_equal(iova_of(&table, frame), iova_of(&table, page) + (frame - page));
		fill(frame, (uint8_t)(10 * i));
		assert_int_equal(send(i, iova_of(&table, frame)), i + 1);
		assert_memory_equal(last_frame, frame, LEN);
	}
	assert_int_equal(softnic_violations(bus->nic), 0);
	/* Memory goes on behind the frames, but not for the device. */
	send(PAGES, iova_of(&table, frames.addr + frames.size));
	assert_int_equal(softnic_violations(bus->nic), 1);
	bus->ops->dma_unmap(bus, &frames);
	assert_int_equal(bus->ops->dma_map(bus, &frames, &table), 0);
	bus->ops->dma_unmap(bus, &frames);
	/* The ring, a neighbour of theirs for the device, was not unmapped with them. */
	assert_true(bus->ops->dma_map(bus, &ring, &table) < 0);
	bus->ops->dma_unmap(bus, &ring);
}

static uint64_t all_the_same(uintptr_t page) {
	(void)page;
	return DMA_HUGE_PAGE;
}

static void mapping_that_fails_half_way_leaves_nothing(void **state) {
	struct iova_table table;

	(void)state;
	bus_soft_set_translator(all_the_same);
	assert_true(bus->ops->dma_map(bus, &frames, &table) < 0);
	/* The first page's address is free again. */
	assert_int_equal(bus->ops->dma_map(bus, &ring, &table), 0);
	bus->ops->dma_unmap(bus, &ring);
	assert_int_equal(bus->ops->dma_map(bus, &ring, &table), 0);
	bus->ops->dma_unmap(bus, &ring);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
	    TEST(bus_is_the_software_nic_of_that_name),
	    TEST(time_is_the_model_s),
	    TEST(device_addresses_are_virtual_ones),
	    TEST(unmapping_ends_where_the_memory_ends),
	    TEST(nothing_moves_without_bus_mastering),
	    TEST(device_addresses_go_backwards),
	    TEST(mapping_that_fails_half_way_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
