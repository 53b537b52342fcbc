/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses for devices: from made-up pagemaps, all that can be wrong with one included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ixdp/ixdp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem/iova.h"

enum { PAGES = 3 };

static const uint64_t present = UINT64_C(1) << 63;
static char path[] = "/tmp/ixdp-pagemap-XXXXXX";
static struct dma_mem mem; /* three huge pages whose contents nobody looks at */

/* A pagemap that has these entries where the huge pages of mem begin, n bytes in all of the last.
 */
static void write_pagemap(const uint64_t entries[PAGES], size_t n) {
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < PAGES; i++) {
		uintptr_t addr = (uintptr_t)mem.addr + i * DMA_HUGE_PAGE;
		off_t at = (off_t)(addr / (uintptr_t)sysconf(_SC_PAGESIZE) * 8);
		size_t size = i == PAGES - 1 ? n : 8;
		assert_int_equal(pwrite(fd, &entries[i], size, at), size);
	}
	close(fd);
}

static int set_up(void **state) {
	(void)state;
	mem = (struct dma_mem){
	    .addr = (uint8_t *)0x40000000,
	    .size = PAGES * DMA_HUGE_PAGE,
	    .huge = true,
	};
	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	int fd = mkstemp(path);
	if (fd >= 0) close(fd);
	iova_set_pagemap_file(path);
	return fd < 0;
}

static int tear_down(void **state) {
	(void)state;
	iova_set_pagemap_file(NULL);
	free(mem.phys);
	return unlink(path);
}

/* Frame numbers are of pages of 4 KiB, or whatever the machine has. */
static uint64_t pfn(uint64_t phys) { return present | phys / (uint64_t)sysconf(_SC_PAGESIZE); }

static void pages_that_lie_apart_and_backwards_are_found(void **state) {
	const uint64_t phys[PAGES] = {0x180000000, 0x0fe00000, 0x00200000};
	const uint64_t entries[PAGES] = {pfn(phys[0]), pfn(phys[1]), pfn(phys[2])};
	struct iova_table table;

	(void)state;
	write_pagemap(entries, 8);
	assert_int_equal(iova_physical(&table, &mem), 0);
	for (size_t i = 0; i < PAGES; i++) {
		const uint8_t *page = mem.addr + i * DMA_HUGE_PAGE;
		assert_int_equal(iova_of(&table, page), phys[i]);
		assert_int_equal(iova_of(&table, page + 4097), phys[i] + 4097);
		assert_int_equal(iova_of(&table, page + DMA_HUGE_PAGE - 1),
				 phys[i] + DMA_HUGE_PAGE - 1);
	}
}

static void pagemap_is_read_once_per_memory(void **state) {
	const uint64_t entries[PAGES] = {pfn(0x200000), pfn(0x400000), pfn(0x600000)};
	struct iova_table first, second;

	(void)state;
	write_pagemap(entries, 8);
	assert_int_equal(iova_physical(&first, &mem), 0);
	iova_set_pagemap_file("/nonexistent");
	assert_int_equal(iova_physical(&second, &mem), 0);
	assert_ptr_equal(first.delta, second.delta);
}

/* A table that must not come to be, and whose error says this. */
static void assert_refused(int err, const char *text) {
	struct iova_table table = {0};

	assert_int_equal(iova_physical(&table, &mem), -err);
	assert_non_null(strstr(ixdp_error(), text));
	assert_null(table.delta);
	assert_null(mem.phys);
}

/* What a process without CAP_SYS_ADMIN reads: present, soft-dirty or exclusive, and frame 0. */
static void hidden_frame_numbers_are_an_error_not_address_0(void **state) {
	const uint64_t hidden = UINT64_C(0x8100000000000000);
	const uint64_t entries[PAGES] = {hidden, hidden, hidden};
	const uint64_t last[PAGES] = {pfn(0x200000), pfn(0x400000), present};

	(void)state;
	write_pagemap(entries, 8);
	assert_refused(EPERM, "hides");
	write_pagemap(last, 8);
	assert_refused(EPERM, "hides");
}

