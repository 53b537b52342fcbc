/* SPDX-License-Identifier: BSD-3-Clause */
/* How the sysfs bus takes a device from whoever has it, or leaves it alone, and gives it back. */
#include "sysfs_tree.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <ifaddrs.h>
#include <linux/pci_regs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- who uses it ---------------------------------------------------------------------------- */

static void interface_that_is_up_is_left_alone_unless_forced(void **state) {
	(void)state;
	bind_to_ixgbe();
	set_interface("ixt1", "0x1003\n");
	open_fails(ADDRESS, false, EBUSY, "ixt1 is up");
	/* So is one of which nobody can tell. */
	unlink(in_root(DEVICE "/net/ixt1/flags"));
	open_fails(ADDRESS, false, EBUSY, "ixt1 is up");
	assert_untouched();
	start_kernel();
	open_works(true);
	assert_int_equal(kernel.unbinds, 1);
}

static void interface_with_an_address_is_left_alone_unless_forced(void **state) {
	struct ifaddrs *list;
	bool has_address = false;

	(void)state;
	assert_int_equal(getifaddrs(&list), 0);
	for (struct ifaddrs *a = list; a; a = a->ifa_next)
		has_address |= a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
			       strcmp(a->ifa_name, "lo") == 0;
	freeifaddrs(list);
	if (!has_address) {
		print_message("skipped: the loopback interface has no address here\n");
		skip();
	}
	bind_to_ixgbe();
	set_interface("lo", "0x8\n");
	open_fails(ADDRESS, false, EBUSY, "lo has an address");
	assert_untouched();
	start_kernel();
	open_works(true);
}

static void driver_without_an_interface_keeps_it_unless_forced(void **state) {
	(void)state;
	bind_to("ixgbe");
	open_fails(ADDRESS, false, EBUSY, "bound to ixgbe but without an interface here");
	make_folder(DEVICE "/net");
	open_fails(ADDRESS, false, EBUSY, "network namespace");
	assert_untouched();
	start_kernel();
	open_works(true);
}

/* To unbind vfio-pci from under a virtual machine would block until that machine ends. */
static void drivers_for_userspace_keep_it_even_if_forced(void **state) {
	static const char *const drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};
	char unbind[100];

	(void)state;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		bind_to(drivers[i]);
		snprintf(unbind, sizeof(unbind), "bus/pci/drivers/%s/unbind", drivers[i]);
		write_text(unbind, "");
		open_fails(ADDRESS, true, EBUSY, drivers[i]);
		assert_true(is_empty(unbind));
	}
}

static void translating_iommu_is_refused_and_vfio_named(void **state) {
	static const char *const types[] = {"DMA\n", "DMA-FQ\n", "blocked\n", "unknown\n"};

	(void)state;
	bind_to_ixgbe();
	make_folder(DEVICE "/iommu_group");
	open_fails(ADDRESS, true, ENOTSUP, "group type unknown");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		write_text(DEVICE "/iommu_group/type", types[i]);
		open_fails(ADDRESS, true, ENOTSUP, "vfio");
	}
	assert_untouched();
	start_kernel();
	write_text(DEVICE "/iommu_group/type", "identity\n");
	open_works(false);
	assert_int_equal(kernel.unbinds, 1);
}

static void second_open_and_second_process_are_kept_out(void **state) {
	struct ixdp_bus *second;
	int ready[2];
	char byte;
	pid_t child;

	(void)state;
	open_works(false);
	assert_int_equal(bus_open(&second, "03:00.0", true), -EBUSY);
	assert_non_null(strstr(ixdp_error(), "already open"));
	close_bus();

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (bus_open(&bus, ADDRESS, false) < 0 || write(ready[1], "", 1) != 1) _exit(1);
		pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	open_fails(ADDRESS, true, EBUSY, "another process");
	/* However it ends, the lock goes with it. */
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	open_works(false);
}

