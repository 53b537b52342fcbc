/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sysfs bus on a made-up tree of ordinary files. A thread plays the kernel: what is written to
 * `unbind` and `bind` of the driver makes the device's `driver` link go and come.
 */
#include "bus/bus.h"

#include <ixdp/ixdp.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <ifaddrs.h>
#include <linux/pci_regs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ADDRESS "0000:03:00.0"
#define DEVICE "bus/pci/devices/" ADDRESS
#define IXGBE "bus/pci/drivers/ixgbe"

enum { PM_CAP = 0x40, PCIE_CAP = 0xA0, WAIT_MS = 10000 };

static char root[200];
static struct ixdp_bus *bus;

static struct {
	pthread_t thread;
	bool runs;
	atomic_bool stop;
	atomic_uint unbinds, binds; /* of ADDRESS, character for character */
	atomic_uint wrong;	    /* anything else */
} kernel;

/* --- the tree ------------------------------------------------------------------------------- */

static const char *in_root(const char *file)
{
	static _Thread_local char path[400];

	snprintf(path, sizeof(path), "%s/%s", root, file);
	return path;
}

static void write_at(const char *file, long offset, const void *data, size_t size)
{
	int fd = open(in_root(file), O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, size, offset), size);
	close(fd);
}

static void read_at(const char *file, long offset, void *data, size_t size)
{
	int fd = open(in_root(file), O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, data, size, offset), size);
	close(fd);
}

static void write_text(const char *file, const char *text)
{
	unlink(in_root(file));
	write_at(file, 0, text, strlen(text));
}

