/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PCI device in sysfs, from its address to the moment when nobody else uses it. The sysfs bus
 * calls these in the order in which they stand here; up to pci_unbind() nothing is changed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pci_device {
	char name[24]; /* canonical: "0000:03:00.0" */
	unsigned domain, bus, slot, function;
	int dir; /* its folder in sysfs */
	uint16_t device_id;
	int numa_node;		   /* -1: unknown */
	unsigned pm_cap, pcie_cap; /* where in config space; 0: not there */
	int lock;		   /* held while the device is ours */
	char driver[64];	   /* the kernel driver that had it; empty: none */
	int driver_dir;		   /* that driver's folder in sysfs, once it was unbound */
};

/*
 * Reads an address, "[domain:]bus:slot.function" in hexadecimal, leading zeros optional. Sets up
 * dev so that pci_release() may follow. Returns 0 or -EINVAL with ixdp_error().
 */
int pci_name_parse(struct pci_device *dev, const char *text);

/*
 * Finds the device in the sysfs mounted at sysfs and asks libpci what it is. Returns 0, or with
 * ixdp_error(): -ENODEV there is none, or it is not an 82599 that the driver knows.
 */
int pci_identify(struct pci_device *dev, const char *sysfs);

/* Keeps other ixdp ports off, by a lock file in folder: 0, -EBUSY, or -errno, with ixdp_error(). */
int pci_lock(struct pci_device *dev, const char *folder);

/*
 * Looks who uses the device. 0 or -EBUSY with ixdp_error(). force: take it from a network driver
 * even so; other drivers keep it, as nobody can tell whether a program uses it through them.
 */
int pci_check_unused(struct pci_device *dev, bool force);

/* Physical addresses must be what the device has to use: 0, or -ENOTSUP with ixdp_error(). */
int pci_check_iommu(struct pci_device *dev);

/* Takes it from its kernel driver, if it has one. 0 or -errno with ixdp_error(). */
int pci_unbind(struct pci_device *dev);

/* Gives it back to that driver, and others may lock it. */
void pci_release(struct pci_device *dev);
