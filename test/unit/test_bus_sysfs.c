/* SPDX-License-Identifier: BSD-3-Clause */
/* The sysfs bus: which device it takes, and what it does with it. */
#include "sysfs_tree.h"

#include <ixdp/ixdp.h>

#include <endian.h>
#include <errno.h>
#include <glob.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- which device --------------------------------------------------------------------------- */

static void name_is_canonical_and_ids_are_known(void **state) {
	static const uint16_t family[] = {0x10F7, 0x10F8, 0x10F9, 0x10FB, 0x10FC,
					  0x1507, 0x1514, 0x1517, 0x1529, 0x152A,
					  0x154A, 0x154D, 0x154F, 0x1557, 0x1558};

	(void)state;
	for (size_t i = 0; i < sizeof(family) / sizeof(family[0]); i++) {
		set_ids(0x8086, family[i], 0x0200);
		assert_int_equal(bus_open(&bus, "3:0.0", false), 0);
		assert_string_equal(bus->name, ADDRESS);
		assert_int_equal(bus->numa_node, 1);
		assert_false(bus->ordinary_pages);
		assert_null(bus->nic);
		close_bus();
	}
}

/* ixy takes every device of class "network" for an ixgbe; MoonGen issue 204 was a wrong chip too.
 */
static void other_devices_are_refused_before_anything_is_touched(void **state) {
	static const struct {
		unsigned vendor, device, class;
		const char *because;
	} others[] = {
	    {0x1AF4, 0x1041, 0x0200, "1af4:1041 (class 0200) is not an Intel 82599"},
	    {0x144D, 0xA808, 0x0108, "144d:a808 (class 0108) is not an Intel 82599"},
	    {0x1AF4, 0x10FB, 0x0200, "1af4:10fb (class 0200) is not an Intel 82599"},
	    {0x8086, 0x1572, 0x0200, "8086:1572 (class 0200) is not an Intel 82599"},
	    {0x8086, 0x10ED, 0x0200, "8086:10ed (class 0200) is the virtual function"},
	    {0x8086, 0x151C, 0x0200, "external PHY"},
	    {0x8086, 0x1528, 0x0200, "X540"},
	    {0x8086, 0x1560, 0x0200, "X540"},
	    {0x8086, 0x1563, 0x0200, "an X550,"},
	    {0x8086, 0x1564, 0x0200, "an X550,"},
	    {0x8086, 0x15AD, 0x0200, "X550EM"},
	    {0x8086, 0x15CE, 0x0200, "X550EM"},
	    {0x8086, 0x15E5, 0x0200, "X550EM"},
	};
	char before[4096];
	char after[4096];

	(void)state;
	bind_to_ixgbe();
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		set_ids(others[i].vendor, others[i].device, others[i].class);
		read_at(DEVICE "/config", 0, before, sizeof(before));
		open_fails(ADDRESS, true, ENODEV, others[i].because);
		read_at(DEVICE "/config", 0, after, sizeof(after));
		assert_memory_equal(before, after, sizeof(before));
		assert_untouched();
	}
}