static void make_folder(const char *file)
{
	char path[400];

	snprintf(path, sizeof(path), "%s", in_root(file));
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

static void set_config16(unsigned offset, unsigned value)
{
	write_at(DEVICE "/config", offset, (uint8_t[]){value & 0xFF, value >> 8}, 2);
}

static unsigned config16(unsigned offset)
{
	uint8_t bytes[2];

	read_at(DEVICE "/config", offset, bytes, 2);
	return bytes[0] | bytes[1] << 8;
}

static void set_ids(unsigned vendor, unsigned device, unsigned class)
{
	char text[20];

	snprintf(text, sizeof(text), "0x%04x\n", vendor);
	write_text(DEVICE "/vendor", text);
	snprintf(text, sizeof(text), "0x%04x\n", device);
	write_text(DEVICE "/device", text);
	snprintf(text, sizeof(text), "0x%04x00\n", class);
	write_text(DEVICE "/class", text);
	set_config16(PCI_VENDOR_ID, vendor);
	set_config16(PCI_DEVICE_ID, device);
	set_config16(PCI_CLASS_DEVICE, class);
}

static void bind_to(const char *driver)
{
	char target[100];

	snprintf(target, sizeof(target), "bus/pci/drivers/%s", driver);
	make_folder(target);
	snprintf(target, sizeof(target), "../../drivers/%s", driver);
	unlink(in_root(DEVICE "/driver"));
	assert_int_equal(symlink(target, in_root(DEVICE "/driver")), 0);
}

static void set_interface(const char *name, const char *flags)
{
	char file[100];

	snprintf(file, sizeof(file), DEVICE "/net/%s", name);
	make_folder(file);
	snprintf(file, sizeof(file), DEVICE "/net/%s/flags", name);
	write_text(file, flags);
}

/* Bound to ixgbe, whose interface is down. */
static void bind_to_ixgbe(void)
{
	bind_to("ixgbe");
	set_interface("ixt0", "0x1002\n");
}

static bool has_driver(void)
{
	char link[8];

	return readlink(in_root(DEVICE "/driver"), link, sizeof(link)) > 0;
}

static bool is_empty(const char *file)
{
	struct stat st;

	return stat(in_root(file), &st) == 0 && st.st_size == 0;
}

static void assert_untouched(void)
{
	assert_true(has_driver());
	assert_true(is_empty(IXGBE "/unbind"));
	assert_true(is_empty(IXGBE "/bind"));
	assert_int_equal(config16(PCI_COMMAND), 0);
}

/* --- the kernel's part ---------------------------------------------------------------------- */

/* What was written to a file of the driver, if anything; the file is empty again then. */
static bool written(const char *file, atomic_uint *count)
{
	char text[100];
	int fd = open(in_root(file), O_RDWR);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (n > 0 && ftruncate(fd, 0) == 0)
		atomic_fetch_add(
		    n == strlen(ADDRESS) && memcmp(text, ADDRESS, n) == 0 ? count : &kernel.wrong,
		    1);
	if (fd >= 0)
		close(fd);
	return n > 0;
}

static void sleep_ms(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *kernel_main(void *arg)
{
	(void)arg;
	while (!atomic_load(&kernel.stop)) {
		if (written(IXGBE "/unbind", &kernel.unbinds))
			unlink(in_root(DEVICE "/driver"));
		if (written(IXGBE "/bind", &kernel.binds) &&
		    symlink("../../drivers/ixgbe", in_root(DEVICE "/driver")) < 0)
			atomic_fetch_add(&kernel.wrong, 1);
		sleep_ms();
	}
	return NULL;
}

/* Until this is called a write to a file of the driver stays in it, for all to see. */
static void start_kernel(void)
{
	kernel.runs = pthread_create(&kernel.thread, NULL, kernel_main, NULL) == 0;
	assert_true(kernel.runs);
}

static void wait_for_driver(void)
{
	for (int i = 0; i < WAIT_MS && !has_driver(); i++)
		sleep_ms();
	assert_true(has_driver());
}

/* --- setup ---------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

/* A 10FB without a driver, powered, bus master off. */
static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	static const uint8_t pm[] = {PCI_CAP_ID_PM, PCIE_CAP};
	static const uint8_t pcie[] = {PCI_CAP_ID_EXP, 0};

	(void)state;
	snprintf(root, sizeof(root), "%s/ixdp-sysfs-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(root));
	chmod(root, 0755);
	make_folder(DEVICE);
	make_folder(IXGBE);
	write_text(IXGBE "/bind", "");
	write_text(IXGBE "/unbind", "");
	write_at(DEVICE "/config", 4095, "", 1);
	set_ids(0x8086, 0x10FB, 0x0200);
	set_config16(PCI_STATUS, PCI_STATUS_CAP_LIST);
	write_at(DEVICE "/config", PCI_CAPABILITY_LIST, (uint8_t[]){PM_CAP}, 1);
	write_at(DEVICE "/config", PM_CAP, pm, sizeof(pm));
	write_at(DEVICE "/config", PCIE_CAP, pcie, sizeof(pcie));
	write_text(DEVICE "/numa_node", "1\n");
	write_at(DEVICE "/resource0", 512 * 1024 - 1, "", 1);
	memset(&kernel, 0, sizeof(kernel));
	bus = NULL;
	bus_sysfs_set_root(root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (bus)
		bus->ops->close(bus);
	if (kernel.runs) {
		atomic_store(&kernel.stop, true);
		pthread_join(kernel.thread, NULL);
	}
	bus_sysfs_set_root(NULL);
	dma_set_mounts_file(NULL);
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_fails(const char *name, bool force, int err, const char *because)
{
	assert_int_equal(bus_open(&bus, name, force), -err);
	if (!strstr(ixdp_error(), because) || strchr(ixdp_error(), '\n'))
		fail_msg("\"%s\" does not say \"%s\" in one line", ixdp_error(), because);
}

static void open_works(bool force)
{
	if (bus_open(&bus, ADDRESS, force) < 0)
		fail_msg("%s", ixdp_error());
}

static void close_bus(void)
{
	bus->ops->close(bus);
	bus = NULL;
}

/* --- which device --------------------------------------------------------------------------- */

static void name_is_canonical_and_ids_are_known(void **state)
{
	static const uint16_t family[] = {0x10F7, 0x10F8, 0x10F9, 0x10FB, 0x10FC,
					  0x1507, 0x1514, 0x1517, 0x1529, 0x152A,
					  0x154A, 0x154D, 0x154F, 0x1557, 0x1558};

	(void)state;
	for (size_t i = 0; i < sizeof(family) / sizeof(family[0]); i++) {
		set_ids(0x8086, family[i], 0x0200);
		assert_int_equal(bus_open(&bus, "3:0.0", false), 0);
		assert_string_equal(bus->name, ADDRESS);
		assert_int_equal(bus->device_id, family[i]);
		assert_int_equal(bus->numa_node, 1);
		assert_false(bus->ordinary_pages);
		assert_null(bus_softnic(bus));
		close_bus();
	}
}

/* ixy takes every device of class "network" for an ixgbe; MoonGen issue 204 was a wrong chip too.
 */
static void other_devices_are_refused_before_anything_is_touched(void **state)
{
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

static void names_that_lead_elsewhere_are_refused(void **state)
{
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
static void libpci_errors_come_back_as_errors(void **state)
{
	(void)state;
	unlink(in_root(DEVICE "/vendor"));
	open_fails(ADDRESS, true, EIO, "libpci");
	set_ids(0x8086, 0x10FB, 0x0200);
	open_works(false);
}

/* TinyNF refuses a device whose NUMA node is -1, as on every machine with one node only. */
static void unknown_numa_node_is_accepted(void **state)
{
	(void)state;
	write_text(DEVICE "/numa_node", "-1\n");
	open_works(false);
	assert_int_equal(bus->numa_node, -1);
	close_bus();
	unlink(in_root(DEVICE "/numa_node"));
	open_works(false);
	assert_int_equal(bus->numa_node, -1);
}

/* --- who uses it ---------------------------------------------------------------------------- */

static void interface_that_is_up_is_left_alone_unless_forced(void **state)
{
	(void)state;
	bind_to_ixgbe();
	set_interface("ixt1", "0x1003\n");
	open_fails(ADDRESS, false, EBUSY, "ixt1 is up");
	assert_untouched();
	start_kernel();
	open_works(true);
	assert_int_equal(kernel.unbinds, 1);
}

static void interface_with_an_address_is_left_alone_unless_forced(void **state)
{
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

static void driver_without_an_interface_keeps_it_unless_forced(void **state)
{
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
static void drivers_for_userspace_keep_it_even_if_forced(void **state)
{
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

static void translating_iommu_is_refused_and_vfio_named(void **state)
{
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

static void second_open_and_second_process_are_kept_out(void **state)
{
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
		if (bus_open(&bus, ADDRESS, false) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
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

static void without_privilege_the_error_says_root(void **state)
{
	uid_t user = geteuid();

	(void)state;
	chmod(in_root(DEVICE "/config"), 0444);
	if (user == 0 && seteuid(65534) < 0)
		skip();
	/* First it is the lock's folder that is closed to us, then config space. */
	if (user == 0)
		open_fails(ADDRESS, false, EACCES, "root");
	seteuid(user);
	chmod(root, 0777);
	if (user == 0)
		assert_int_equal(seteuid(65534), 0);
	open_fails(ADDRESS, false, EACCES, "config");
	assert_non_null(strstr(ixdp_error(), "root"));
	seteuid(user);
	assert_int_equal(config16(PCI_COMMAND), 0);
}

/* --- taking it and giving it back ----------------------------------------------------------- */

static void kernel_driver_is_unbound_and_bound_again(void **state)
{
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

static void device_without_a_driver_stays_without(void **state)
{
	(void)state;
	open_works(false);
	close_bus();
	assert_false(has_driver());
	assert_true(is_empty(IXGBE "/unbind"));
	assert_true(is_empty(IXGBE "/bind"));
}

static void open_that_fails_late_gives_everything_back(void **state)
{
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

static void driver_that_does_not_let_go_is_waited_for_with_a_limit(void **state)
{
	(void)state;
	bind_to_ixgbe();
	open_fails(ADDRESS, false, ETIMEDOUT, "ixgbe did not let go");
	assert_int_equal(config16(PCI_COMMAND), 0);
}

static void opening_again_and_again_leaks_nothing(void **state)
{
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

/* --- using it ------------------------------------------------------------------------------- */

static void registers_are_little_endian_in_bar_0(void **state)
{
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
static void command_register_changes_only_where_it_must(void **state)
{
	const unsigned found = PCI_COMMAND_PARITY | PCI_COMMAND_SERR;

	(void)state;
	set_config16(PCI_COMMAND, found);
	open_works(false);
	assert_int_equal(config16(PCI_COMMAND),
			 found | PCI_COMMAND_MEMORY | PCI_COMMAND_INTX_DISABLE);
	close_bus();
	assert_int_equal(config16(PCI_COMMAND), found);
}

static void sleeping_device_is_woken(void **state)
{
	(void)state;
	set_config16(PM_CAP + PCI_PM_CTRL, 0x8103);
	set_config16(PCI_BASE_ADDRESS_0, 0x000C);
	open_works(false);
	/* Neither is the enable bit of PME lost, nor its status cleared by writing it back. */
	assert_int_equal(config16(PM_CAP + PCI_PM_CTRL), 0x0100);
	assert_int_equal(config16(PCI_BASE_ADDRESS_0), 0x000C);
}

static void device_that_is_gone_is_refused(void **state)
{
	(void)state;
	set_config16(PCI_COMMAND, 0xFFFF);
	open_fails(ADDRESS, false, ENODEV, "does not answer");
}

static unsigned marks(void)
{
	glob_t found;
	unsigned n = 0;

	if (glob(in_root("huge/ixdp-*/device-" ADDRESS), 0, NULL, &found) == 0)
		n = (unsigned)found.gl_pathc;
	globfree(&found);
	return n;
}

/* A mount, if there is one, is an ordinary folder: marks need no huge pages. */
static void set_mounts(bool any)
{
	static char file[300]; /* dma keeps the pointer */
	char line[300] = "";

	if (any)
		snprintf(line, sizeof(line), "none %s/huge hugetlbfs rw,pagesize=2M 0 0\n", root);
	make_folder("huge");
	write_text("mounts", line);
	snprintf(file, sizeof(file), "%s/mounts", root);
	dma_set_mounts_file(file);
}

/* Bus master stays on when a process dies: what then may be written into must be on record first.
 */
static void bus_master_is_on_only_while_memory_is_marked(void **state)
{
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

/* Snabb turns it off in a parent process; here close() does, also when a kernel driver had it on.
 */
static void bus_master_is_off_after_close(void **state)
{
	(void)state;
	set_config16(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	set_mounts(true);
	open_works(false);
	assert_int_equal(bus->ops->dma_enable(bus, true), 0);
	close_bus();
	assert_int_equal(config16(PCI_COMMAND), PCI_COMMAND_MEMORY);
	assert_int_equal(marks(), 0);
}

static void pending_transactions_are_seen(void **state)
{
	(void)state;
	open_works(false);
	assert_false(bus->ops->transactions_pending(bus));
	set_config16(PCIE_CAP + PCI_EXP_DEVSTA, PCI_EXP_DEVSTA_TRPND);
	assert_true(bus->ops->transactions_pending(bus));
	set_config16(PCIE_CAP + PCI_EXP_DEVSTA, 0xFFFF & ~PCI_EXP_DEVSTA_TRPND);
	assert_false(bus->ops->transactions_pending(bus));
	close_bus();
	/* Without the capability nothing is read in its place. */
	set_config16(PCI_STATUS, 0);
	set_config16(PCI_EXP_DEVSTA, 0xFFFE);
	open_works(false);
	assert_false(bus->ops->transactions_pending(bus));
}

static void device_addresses_are_physical_ones(void **state)
{
	static uint8_t page[4096];
	struct dma_mem mem = {.addr = page, .size = sizeof(page), .page = sizeof(page)};
	struct iova_table table;

	(void)state;
	open_works(false);
	assert_int_equal(bus->ops->dma_map(bus, &mem, &table), -EINVAL);
	assert_true(strstr(ixdp_error(), "huge") != NULL);
}

static void time_passes(void **state)
{
	uint64_t start;

	(void)state;
	open_works(false);
	start = bus->ops->now_ns(bus);
	bus->ops->delay_us(bus, 1500);
	assert_true(bus->ops->now_ns(bus) - start >= 1500000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(name_is_canonical_and_ids_are_known),
	    TEST(other_devices_are_refused_before_anything_is_touched),
	    TEST(names_that_lead_elsewhere_are_refused),
	    TEST(libpci_errors_come_back_as_errors),
	    TEST(unknown_numa_node_is_accepted),
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
	    TEST(registers_are_little_endian_in_bar_0),
	    TEST(command_register_changes_only_where_it_must),
	    TEST(sleeping_device_is_woken),
	    TEST(device_that_is_gone_is_refused),
	    TEST(bus_master_is_on_only_while_memory_is_marked),
	    TEST(bus_master_is_off_after_close),
	    TEST(pending_transactions_are_seen),
	    TEST(device_addresses_are_physical_ones),
	    TEST(time_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
