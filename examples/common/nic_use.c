/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has a NIC: its kernel driver, its interfaces, another program with ixdp. */
#include "nics.h"
#include "sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

/* Each port holds a lock while it is open. */
static bool is_locked(const char *path) {
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;

	if (fd >= 0) close(fd);
	return locked;
}

static bool has_address(const char *interface) {
	struct ifaddrs *addresses;
	bool found = false;

	if (getifaddrs(&addresses) < 0) return false;
	for (const struct ifaddrs *a = addresses; a; a = a->ifa_next)
		if (a->ifa_addr && strcmp(a->ifa_name, interface) == 0 &&
		    (a->ifa_addr->sa_family == AF_INET || a->ifa_addr->sa_family == AF_INET6))
			found = true;
	freeifaddrs(addresses);
	return found;
}

/* Whether the interfaces of the NIC let it go; use says why not. Returns how many there are. */
static unsigned look_at_interfaces(struct nic_use *use, const char *folder) {
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		char flags[16];

		if (name[0] == '.') continue;
		n++;
		const bool up = !sysfs_line(flags, sizeof(flags), "%s/%s/flags", folder, name) ||
				strtoul(flags, NULL, 16) & IFF_UP;

		if (!up && !has_address(name)) continue;
		use->free = false;
		snprintf(use->text, sizeof(use->text), "its interface %.15s %s", name,
			 up ? "is up" : "has an address");
		snprintf(
		    use->fix, sizeof(use->fix),
		    "ip address flush dev %.15s; ip link set %.15s down; or --force, which takes "
		    "the interface away",
		    name, name);
	}
	if (dir) closedir(dir);
	return n;
}

static void __attribute__((format(printf, 3, 4)))
in_use(struct nic_use *use, const char *text, const char *fix, ...) {
	va_list args;

	use->free = false;
	snprintf(use->text, sizeof(use->text), "%s", text);
	va_start(args, fix);
	vsnprintf(use->fix, sizeof(use->fix), fix, args);
	va_end(args);
}

void nic_use_look(struct nic_use *use, const struct nic *nic, const char *sysfs,
		  const char *locks) {
	char driver[64], text[160], path[PATH_MAX];

	*use = (struct nic_use){.free = true};
	snprintf(path, sizeof(path), "%s/ixdp-%s.lock", locks, nic->address);
	if (is_locked(path)) {
		in_use(use, "another program has it open with ixdp", "fuser %s says which; end it",
		       path);
		return;
	}
	if (!sysfs_link(driver, sizeof(driver), "%s/bus/pci/devices/%s/driver", sysfs,
			nic->address)) {
		snprintf(use->text, sizeof(use->text), "free: no driver has it");
		return;
	}
	if (strcmp(driver, "vfio-pci") == 0 || strstr(driver, "uio")) {
		snprintf(text, sizeof(text),
			 "bound to %s, through which another program may be using it", driver);
		in_use(use, text, "echo %s > /sys/bus/pci/drivers/%s/unbind", nic->address, driver);
		return;
	}
	snprintf(use->text, sizeof(use->text),
		 "bound to %s, which does not use it: ixdp takes it over and gives it back",
		 driver);
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/net", sysfs, nic->address);
	if (!look_at_interfaces(use, path)) {
		snprintf(text, sizeof(text), "bound to %s but without an interface here", driver);
		in_use(use, text,
		       "move it back from the network namespace where it may be, or --force");
	}
}
