/* SPDX-License-Identifier: BSD-3-Clause */
/* A NIC on a PCI bus, through its files in sysfs: taken over, used, given back. Needs root. */
#include "base/clock.h"
#include "base/error.h"
#include "bus.h"

#include <ctype.h>
#include <endian.h>
#include <fcntl.h>
#include <glob.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pci/pci.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BAR_SIZE = 128 * 1024, /* of BAR 0: all registers, section 9.3 */
	D0_DELAY_US = 10000,   /* from D3hot to D0: PCI Power Management specification */
	UNBIND_MS = 2000,      /* the kernel unbinds before the write returns; should it not */
};

struct sysfs_bus {
	struct ixdp_bus bus;
	unsigned domain, busno, slot, func; /* address */
	unsigned pm_cap, pcie_cap;	    /* where in config space; 0: not there */
	int dir, lock, config;		    /* -1: not open, and close() lets that pass */
	char driver[64];		    /* the kernel driver that had it; empty: none */
	uint16_t command;		    /* as found, with that driver still there */
	bool taken;			    /* from that driver, if any: to be given back */
	volatile uint8_t *regs;		    /* BAR 0 */
};

static const char *sysfs = "/sys", *locks = "/run";

void bus_sysfs_set_root(const char *path) {
	sysfs = path ? path : "/sys";
	locks = path ? path : "/run";
}

/* libpci has a parser too, but that one takes wildcards, signs and whatever follows the number. */
static int parse_name(struct sysfs_bus *b, const char *text) {
	char more;
	int shown = 0;
	if (text[strspn(text, "0123456789abcdefABCDEF:.")] == '\0' &&
	    (sscanf(text, "%2x:%2x.%1x%c", &b->busno, &b->slot, &b->func, &more) == 3 ||
	     sscanf(text, "%8x:%2x:%2x.%1x%c", &b->domain, &b->busno, &b->slot, &b->func, &more) ==
		 4) &&
	    b->domain <= INT32_MAX && b->slot <= 0x1F && b->func <= 7) {
		snprintf(b->bus.name, sizeof(b->bus.name), "%04x:%02x:%02x.%x", b->domain, b->busno,
			 b->slot, b->func);
		return 0;
	}
	while (shown < 40 && isprint((unsigned char)text[shown]))
		shown++;
	return ixdp_fail(EINVAL, "\"%.*s\": neither a PCI address (0000:03:00.0) nor soft:NAME",
			 shown, text);
}

/* 82599s that behave alike, and relatives that somebody will try. 0 ends a list. */
static const struct {
	const char *refused; /* why; NULL: it is not */
	uint16_t ids[20];
} family[] = {
    {NULL,
     {0x10F7, 0x10F8, 0x10F9, 0x10FB, 0x10FC, 0x1507, 0x1514, 0x1517, 0x1529, 0x152A, 0x154A,
      0x154D, 0x154F, 0x1557, 0x1558}},
    {"the virtual function of an 82599: not supported", {0x10ED, 0x152E}},
    {"a copper 82599, whose external PHY is not supported", {0x151C}},
    {"an X540, not an 82599", {0x1515, 0x1528, 0x1530, 0x1560}},
    {"an X550, not an 82599", {0x1563, 0x1564, 0x1565, 0x15D1}},
    {"an X550EM, not an 82599",
     {0x15A8, 0x15AA, 0x15AB, 0x15AC, 0x15AD, 0x15AE, 0x15B0, 0x15C2, 0x15C3, 0x15C4, 0x15C5,
      0x15C6, 0x15C7, 0x15C8, 0x15CA, 0x15CC, 0x15CE, 0x15E4, 0x15E5}},
};

static int check_ids(const struct pci_dev *dev, const char *name) {
	const char *refused = "not an Intel 82599";
	for (unsigned i = 0; i < sizeof(family) / sizeof(family[0]); i++)
		for (const uint16_t *id = family[i].ids; *id; id++)
			if (dev->vendor_id == PCI_VENDOR_ID_INTEL && dev->device_id == *id)
				refused = family[i].refused;
	if (!refused) return 0;
	return ixdp_fail(ENODEV, "%s: %04x:%04x (class %04x) is %s", name, dev->vendor_id,
			 dev->device_id, dev->device_class, refused);
}

/*
 * libpci ends the process on an error unless its callback does not return, and passes that callback
 * no argument: hence the jump, per thread. All calls that may fail are in identify().
 */
static _Thread_local jmp_buf libpci_failed;
static _Thread_local char libpci_message[256];

__attribute__((noreturn)) static void on_error(char *fmt, ...) {
	va_list args;
	va_start(args, fmt);
	vsnprintf(libpci_message, sizeof(libpci_message), fmt, args);
	va_end(args);
	longjmp(libpci_failed, 1);
}

