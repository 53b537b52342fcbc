/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"
#include "pci.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The kernel unbinds before the write returns; should it not, we wait so many milliseconds. */
enum { UNBIND_MS = 2000 };

/* Reads a file of one short line; true unless it cannot be read. */
static bool read_line(int dir, const char *file, char *line, size_t size) {
	int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, size - 1);

	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return n >= 0;
}

static int write_line(int dir, const char *file, const char *line) {
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, line, strlen(line)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

/*
 * Not a lock on one of the device's own files: each network namespace has its own sysfs, and a lock
 * in one is not seen in the other. The file stays: a lock that is unlinked can be held twice.
 */
int pci_lock(struct pci_device *dev, const char *folder) {
	char path[300];

	snprintf(path, sizeof(path), "%s/ixdp-%s.lock", folder, dev->name);
	dev->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (dev->lock < 0)
		return ixdp_fail(errno, "%s: cannot open %s: %m (a NIC needs root)", dev->name,
				 path);
	if (flock(dev->lock, LOCK_EX | LOCK_NB) < 0)
		return ixdp_fail(EBUSY, "%s: already open, here or in another process: fuser %s",
				 dev->name, path);
	return 0;
}

/*
 * What keeps an interface from being taken away, or NULL. Routes need no look of their own: the
 * kernel drops those of an interface that goes down, and accepts none until it is up.
 */
static const char *interface_use(const struct pci_device *dev, const char *interface) {
	char path[300];
	char flags[16];
	struct ifaddrs *addresses;
	const char *use = NULL;

	snprintf(path, sizeof(path), "net/%s/flags", interface);
	if (!read_line(dev->dir, path, flags, sizeof(flags)) || strtoul(flags, NULL, 16) & IFF_UP)
		return "is up";
	if (getifaddrs(&addresses) < 0)
		return "may have addresses, which cannot be read";
	for (struct ifaddrs *a = addresses; a; a = a->ifa_next)
		if (a->ifa_addr && strcmp(a->ifa_name, interface) == 0 &&
		    (a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6))
			use = "has an address";
	freeifaddrs(addresses);
	return use;
}

static int not_dot(const struct dirent *entry) {
	return entry->d_name[0] != '.';
}

static int check_interfaces(const struct pci_device *dev) {
	struct dirent **list = NULL;
	int n = scandirat(dev->dir, "net", &list, not_dot, alphasort);
	int err = 0;

	if (n <= 0)
		err = ixdp_fail(EBUSY,
				"%s: bound to %s but without an interface here, which may be in "
				"another network namespace: move it back or force",
				dev->name, dev->driver);
	for (int i = 0; i < n; i++) {
		const char *use = interface_use(dev, list[i]->d_name);

		if (use && !err)
			err = ixdp_fail(EBUSY,
					"%s: its interface %s %s: ip address flush dev %s; ip link "
					"set %s down; or force",
					dev->name, list[i]->d_name, use, list[i]->d_name,
					list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return err;
}

int pci_check_unused(struct pci_device *dev, bool force) {
	char link[256] = "";
	const char *name;

	if (readlinkat(dev->dir, "driver", link, sizeof(link) - 1) < 0)
		return 0;
	name = strrchr(link, '/');
	name = name ? name + 1 : link;
	memcpy(dev->driver, name, strnlen(name, sizeof(dev->driver) - 1));
	if (strcmp(dev->driver, "vfio-pci") == 0 || strstr(dev->driver, "uio"))
		return ixdp_fail(EBUSY,
				 "%s: bound to %s, through which another program may be using it: "
				 "echo %s > /sys/bus/pci/drivers/%s/unbind",
				 dev->name, dev->driver, dev->name, dev->driver);
	return force ? 0 : check_interfaces(dev);
}

int pci_check_iommu(struct pci_device *dev) {
	char type[32];

	if (faccessat(dev->dir, "iommu_group", F_OK, 0) < 0)
		return 0;
	if (!read_line(dev->dir, "iommu_group/type", type, sizeof(type)))
		snprintf(type, sizeof(type), "unknown");
	if (strcmp(type, "identity") == 0)
		return 0;
	return ixdp_fail(ENOTSUP,
			 "%s: an IOMMU translates its addresses (group type %s), which takes vfio, "
			 "not supported yet; or boot with iommu=pt",
			 dev->name, type);
}

int pci_unbind(struct pci_device *dev) {
	const struct timespec ms = {.tv_nsec = 1000000};
	char link[1];
	int err;

	if (!dev->driver[0])
		return 0;
	dev->driver_dir = openat(dev->dir, "driver", O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = dev->driver_dir < 0 ? -errno : write_line(dev->driver_dir, "unbind", dev->name);
	if (err) {
		dev->driver[0] = '\0';
		return ixdp_fail(-err,
				 "%s: cannot unbind it from its driver: %s (a NIC needs root)",
				 dev->name, strerror(-err));
	}
	for (int i = 0; i < UNBIND_MS; i++) {
		if (readlinkat(dev->dir, "driver", link, sizeof(link)) < 0)
			return 0;
		nanosleep(&ms, NULL);
	}
	return ixdp_fail(ETIMEDOUT, "%s: %s did not let go of it within %d ms", dev->name,
			 dev->driver, UNBIND_MS);
}

void pci_release(struct pci_device *dev) {
	bool was_bound = dev->driver_dir >= 0 && dev->driver[0];
	int err = was_bound ? write_line(dev->driver_dir, "bind", dev->name) : 0;

	if (err)
		ixdp_log(IXDP_LOG_WARNING,
			 "%s: cannot bind it to %s again: %s (echo %s > "
			 "/sys/bus/pci/drivers/%s/bind)",
			 dev->name, dev->driver, strerror(-err), dev->name, dev->driver);
	if (dev->driver_dir >= 0)
		close(dev->driver_dir);
	if (dev->dir >= 0)
		close(dev->dir);
	if (dev->lock >= 0)
		close(dev->lock);
}