static void without_privilege_the_error_says_root(void **state) {
	uid_t user = geteuid();

	(void)state;
	chmod(in_root(DEVICE "/config"), 0444);
	if (user == 0 && seteuid(65534) < 0) skip();
	/* First it is the lock's folder that is closed to us, then config space. */
	if (user == 0) open_fails(ADDRESS, false, EACCES, "root");
	assert_int_equal(seteuid(user), 0);
	chmod(root, 0777);
	if (user == 0) assert_int_equal(seteuid(65534), 0);
	open_fails(ADDRESS, false, EACCES, "config");
	assert_non_null(strstr(ixdp_error(), "root"));
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(config16(PCI_COMMAND), 0);
}

/* --- taking it and giving it back ----------------------------------------------------------- */

static void kernel_driver_is_unbound_and_bound_again(void **state) {
	(void)state;
	bind_to_ixgbe();
	start_kernel();
	open_works(false);
	assert_false(has_driver());
	assert_int_equal(kernel.unbinds, 1);
	close_bus();
	wait_for_driver();
	assert_int_equal(kernel.binds, 1);
	assert_int_equal(kernel.wrong, 0);
}

static void device_without_a_driver_stays_without(void **state) {
	(void)state;
	open_works(false);
	close_bus();
	assert_false(has_driver());
	assert_true(is_empty(IXGBE "/unbind"));
	assert_true(is_empty(IXGBE "/bind"));
}

static void open_that_fails_late_gives_everything_back(void **state) {
	(void)state;
	bind_to_ixgbe();
	start_kernel();
	set_config16(PCI_COMMAND, PCI_COMMAND_IO | PCI_COMMAND_PARITY);
	assert_int_equal(truncate(in_root(DEVICE "/resource0"), 64 * 1024), 0);
	open_fails(ADDRESS, false, ENODEV, "65536 bytes");
	wait_for_driver();
	assert_int_equal(config16(PCI_COMMAND), PCI_COMMAND_IO | PCI_COMMAND_PARITY);

	unlink(in_root(DEVICE "/resource0"));
	open_fails(ADDRESS, false, ENOENT, "resource0");
	wait_for_driver();
	assert_int_equal(config16(PCI_COMMAND), PCI_COMMAND_IO | PCI_COMMAND_PARITY);
	assert_int_equal(kernel.unbinds, 2);
	assert_int_equal(kernel.binds, 2);

	write_at(DEVICE "/resource0", 128 * 1024 - 1, "", 1);
	open_works(false);
}

static void driver_that_does_not_let_go_is_waited_for_with_a_limit(void **state) {
	(void)state;
	bind_to_ixgbe();
	open_fails(ADDRESS, false, ETIMEDOUT, "ixgbe did not let go");
	assert_int_equal(config16(PCI_COMMAND), 0);
}

static void opening_again_and_again_leaks_nothing(void **state) {
	struct rlimit before;
	struct rlimit few;
	char line[512];
	FILE *maps;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int i = 0; i < 500; i++) {
		open_works(false);
		close_bus();
	}
	bind_to_ixgbe();
	set_interface("ixt0", "0x1003\n");
	for (int i = 0; i < 100; i++)
		open_fails(ADDRESS, false, EBUSY, "is up");
	set_interface("ixt0", "0x1002\n");
	start_kernel();
	for (int i = 0; i < 100; i++) {
		open_works(false);
		close_bus();
		wait_for_driver();
	}
	setrlimit(RLIMIT_NOFILE, &before);
	maps = fopen("/proc/self/maps", "re");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		assert_null(strstr(line, "resource0"));
	fclose(maps);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
	    TEST(interface_that_is_up_is_left_alone_unless_forced),
	    TEST(interface_with_an_address_is_left_alone_unless_forced),
	    TEST(driver_without_an_interface_keeps_it_unless_forced),
	    TEST(drivers_for_userspace_keep_it_even_if_forced),
	    TEST(translating_iommu_is_refused_and_vfio_named),
	    TEST(second_open_and_second_process_are_kept_out),
	    TEST(without_privilege_the_error_says_root),
	    TEST(kernel_driver_is_unbound_and_bound_again),
	    TEST(device_without_a_driver_stays_without),
	    TEST(open_that_fails_late_gives_everything_back),
	    TEST(driver_that_does_not_let_go_is_waited_for_with_a_limit),
	    TEST(opening_again_and_again_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
