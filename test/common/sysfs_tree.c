/* SPDX-License-Identifier: BSD-3-Clause */
#include "sysfs_tree.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/pci_regs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 10000 };

char root[200];
struct ixdp_bus *bus;
struct kernel kernel;

const char *in_root(const char *file) {
	static _Thread_local char path[400];

	snprintf(path, sizeof(path), "%s/%s", root, file);
	return path;
}

void write_at(const char *file, long offset, const void *data, size_t size) {
	int fd = open(in_root(file), O_RDWR | O_CREAT, 0644);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, size, offset), size);
	close(fd);
}

void read_at(const char *file, long offset, void *data, size_t size) {
	int fd = open(in_root(file), O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, data, size, offset), size);
	close(fd);
}

void write_text(const char *file, const char *text) {
	unlink(in_root(file));
	write_at(file, 0, text, strlen(text));
}

void make_folder(const char *file) {
	char path[400];

	snprintf(path, sizeof(path), "%s", in_root(file));
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

void set_config16(unsigned offset, unsigned value) {
	write_at(DEVICE "/config", offset, (uint8_t[]){value & 0xFF, value >> 8}, 2);
}

unsigned config16(unsigned offset) {
	uint8_t bytes[2];

	read_at(DEVICE "/config", offset, bytes, 2);
	return bytes[0] | bytes[1] << 8;
}

void set_ids(unsigned vendor, unsigned device, unsigned class) {
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

void bind_to(const char *driver) {
	char target[100];

	snprintf(target, sizeof(target), "bus/pci/drivers/%s", driver);
	make_folder(target);
	snprintf(target, sizeof(target), "../../drivers/%s", driver);
	unlink(in_root(DEVICE "/driver"));
	assert_int_equal(symlink(target, in_root(DEVICE "/driver")), 0);
}

void set_interface(const char *name, const char *flags) {
	char file[100];

	snprintf(file, sizeof(file), DEVICE "/net/%s", name);
	make_folder(file);
	snprintf(file, sizeof(file), DEVICE "/net/%s/flags", name);
	write_text(file, flags);
}

void bind_to_ixgbe(void) {
	bind_to("ixgbe");
	set_interface("ixt0", "0x1002\n");
}

bool has_driver(void) {
	char link[8];

	return readlink(in_root(DEVICE "/driver"), link, sizeof(link)) > 0;
}

bool is_empty(const char *file) {
	struct stat st;

	return stat(in_root(file), &st) == 0 && st.st_size == 0;
}

void assert_untouched(void) {
	assert_true(has_driver());
	assert_true(is_empty(IXGBE "/unbind"));
	assert_true(is_empty(IXGBE "/bind"));
	assert_int_equal(config16(PCI_COMMAND), 0);
}

/* --- the kernel's part ---------------------------------------------------------------------- */

/* What was written to a file of the driver, if anything; the file is empty again then. */
static bool written(const char *file, atomic_uint *count) {
	char text[100];
	int fd = open(in_root(file), O_RDWR);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (n > 0 && ftruncate(fd, 0) == 0)
		atomic_fetch_add(
		    n == strlen(ADDRESS) && memcmp(text, ADDRESS, n) == 0 ? count : &kernel.wrong,
		    1);
	if (fd >= 0) close(fd);
	return n > 0;
}

static void sleep_ms(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static void *kernel_main(void *arg) {
	(void)arg;
	while (!atomic_load(&kernel.stop)) {
		if (written(IXGBE "/unbind", &kernel.unbinds)) unlink(in_root(DEVICE "/driver"));
		if (written(IXGBE "/bind", &kernel.binds) &&
		    symlink("../../drivers/ixgbe", in_root(DEVICE "/driver")) < 0)
			atomic_fetch_add(&kernel.wrong, 1);
		sleep_ms();
	}
	return NULL;
}

void start_kernel(void) {
	kernel.runs = pthread_create(&kernel.thread, NULL, kernel_main, NULL) == 0;
	assert_true(kernel.runs);
}

void wait_for_driver(void) {
	for (int i = 0; i < WAIT_MS && !has_driver(); i++)
		sleep_ms();
	assert_true(has_driver());
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

int tree_setup(void **state) {
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

int tree_teardown(void **state) {
	(void)state;
	if (bus) bus->ops->close(bus);
	if (kernel.runs) {
		atomic_store(&kernel.stop, true);
		pthread_join(kernel.thread, NULL);
	}
	bus_sysfs_set_root(NULL);
	dma_set_mounts_file(NULL);
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void open_fails(const char *name, bool force, int err, const char *because) {
	assert_int_equal(bus_open(&bus, name, force), -err);
	if (!strstr(ixdp_error(), because) || strchr(ixdp_error(), '\n'))
		fail_msg("\"%s\" does not say \"%s\" in one line", ixdp_error(), because);
}

void open_works(bool force) {
	if (bus_open(&bus, ADDRESS, force) < 0) fail_msg("%s", ixdp_error());
}

void close_bus(void) {
	bus->ops->close(bus);
	bus = NULL;
}
