/* SPDX-License-Identifier: BSD-3-Clause */
/* A NIC on a PCI bus, reached through the files that sysfs has for it. Needs root. */
#include "base/error.h"
#include "bus.h"
#include "pci.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	BAR_SIZE = 128 * 1024, /* of BAR 0: all registers, section 9.3 */
	D0_DELAY_US = 10000,   /* from D3hot to D0: PCI Power Management specification */
};

struct sysfs_bus {
	struct ixdp_bus bus;
	struct pci_device dev;
	int config;		/* config space; -1: not open */
	uint16_t command;	/* command register as found, before the kernel driver left */
	bool enabled;		/* it was changed */
	bool dma;		/* bus master is on, by us */
	volatile uint8_t *regs; /* BAR 0 */
};

static char sysfs_root[256]; /* empty: the real one */

void bus_sysfs_set_root(const char *path) {
	snprintf(sysfs_root, sizeof(sysfs_root), "%s", path ? path : "");
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

static int sysfs_dma_map(struct ixdp_bus *bus, struct dma_mem *mem, struct iova_table *table) {
	(void)bus;
	return iova_physical(table, mem);
}

/* Nothing stands between the device and physical memory. */
static void sysfs_dma_unmap(struct ixdp_bus *bus, struct dma_mem *mem) {
	(void)bus, (void)mem;
}

/* Reads a 16-bit register of config space. 0 or -errno, -ENODEV when the device is gone. */
static int config_read(struct sysfs_bus *b, unsigned offset, uint16_t *value) {
	if (pread(b->config, value, sizeof(*value), offset) != sizeof(*value))
		return -EIO;
	*value = le16toh(*value);
	return *value == 0xFFFF ? -ENODEV : 0;
}

static int config_change(struct sysfs_bus *b, unsigned offset, uint16_t clear, uint16_t set) {
	uint16_t value;
	int err = config_read(b, offset, &value);

	if (err)
		return err;
	value = htole16((value & ~clear) | set);
	return pwrite(b->config, &value, sizeof(value), offset) == sizeof(value) ? 0 : -EIO;
}

static int sysfs_dma_enable(struct ixdp_bus *bus, bool on) {
	struct sysfs_bus *b = (struct sysfs_bus *)bus;
	int err;

	if (on) {
		dma_leftovers_clear(bus->name);
		err = dma_device_begin(bus->name);
		if (err)
			return err;
		b->dma = true;
	}
	err = config_change(b, PCI_COMMAND, PCI_COMMAND_MASTER, on ? PCI_COMMAND_MASTER : 0);
	/* A device that is gone writes no more. Otherwise the mark stays until a reset. */
	if (err && (on || err != -ENODEV))
		return ixdp_fail(-err, "%s: cannot turn bus mastering %s in its command register",
				 bus->name, on ? "on" : "off");
	if (!on)
		dma_device_end(bus->name);
	b->dma = on;
	return 0;
}

static bool sysfs_transactions_pending(struct ixdp_bus *bus) {
	struct sysfs_bus *b = (struct sysfs_bus *)bus;
	uint16_t status;

	return b->dev.pcie_cap && config_read(b, b->dev.pcie_cap + PCI_EXP_DEVSTA, &status) == 0 &&
	       status & PCI_EXP_DEVSTA_TRPND;
}

static uint64_t sysfs_now_ns(struct ixdp_bus *bus) {
	struct timespec now;

	(void)bus;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void sysfs_delay_us(struct ixdp_bus *bus, unsigned us) {
	uint64_t end = sysfs_now_ns(bus) + us * UINT64_C(1000);
	struct timespec at = {.tv_sec = (time_t)(end / 1000000000),
			      .tv_nsec = (long)(end % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void sysfs_close(struct ixdp_bus *bus) {
	struct sysfs_bus *b = (struct sysfs_bus *)bus;

	if (b->regs)
		munmap((void *)b->regs, BAR_SIZE);
	if (b->dma && sysfs_dma_enable(bus, false) < 0)
		ixdp_log(IXDP_LOG_ERROR, "%s", ixdp_error());
	/* Bus mastering stays off: a kernel driver turns it on itself, when it is ready for it. */
	if (b->enabled && config_change(b, PCI_COMMAND, 0xFFFF, b->command & ~PCI_COMMAND_MASTER))
		ixdp_log(IXDP_LOG_WARNING, "%s: cannot restore its command register", bus->name);
	if (b->config >= 0)
		close(b->config);
	pci_release(&b->dev);
	free(b);
}

/* Opens config space, and remembers the command register while the kernel driver is still there. */
static int open_config(struct sysfs_bus *b) {
	b->config = openat(b->dev.dir, "config", O_RDWR | O_CLOEXEC);
	if (b->config < 0)
		return ixdp_fail(errno, "%s: cannot open its sysfs file config: %m (needs root)",
				 b->dev.name);
	if (config_read(b, PCI_COMMAND, &b->command) < 0)
		return ixdp_fail(ENODEV, "%s: its config space does not answer", b->dev.name);
	return 0;
}

/* Power, registers on, level interrupts off: there is no handler that would clear them. */
static int enable(struct sysfs_bus *b) {
	const uint16_t on = PCI_COMMAND_MEMORY | PCI_COMMAND_INTX_DISABLE;
	unsigned pmcsr = b->dev.pm_cap + PCI_PM_CTRL;
	uint32_t bars[6];
	uint16_t state = 0;
	int err = b->dev.pm_cap ? config_read(b, pmcsr, &state) : 0;

	b->enabled = true;
	if (!err && state & PCI_PM_CTRL_STATE_MASK) {
		/* Going from D3hot to D0 resets this device, its base addresses included. */
		if (pread(b->config, bars, sizeof(bars), PCI_BASE_ADDRESS_0) != sizeof(bars))
			err = -EIO;
		else
			/* PME status is cleared by writing 1. */
			err = config_change(b, pmcsr,
					    PCI_PM_CTRL_STATE_MASK | PCI_PM_CTRL_PME_STATUS, 0);
		sysfs_delay_us(&b->bus, D0_DELAY_US);
		if (!err && pwrite(b->config, bars, sizeof(bars), PCI_BASE_ADDRESS_0) < 0)
			err = -errno;
	}
	if (!err)
		err = config_change(b, PCI_COMMAND, 0, on);
	if (err)
		return ixdp_fail(-err, "%s: cannot power up and enable it in config space: %s",
				 b->dev.name, strerror(-err));
	return 0;
}

static int map_registers(struct sysfs_bus *b) {
	int fd = openat(b->dev.dir, "resource0", O_RDWR | O_CLOEXEC);
	struct stat st;
	void *regs;
	int err;

	if (fd < 0)
		return ixdp_fail(errno, "%s: cannot open its BAR 0, sysfs file resource0: %m",
				 b->dev.name);
	/* Touching a page behind the end of a file would be SIGBUS. */
	if (fstat(fd, &st) == 0 && st.st_size < BAR_SIZE) {
		close(fd);
		return ixdp_fail(ENODEV,
				 "%s: its BAR 0, sysfs file resource0, has %jd bytes, not %d",
				 b->dev.name, (intmax_t)st.st_size, BAR_SIZE);
	}
	regs = mmap(NULL, BAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = errno;
	close(fd);
	if (regs == MAP_FAILED)
		return ixdp_fail(err,
				 "%s: cannot map its BAR 0, sysfs file resource0: %s (does kernel "
				 "lockdown or iomem=strict forbid it?)",
				 b->dev.name, strerror(err));
	b->regs = regs;
	return 0;
}

static const struct ixdp_bus_ops sysfs_ops = {
    .read32 = sysfs_read32,
    .write32 = sysfs_write32,
    .doorbell = sysfs_doorbell,
    .dma_map = sysfs_dma_map,
    .dma_unmap = sysfs_dma_unmap,
    .dma_enable = sysfs_dma_enable,
    .transactions_pending = sysfs_transactions_pending,
    .now_ns = sysfs_now_ns,
    .delay_us = sysfs_delay_us,
    .close = sysfs_close,
};

/* Whoever has the device does not notice anything of an open that is refused: checks come first. */
static int take_over(struct sysfs_bus *b, const char *name, bool force) {
	const char *sysfs = sysfs_root[0] ? sysfs_root : "/sys";
	const char *locks = sysfs_root[0] ? sysfs_root : "/run";
	int err;

	if ((err = pci_name_parse(&b->dev, name)) || (err = pci_identify(&b->dev, sysfs)) ||
	    (err = pci_lock(&b->dev, locks)) || (err = pci_check_unused(&b->dev, force)) ||
	    (err = pci_check_iommu(&b->dev)) || (err = open_config(b)) ||
	    (err = pci_unbind(&b->dev)) || (err = enable(b)))
		return err;
	return map_registers(b);
}

int bus_sysfs_open(struct ixdp_bus **bus, const char *name, bool force) {
	struct sysfs_bus *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return ixdp_fail(ENOMEM, "%s: out of memory", name);
	b->config = -1;
	err = take_over(b, name, force);
	b->bus.ops = &sysfs_ops;
	b->bus.device_id = b->dev.device_id;
	b->bus.numa_node = b->dev.numa_node;
	memcpy(b->bus.name, b->dev.name, sizeof(b->dev.name));
	if (err)
		sysfs_close(&b->bus);
	else
		*bus = &b->bus;
	return err;
}