static void on_warning(char *fmt, ...) { (void)fmt; } /* a file that is not there and need not be */

static int identify(struct sysfs_bus *b) {
	struct pci_dev *volatile dev = NULL;
	char path[300];
	int err;
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", sysfs, b->bus.name);
	b->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->dir < 0)
		return ixdp_fail(ENODEV, "%s: no such device (%s: %m); lspci lists what there is",
				 b->bus.name, path);
	snprintf(path, sizeof(path), "%s/bus/pci", sysfs);
	struct pci_access *acc = pci_alloc();
	pci_set_param(acc, "sysfs.path", path);
	acc->method = PCI_ACCESS_SYS_BUS_PCI;
	acc->error = on_error;
	acc->warning = on_warning;
	if (setjmp(libpci_failed)) {
		err = ixdp_fail(EIO, "%s: libpci: %s", b->bus.name, libpci_message);
	} else {
		pci_init(acc);
		dev = pci_get_dev(acc, b->domain, b->busno, b->slot, b->func);
		pci_fill_info(dev, PCI_FILL_IDENT | PCI_FILL_CLASS | PCI_FILL_NUMA_NODE);
		b->bus.numa_node = dev->numa_node;
		struct pci_cap *pm = pci_find_cap(dev, PCI_CAP_ID_PM, PCI_CAP_NORMAL);
		struct pci_cap *pcie = pci_find_cap(dev, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
		b->pm_cap = pm ? pm->addr : 0;
		b->pcie_cap = pcie ? pcie->addr : 0;
		err = check_ids(dev, b->bus.name);
	}
	if (dev) pci_free_dev(dev);
	pci_cleanup(acc);
	return err;
}

/*
 * Not a lock on one of the device's own files: each network namespace has its own sysfs, and a lock
 * in one is not seen in the other. The file stays: a lock that is unlinked can be held twice.
 */
static int lock(struct sysfs_bus *b) {
	char path[300];
	snprintf(path, sizeof(path), "%s/ixdp-%s.lock", locks, b->bus.name);
	b->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (b->lock < 0)
		return ixdp_fail(errno, "%s: %s: %m (a NIC needs root)", b->bus.name, path);
	if (flock(b->lock, LOCK_EX | LOCK_NB) == 0) return 0;
	return ixdp_fail(EBUSY, "%s: already open, here or in another process: fuser %s",
			 b->bus.name, path);
}

/* The first line of a file; line stays as it is if the file cannot be read. */
static void read_line(const struct sysfs_bus *b, const char *file, char *line, size_t size) {
	int fd = openat(b->dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, line, size - 1);
	if (n >= 0) line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	close(fd);
}

/* Routes need no look of their own: the kernel drops those of an interface that goes down. */
static int check_interface(const struct sysfs_bus *b, const char *name) {
	char file[100], flags[16] = "0x1"; /* up, if they cannot be read */
	struct ifaddrs *list = NULL;
	bool addressed = getifaddrs(&list) < 0; /* likewise */
	for (struct ifaddrs *a = list; a; a = a->ifa_next)
		addressed |= strcmp(a->ifa_name, name) == 0 && a->ifa_addr &&
			     a->ifa_addr->sa_family != AF_PACKET;
	freeifaddrs(list);
	snprintf(file, sizeof(file), "net/%s/flags", name);
	read_line(b, file, flags, sizeof(flags));
	bool up = strtoul(flags, NULL, 16) & IFF_UP;
	if (!up && !addressed) return 0;
	return ixdp_fail(EBUSY,
			 "%s: its interface %s %s: ip addr flush %s; ip link set %s down; or force",
			 b->bus.name, name, up ? "is up" : "has an address", name, name);
}

