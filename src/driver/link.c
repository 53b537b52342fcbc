/* SPDX-License-Identifier: BSD-3-Clause */
/* Link, section 3.7. */
#include "port.h"

#include <errno.h>

/*
 * After a reset the NIC brings its link up by itself, as its EEPROM says (section 4.6.4). CHOICE:
 * AUTOC is left to the firmware and the other port: it would need the semaphores of 10.5.4.
 */
int ixdp_link_get(struct ixdp_port *port, struct ixdp_link *link) {
	static const unsigned mbps[] = {
	    [LINKS_SPEED_100M] = 100, [LINKS_SPEED_1G] = 1000, [LINKS_SPEED_10G] = 10000};
	uint32_t links = reg_read(port, REG_LINKS);
	if (links == UINT32_MAX && reg_read(port, REG_STATUS) == UINT32_MAX)
		return ixdp_fail(ENODEV, "%s: device has gone: LINKS reads 0xffffffff",
				 port->bus->name);
	link->up = links & LINKS_UP;
	__atomic_store_n(&port->no_link, !link->up, __ATOMIC_RELAXED);
	link->paused = reg_read(port, REG_TFCS) & TFCS_TC_XOFF;
	link->mbps = link->up ? mbps[FIELD_GET(LINKS_SPEED, links)] : 0;
	return 0;
}

int ixdp_link_wait(struct ixdp_port *port, unsigned timeout_ms, struct ixdp_link *link) {
	struct ixdp_bus *bus = port->bus;
	uint64_t deadline = bus->ops->now_ns(bus) + timeout_ms * UINT64_C(1000000);
	for (;;) {
		int err = ixdp_link_get(port, link);
		if (err || link->up) return err;
		if (bus->ops->now_ns(bus) >= deadline)
			return ixdp_fail(ETIMEDOUT,
					 "%s: LINKS.UP (register 0x%05x) is still clear after %u "
					 "ms: no link; cable, module, or peer?",
					 bus->name, REG_LINKS, timeout_ms);
		bus->ops->delay_us(bus, 1000);
	}
}

int ixdp_link_changed(struct ixdp_port *port, struct ixdp_link *link) {
	bool changed = false, latched = true;
	/* The cause latches without interrupts too (8.2.3.5.1); behind it the link is newer. */
	for (unsigned i = 0; latched && i < 3; i++) {
		int err = ixdp_link_get(port, link);
		if (err) return err;
		latched = reg_read(port, REG_EICR) & EICR_LSC;
		changed |= latched;
	}
	changed |= link->up != port->link_up;
	port->link_up = link->up;
	return changed;
}
