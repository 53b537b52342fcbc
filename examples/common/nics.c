/* SPDX-License-Identifier: BSD-3-Clause */
#include "nics.h"

#include "sysfs.h"

#include <pci/pci.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { VENDOR_INTEL = 0x8086 };

/* Ids that the library takes, and those that it refuses by name; a test compares with it. */
static const struct {
	const char *refused;
	uint16_t ids[20]; /* 0 ends them */
} families[] = {
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

static const char *why_refused(unsigned vendor, unsigned device) {
	for (size_t i = 0; vendor == VENDOR_INTEL && i < COUNT(families); i++)
		for (const uint16_t *id = families[i].ids; *id; id++)
			if (device == *id) return families[i].refused;
	return "not an Intel 82599";
}

/* libpci ends the process on an error unless its callback does not return. */
static jmp_buf libpci_failed;
static char libpci_message[160];

__attribute__((noreturn)) static void on_error(char *fmt, ...) {
	va_list args;

	va_start(args, fmt);
	vsnprintf(libpci_message, sizeof(libpci_message), fmt, args);
	va_end(args);
	longjmp(libpci_failed, 1);
}

static void on_warning(char *fmt, ...) { (void)fmt; }

static void add(struct nics *nics, struct pci_access *acc, struct pci_dev *dev) {
	struct nic *list = realloc(nics->list, (nics->n + 1) * sizeof(*list));

	if (!list) acc->error("out of memory");
	nics->list = list;
	pci_fill_info(dev, PCI_FILL_IDENT | PCI_FILL_CLASS | PCI_FILL_NUMA_NODE);
	struct nic *nic = &nics->list[nics->n++];

	*nic = (struct nic){
	    .vendor = dev->vendor_id,
	    .device = dev->device_id,
	    .class = dev->device_class,
	    .numa_node = dev->numa_node,
	    .refused = why_refused(dev->vendor_id, dev->device_id),
	};
	snprintf(nic->address, sizeof(nic->address), "%04x:%02x:%02x.%x", dev->domain, dev->bus,
		 dev->dev, dev->func);
	pci_lookup_name(acc, nic->name, sizeof(nic->name), PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE,
			dev->vendor_id, dev->device_id);
}

static int by_address(const void *a, const void *b) {
	return strcmp(((const struct nic *)a)->address, ((const struct nic *)b)->address);
}

int nics_find(struct nics *nics, const char *sysfs) {
	struct pci_access *acc = pci_alloc();
	char path[300];

	*nics = (struct nics){0};
	snprintf(path, sizeof(path), "%s/bus/pci", sysfs);
	acc->method = PCI_ACCESS_SYS_BUS_PCI;
	acc->error = on_error;
	acc->warning = on_warning;
	if (setjmp(libpci_failed)) {
		snprintf(nics->error, sizeof(nics->error), "libpci: %s", libpci_message);
	} else {
		pci_set_param(acc, "sysfs.path", path);
		pci_init(acc);
		pci_scan_bus(acc);
		for (struct pci_dev *dev = acc->devices; dev; dev = dev->next)
			add(nics, acc, dev);
		if (nics->n) qsort(nics->list, nics->n, sizeof(*nics->list), by_address);
	}
	pci_cleanup(acc);
	return *nics->error ? -1 : 0;
}

void nics_free(struct nics *nics) { free(nics->list); }

const struct nic *nics_get(const struct nics *nics, const char *address) {
	unsigned domain = 0, bus, slot, function;
	char canonical[48], rest;

	if (sscanf(address, "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &rest) != 4) {
		domain = 0;
		if (sscanf(address, "%x:%x.%x%c", &bus, &slot, &function, &rest) != 3) return NULL;
	}
	snprintf(canonical, sizeof(canonical), "%04x:%02x:%02x.%x", domain, bus, slot, function);
	for (unsigned i = 0; i < nics->n; i++)
		if (strcmp(nics->list[i].address, canonical) == 0) return &nics->list[i];
	return NULL;
}

bool nic_iommu_look(char *type, unsigned size, const struct nic *nic, const char *sysfs) {
	char group[32];

	snprintf(type, size, "none");
	if (!sysfs_link(group, sizeof(group), "%s/bus/pci/devices/%s/iommu_group", sysfs,
			nic->address))
		return true;
	if (!sysfs_line(type, size, "%s/bus/pci/devices/%s/iommu_group/type", sysfs, nic->address))
		snprintf(type, size, "unknown");
	return strcmp(type, "identity") == 0;
}