static void a_page_that_is_not_present_is_an_error(void **state) {
	const uint64_t absent[PAGES] = {0};
	const uint64_t swapped[PAGES] = {pfn(0x200000), UINT64_C(1) << 62 | 0x400, pfn(0x600000)};

	(void)state;
	write_pagemap(absent, 8);
	assert_refused(EFAULT, "not present");
	write_pagemap(swapped, 8);
	assert_refused(EFAULT, "not present");
}

static void a_pagemap_that_ends_early_is_an_error(void **state) {
	const uint64_t entries[PAGES] = {pfn(0x200000), pfn(0x400000), pfn(0x600000)};

	(void)state;
	write_pagemap(entries, 5);
	assert_refused(EIO, "after 5 bytes");
	write_pagemap(entries, 0);
	assert_refused(EIO, "after 0 bytes");
}

static void a_small_page_in_between_is_an_error(void **state) {
	const uint64_t entries[PAGES] = {pfn(0x200000), pfn(0x401000), pfn(0x600000)};

	(void)state;
	write_pagemap(entries, 8);
	assert_refused(EINVAL, "not a huge page");
}

static void ordinary_pages_have_no_address_for_a_card(void **state) {
	(void)state;
	mem.huge = false;
	assert_refused(EINVAL, "ordinary pages");
}

static void a_pagemap_that_may_not_be_opened_is_an_error(void **state) {
	(void)state;
	assert_int_equal(chmod(path, 0), 0);
	if (geteuid() == 0) assert_int_equal(seteuid(65534), 0);
	assert_refused(EACCES, path);
	if (getuid() == 0) assert_int_equal(seteuid(0), 0);
	iova_set_pagemap_file("/nonexistent/pagemap");
	assert_refused(ENOENT, "/nonexistent/pagemap");
}

static void a_device_that_sees_virtual_addresses_gets_them(void **state) {
	struct iova_table table;

	(void)state;
	iova_identity(&table, &mem);
	assert_int_equal(iova_of(&table, mem.addr), (uintptr_t)mem.addr);
	assert_int_equal(iova_of(&table, mem.addr + mem.size - 1),
			 (uintptr_t)mem.addr + mem.size - 1);
}

static void the_kernels_own_pagemap_is_understood(void **state) {
	struct iova_table table;
	struct dma_mem *real;

	(void)state;
	iova_set_pagemap_file(NULL);
	if (dma_alloc(&real, 2 * DMA_HUGE_PAGE, -1, false)) {
		print_message("no huge pages for this user: %s\n", ixdp_error());
		skip();
	}
	int err = iova_physical(&table, real);
	if (err == -EPERM) {
		print_message("%s\n", ixdp_error());
		dma_free(real);
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_not_equal(iova_of(&table, real->addr), 0);
	assert_int_equal(iova_of(&table, real->addr) % DMA_HUGE_PAGE, 0);
	assert_int_equal(iova_of(&table, real->addr + DMA_HUGE_PAGE + 7) % DMA_HUGE_PAGE, 7);
	assert_int_not_equal(iova_of(&table, real->addr),
			     iova_of(&table, real->addr + DMA_HUGE_PAGE));
	dma_free(real);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
	    TEST(pages_that_lie_apart_and_backwards_are_found),
	    TEST(pagemap_is_read_once_per_memory),
	    TEST(hidden_frame_numbers_are_an_error_not_address_0),
	    TEST(a_page_that_is_not_present_is_an_error),
	    TEST(a_pagemap_that_ends_early_is_an_error),
	    TEST(a_small_page_in_between_is_an_error),
	    TEST(ordinary_pages_have_no_address_for_a_card),
	    TEST(a_pagemap_that_may_not_be_opened_is_an_error),
	    TEST(a_device_that_sees_virtual_addresses_gets_them),
	    TEST(the_kernels_own_pagemap_is_understood),
	};

	return cmocka_run_group_tests_name("iova", tests, NULL, NULL);
}