static void names_that_lead_elsewhere_are_refused(void **state) {
	static const char *const names[] = {
	    "",		"../" ADDRESS, ADDRESS "/", ADDRESS "/../" ADDRESS, "0000:03:20.0",
	    " 03:00.0", "eth0",	       "SOFT:a",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		open_fails(names[i], true, EINVAL, "PCI address");
	open_fails(NULL, true, EINVAL, "name");
	open_fails("0000:03:00.1", true, ENODEV, "0000:03:00.1: no such device");
}

/* A broken tree must not end the process, as libpci by itself would. */
static void libpci_errors_come_back_as_errors(void **state) {
	(void)state;
	unlink(in_root(DEVICE "/vendor"));
	open_fails(ADDRESS, true, EIO, "libpci");
	set_ids(0x8086, 0x10FB, 0x0200);
	open_works(false);
}

/* TinyNF refuses a device whose NUMA node is -1, as on every machine with one node only. */
static void unknown_numa_node_is_accepted(void **state) {
	(void)state;
	write_text(DEVICE "/numa_node", "-1\n");
	open_works(false);
	assert_int_equal(bus->numa_node, -1);
	close_bus();
	unlink(in_root(DEVICE "/numa_node"));
	open_works(false);
	assert_int_equal(bus->numa_node, -1);
}

/* --- using it ------------------------------------------------------------------------------- */

static void registers_are_little_endian_in_bar_0(void **state) {
	uint8_t bytes[4];

	(void)state;
	write_at(DEVICE "/resource0", 0x8, "\x04\x03\x02\x01", 4);
	open_works(false);
	assert_int_equal(bus->ops->read32(bus, 0x8), 0x01020304);
	bus->ops->write32(bus, 0x15F00, 0xA1B2C3D4);
	read_at(DEVICE "/resource0", 0x15F00, bytes, 4);
	assert_memory_equal(bytes, "\xD4\xC3\xB2\xA1", 4);
	*bus->ops->doorbell(bus, 0x6018) = 7;
	assert_int_equal(le32toh(bus->ops->read32(bus, 0x6018)), 7);
	assert_null(bus->ops->wire_stats);
	assert_null(bus->ops->wire_stop);
}

/* Interrupts of a level kind without a handler would storm; memory decoding is off after unbind. */
static void command_register_changes_only_where_it_must(void **state) {
	const unsigned found = PCI_COMMAND_PARITY | PCI_COMMAND_SERR;

	(void)state;
	set_config16(PCI_COMMAND, found);
	open_works(false);
	assert_int_equal(config16(PCI_COMMAND),
			 found | PCI_COMMAND_MEMORY | PCI_COMMAND_INTX_DISABLE);
	close_bus();
	assert_int_equal(config16(PCI_COMMAND), found);
}

static void sleeping_device_is_woken(void **state) {
	(void)state;
	set_config16(PM_CAP + PCI_PM_CTRL, 0x8103);
	set_config16(PCI_BASE_ADDRESS_0, 0x000C);
	open_works(false);
	/* Neither is the enable bit of PME lost, nor its status cleared by writing it back. */
	assert_int_equal(config16(PM_CAP + PCI_PM_CTRL), 0x0100);
	assert_int_equal(config16(PCI_BASE_ADDRESS_0), 0x000C);
}

static void device_that_is_gone_is_refused(void **state) {
	(void)state;
	set_config16(PCI_COMMAND, 0xFFFF);
	open_fails(ADDRESS, false, ENODEV, "does not answer");
}

static unsigned marks(void) {
	glob_t found;
	unsigned n = 0;

	if (glob(in_root("huge/ixdp-*/device-" ADDRESS), 0, NULL, &found) == 0)
		n = (unsigned)found.gl_pathc;
	globfree(&found);
	return n;
}

/* A mount, if there is one, is an ordinary folder: marks need no huge pages. */
static void set_mounts(bool any) {
	static char file[300]; /* dma keeps the pointer */
	char line[300] = "";

	if (any) snprintf(line, sizeof(line), "none %s/huge hugetlbfs rw,pagesize=2M 0 0\n", root);
	make_folder("huge");
	write_text("mounts", line);
	snprintf(file, sizeof(file), "%s/mounts", root);
	dma_set_mounts_file(file);
}

/* Bus master stays on when a process dies: what then may be written into must be on record first.
 */
static void bus_master_is_on_only_while_memory_is_marked(void **state) {
	(void)state;
	open_works(false);
	set_mounts(false);
	assert_int_equal(bus->ops->dma_enable(bus, true), -ENOENT);
	assert_false(config16(PCI_COMMAND) & PCI_COMMAND_MASTER);

	set_mounts(true);
	assert_int_equal(bus->ops->dma_enable(bus, true), 0);
	assert_int_equal(marks(), 1);
	assert_true(config16(PCI_COMMAND) & PCI_COMMAND_MASTER);
	assert_int_equal(bus->ops->dma_enable(bus, false), 0);
	assert_false(config16(PCI_COMMAND) & PCI_COMMAND_MASTER);
	assert_int_equal(marks(), 0);
}

/* The device may still write into the pages of a process that was killed, until it is reset. */
static void pages_of_the_dead_are_freed_when_bus_master_is_turned_on(void **state) {
	(void)state;
	set_mounts(true);
	make_folder("huge/ixdp-1-1");
	write_text("huge/ixdp-1-1/mem-0", "");
	write_text("huge/ixdp-1-1/device-" ADDRESS, "");
	open_works(false);
	assert_true(is_empty("huge/ixdp-1-1/mem-0"));
	assert_int_equal(bus->ops->dma_enable(bus, true), 0);
	assert_false(is_empty("huge/ixdp-1-1/mem-0"));
	assert_int_equal(marks(), 1);
}

/* Snabb turns it off in a parent process; here close() does, also when a kernel driver had it on.
 */
static void bus_master_is_off_after_close(void **state) {
	(void)state;
	set_config16(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	set_mounts(true);
	open_works(false);
	assert_int_equal(bus->ops->dma_enable(bus, true), 0);
	close_bus();
	assert_int_equal(config16(PCI_COMMAND), PCI_COMMAND_MEMORY);
	assert_int_equal(marks(), 0);
}

static void pending_transactions_are_seen(void **state) {
	(void)state;
	open_works(false);
	assert_false(bus->ops->transactions_pending(bus));
	set_config16(PCIE_CAP + PCI_EXP_DEVSTA, PCI_EXP_DEVSTA_TRPND);
	assert_true(bus->ops->transactions_pending(bus));
	set_config16(PCIE_CAP + PCI_EXP_DEVSTA, 0xFFFF & ~PCI_EXP_DEVSTA_TRPND);
	assert_false(bus->ops->transactions_pending(bus));
	set_config16(PCIE_CAP + PCI_EXP_DEVSTA, 0xFFFF); /* the device is gone */
	assert_false(bus->ops->transactions_pending(bus));
	close_bus();
	/* Without the capability nothing is read in its place. */
	set_config16(PCI_STATUS, 0);
	set_config16(PCI_EXP_DEVSTA, 0xFFFE);
	open_works(false);
	assert_false(bus->ops->transactions_pending(bus));
}

static void device_addresses_are_physical_ones(void **state) {
	static uint8_t page[4096];
	struct dma_mem mem = {.addr = page, .size = sizeof(page)};
	struct iova_table table;

	(void)state;
	open_works(false);
	assert_int_equal(bus->ops->dma_map(bus, &mem, &table), -EINVAL);
	assert_true(strstr(ixdp_error(), "huge") != NULL);
}

static void time_passes(void **state) {
	uint64_t start;

	(void)state;
	open_works(false);
	start = bus->ops->now_ns(bus);
	bus->ops->delay_us(bus, 20000);
	assert_true(bus->ops->now_ns(bus) - start >= 20000000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
	    TEST(name_is_canonical_and_ids_are_known),
	    TEST(other_devices_are_refused_before_anything_is_touched),
	    TEST(names_that_lead_elsewhere_are_refused),
	    TEST(libpci_errors_come_back_as_errors),
	    TEST(unknown_numa_node_is_accepted),
	    TEST(registers_are_little_endian_in_bar_0),
	    TEST(command_register_changes_only_where_it_must),
	    TEST(sleeping_device_is_woken),
	    TEST(device_that_is_gone_is_refused),
	    TEST(bus_master_is_on_only_while_memory_is_marked),
	    TEST(pages_of_the_dead_are_freed_when_bus_master_is_turned_on),
	    TEST(bus_master_is_off_after_close),
	    TEST(pending_transactions_are_seen),
	    TEST(device_addresses_are_physical_ones),
	    TEST(time_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
