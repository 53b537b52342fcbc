/* SPDX-License-Identifier: BSD-3-Clause */
#include "bus.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

int bus_open(struct ixdp_bus **bus, const char *name, bool force) {
	if (!name)
		return ixdp_fail(EINVAL, "no port name given");
	if (strncmp(name, "soft:", 5) == 0)
		return bus_soft_open(bus, name + 5);
	return bus_sysfs_open(bus, name, force);
}