/* Drivers for userspace keep it even so: nobody can tell whether a program is behind them. */
static int check_unused(struct sysfs_bus *b, bool force) {
	char link[256] = "", path[300];
	glob_t found;
	int err = 0;
	if (readlinkat(b->dir, "driver", link, sizeof(link) - 1) < 0) return 0;
	snprintf(b->driver, sizeof(b->driver), "%s", basename(link));
	if (strcmp(b->driver, "vfio-pci") == 0 || strstr(b->driver, "uio"))
		return ixdp_fail(EBUSY, "%s: bound to %s, maybe for a running program: unbind it",
				 b->bus.name, b->driver);
	if (force) return 0;
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/net/*", sysfs, b->bus.name);
	if (glob(path, 0, NULL, &found) != 0)
		return ixdp_fail(EBUSY,
				 "%s: bound to %s but without an interface here: move it "
				 "back from its network namespace, or force",
				 b->bus.name, b->driver);
	for (size_t i = 0; !err && i < found.gl_pathc; i++)
		err = check_interface(b, basename(found.gl_pathv[i]));
	globfree(&found);
	return err;
}

/* Physical addresses must be what the device has to use. */
static int check_iommu(struct sysfs_bus *b) {
	char type[32] = "unknown";
	if (faccessat(b->dir, "iommu_group", F_OK, 0) < 0) return 0;
	read_line(b, "iommu_group/type", type, sizeof(type));
	if (strcmp(type, "identity") == 0) return 0;
	return ixdp_fail(ENOTSUP, "%s: IOMMU group type %s: boot with iommu=pt (no vfio yet)",
			 b->bus.name, type);
}

/* A 16-bit register of config space; all ones when the device is gone. */
static uint16_t config_read(const struct sysfs_bus *b, unsigned at) {
	uint16_t word;
	return pread(b->config, &word, sizeof(word), at) == sizeof(word) ? le16toh(word) : 0xFFFF;
}

/* A device that is gone is as changed as can be. */
static bool config_change(const struct sysfs_bus *b, unsigned at, uint16_t clear, uint16_t set) {
	uint16_t old = config_read(b, at);
	uint16_t new = htole16((old & ~clear) | set);
	return old == 0xFFFF || pwrite(b->config, &new, sizeof(new), at) == sizeof(new);
}

static int open_config(struct sysfs_bus *b) {
	b->config = openat(b->dir, "config", O_RDWR | O_CLOEXEC);
	if (b->config < 0)
		return ixdp_fail(errno, "%s: sysfs file config: %m (needs root)", b->bus.name);
	b->command = config_read(b, PCI_COMMAND);
	if (b->command != 0xFFFF) return 0;
	return ixdp_fail(ENODEV, "%s: its config space does not answer", b->bus.name);
}

/* Writes the device's name to its driver's file "bind" or "unbind". */
static bool tell_driver(const struct sysfs_bus *b, const char *file) {
	char path[300];
	snprintf(path, sizeof(path), "%s/bus/pci/drivers/%s/%s", sysfs, b->driver, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, b->bus.name, strlen(b->bus.name)) > 0;
	if (fd >= 0) close(fd);
	return ok;
}

static int unbind(struct sysfs_bus *b) {
	if (b->driver[0] && !tell_driver(b, "unbind"))
		return ixdp_fail(errno, "%s: cannot unbind it from %s: %m (a NIC needs root)",
				 b->bus.name, b->driver);
	b->taken = true;
	for (int ms = 0; faccessat(b->dir, "driver", F_OK, AT_SYMLINK_NOFOLLOW) == 0; ms++) {
		if (ms == UNBIND_MS)
			return ixdp_fail(ETIMEDOUT, "%s: %s did not let go of it within %d ms",
					 b->bus.name, b->driver, UNBIND_MS);
		clock_sleep_us(1000);
	}
	return 0;
}

/* Power, registers on, level interrupts off: there is no handler that would clear them. */
static int enable(struct sysfs_bus *b) {
	unsigned pmcsr = b->pm_cap + PCI_PM_CTRL;
	uint32_t bar[6];
	bool ok = true;
	if (b->pm_cap && config_read(b, pmcsr) & PCI_PM_CTRL_STATE_MASK) {
		/* Leaving D3hot resets the base addresses too. PME status clears by a 1. */
		ok = pread(b->config, bar, sizeof(bar), PCI_BASE_ADDRESS_0) == sizeof(bar) &&
		     config_change(b, pmcsr, PCI_PM_CTRL_STATE_MASK | PCI_PM_CTRL_PME_STATUS, 0);
		clock_sleep_us(D0_DELAY_US);
		ok = ok && pwrite(b->config, bar, sizeof(bar), PCI_BASE_ADDRESS_0) == sizeof(bar);
	}
	if (ok && config_change(b, PCI_COMMAND, 0, PCI_COMMAND_MEMORY | PCI_COMMAND_DISABLE_INTx))
		return 0;
	return ixdp_fail(EIO, "%s: config space takes no writes (kernel lockdown?)", b->bus.name);
}

static int map_registers(struct sysfs_bus *b) {
	int fd = openat(b->dir, "resource0", O_RDWR | O_CLOEXEC), err = 0;
	struct stat st = {0};
	void *regs = MAP_FAILED;
	/* Touching a page behind the end of a file would be SIGBUS. */
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size < BAR_SIZE)
		errno = ENODEV;
	else if (fd >= 0)
		regs = mmap(NULL, BAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (regs == MAP_FAILED)
		err = ixdp_fail(errno,
				"%s: cannot map %d of the %jd bytes of resource0, its BAR 0: %m "
				"(forbidden by kernel lockdown or iomem=strict?)",
				b->bus.name, BAR_SIZE, (intmax_t)st.st_size);
	else
		b->regs = regs;
	close(fd);
	return err;
}

static volatile uint32_t *sysfs_doorbell(struct ixdp_bus *bus, uint32_t reg) {
	return (volatile uint32_t *)(((struct sysfs_bus *)bus)->regs + reg);
}

static uint32_t sysfs_read32(struct ixdp_bus *bus, uint32_t reg) {
	return le32toh(*sysfs_doorbell(bus, reg));
}

static void sysfs_write32(struct ixdp_bus *bus, uint32_t reg, uint32_t value) {
	*sysfs_doorbell(bus, reg) = htole32(value);
}

/* Nothing stands between the device and physical memory: there is nothing to map, nor to unmap. */
static int sysfs_dma_map(struct ixdp_bus *bus, struct dma_mem *mem, struct iova_table *table) {
	(void)bus;
	return iova_physical(table, mem);
}

static void sysfs_dma_unmap(struct ixdp_bus *bus, struct dma_mem *mem) { (void)bus, (void)mem; }

static int sysfs_dma_enable(struct ixdp_bus *bus, bool on) {
	struct sysfs_bus *b = (struct sysfs_bus *)bus;
	if (on) dma_leftovers_clear(bus->name);
	int err = on ? dma_device_begin(bus->name) : 0;
	if (err) return err;
	if (!config_change(b, PCI_COMMAND, PCI_COMMAND_MASTER, on ? PCI_COMMAND_MASTER : 0))
		return ixdp_fail(EIO, "%s: cannot turn bus mastering %s in its command register",
				 bus->name, on ? "on" : "off");
	if (!on) dma_device_end(bus->name);
	return 0;
}

static bool sysfs_transactions_pending(struct ixdp_bus *bus) {
	struct sysfs_bus *b = (struct sysfs_bus *)bus;
	uint16_t status = b->pcie_cap ? config_read(b, b->pcie_cap + PCI_EXP_DEVSTA) : 0;
	return status != 0xFFFF && status & PCI_EXP_DEVSTA_TRPND;
}

static uint64_t sysfs_now_ns(struct ixdp_bus *bus) {
	(void)bus;
	return clock_now_ns();
}

static void sysfs_delay_us(struct ixdp_bus *bus, unsigned us) {
	(void)bus;
	clock_sleep_us(us);
}

static void sysfs_close(struct ixdp_bus *bus) {
	struct sysfs_bus *b = (struct sysfs_bus *)bus;
	if (b->regs) munmap((void *)b->regs, BAR_SIZE);
	/* Bus mastering stays off: a kernel driver turns it on itself, when it is ready for it. */
	if (b->taken && config_change(b, PCI_COMMAND, 0xFFFF, b->command & ~PCI_COMMAND_MASTER))
		dma_device_end(bus->name);
	if (b->taken && b->driver[0] && !tell_driver(b, "bind"))
		ixdp_log(IXDP_LOG_WARNING, "%s: cannot bind it to %s again: %m", bus->name,
			 b->driver);
	close(b->config);
	close(b->dir);
	close(b->lock);
	free(b);
}

/* clang-format off */
static const struct ixdp_bus_ops sysfs_ops = {
	.read32 = sysfs_read32, .write32 = sysfs_write32, .doorbell = sysfs_doorbell,
	.dma_map = sysfs_dma_map, .dma_unmap = sysfs_dma_unmap,
	.dma_enable = sysfs_dma_enable, .transactions_pending = sysfs_transactions_pending,
	.now_ns = sysfs_now_ns, .delay_us = sysfs_delay_us, .close = sysfs_close,
};
/* clang-format on */

/* Whoever has the device does not notice anything of an open that is refused: checks come first. */
int bus_open(struct ixdp_bus **bus, const char *name, bool force) {
	if (!name) return ixdp_fail(EINVAL, "no port name given");
	if (strncmp(name, "soft:", 5) == 0) return bus_soft_open(bus, name + 5);
	struct sysfs_bus *b = calloc(1, sizeof(*b));
	int err;
	if (!b) return ixdp_fail(ENOMEM, "%s: out of memory", name);
	b->bus.ops = &sysfs_ops;
	b->dir = b->lock = b->config = -1;
	if ((err = parse_name(b, name)) || (err = identify(b)) || (err = lock(b)) ||
	    (err = check_unused(b, force)) || (err = check_iommu(b)) || (err = open_config(b)) ||
	    (err = unbind(b)) || (err = enable(b)) || (err = map_registers(b)))
		sysfs_close(&b->bus);
	else
		*bus = &b->bus;
	return err;
}
