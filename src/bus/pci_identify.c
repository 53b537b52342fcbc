/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"
#include "pci.h"

#include <errno.h>
#include <fcntl.h>
#include <pci/pci.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { VENDOR_INTEL = 0x8086 };

/* Members of the 82599 family that behave alike. */
static const uint16_t supported[] = {
    0x10F7, 0x10F8, 0x10F9, 0x10FB, 0x10FC, 0x1507, 0x1514, 0x1517,
    0x1529, 0x152A, 0x154A, 0x154D, 0x154F, 0x1557, 0x1558,
};

/* Relatives that Linux drives by the same driver, so that somebody will try. 0 ends a list. */
static const struct {
	const char *what;
	uint16_t ids[20];
} refused[] = {
    {"the virtual function of an 82599: not supported", {0x10ED, 0x152E}},
    {"a copper 82599, whose external PHY is not supported", {0x151C}},
    {"an X540, not an 82599", {0x1515, 0x1528, 0x1530, 0x1560}},
    {"an X550, not an 82599", {0x1563, 0x1564, 0x1565, 0x15D1}},
    {"an X550EM, not an 82599",
     {0x15A8, 0x15AA, 0x15AB, 0x15AC, 0x15AD, 0x15AE, 0x15B0, 0x15C2, 0x15C3, 0x15C4, 0x15C5,
      0x15C6, 0x15C7, 0x15C8, 0x15CA, 0x15CC, 0x15CE, 0x15E4, 0x15E5}},
};

static int check_ids(const struct pci_device *dev, unsigned vendor, unsigned device,
		     unsigned class) {
	const char *what = "not an Intel 82599";

	for (unsigned i = 0; vendor == VENDOR_INTEL && i < COUNT(supported); i++)
		if (device == supported[i])
			return 0;
	for (unsigned i = 0; vendor == VENDOR_INTEL && i < COUNT(refused); i++)
		for (const uint16_t *id = refused[i].ids; *id; id++)
			if (device == *id)
				what = refused[i].what;
	return ixdp_fail(ENODEV, "%s: %04x:%04x (class %04x) is %s", dev->name, vendor, device,
			 class, what);
}

/*
 * libpci ends the process on an error unless its callback does not return, and passes that callback
 * no argument: hence the jump, per thread. All calls that may fail are in ask_libpci().
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

/* A file that is not there and need not be. */
static void on_warning(char *fmt, ...) {
	(void)fmt;
}

static int ask_libpci(struct pci_device *dev, char *bus_folder) {
	struct pci_access *acc = pci_alloc();
	struct pci_dev *volatile found = NULL;
	struct pci_cap *cap;
	int err;

	acc->method = PCI_ACCESS_SYS_BUS_PCI;
	acc->error = on_error;
	acc->warning = on_warning;
	if (setjmp(libpci_failed)) {
		err = ixdp_fail(EIO, "%s: libpci: %s", dev->name, libpci_message);
		goto out;
	}
	pci_set_param(acc, "sysfs.path", bus_folder);
	pci_init(acc);
	found = pci_get_dev(acc, dev->domain, dev->bus, dev->slot, dev->function);
	pci_fill_info(found, PCI_FILL_IDENT | PCI_FILL_CLASS | PCI_FILL_NUMA_NODE | PCI_FILL_CAPS);
	dev->device_id = found->device_id;
	dev->numa_node = found->numa_node;
	cap = pci_find_cap(found, PCI_CAP_ID_PM, PCI_CAP_NORMAL);
	dev->pm_cap = cap ? cap->addr : 0;
	cap = pci_find_cap(found, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
	dev->pcie_cap = cap ? cap->addr : 0;
	err = check_ids(dev, found->vendor_id, found->device_id, found->device_class);
out:
	if (found)
		pci_free_dev(found);
	pci_cleanup(acc);
	return err;
}

int pci_identify(struct pci_device *dev, const char *sysfs) {
	char path[400];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", sysfs, dev->name);
	dev->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dev->dir < 0)
		return ixdp_fail(ENODEV, "%s: no such device (%s: %m); lspci lists what there is",
				 dev->name, path);
	snprintf(path, sizeof(path), "%s/bus/pci", sysfs);
	return ask_libpci(dev, path);
}
