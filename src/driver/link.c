/* SPDX-License-Identifier: BSD-3-Clause */
/* Link, sections 4.6.4 and 3.7: started once, then watched. */
#include "port.h"

#include <errno.h>

/* Releases what semaphore_take() took, in reverse order. */
static void semaphore_give(struct ixdp_port *port) {
	reg_clear(port, REG_SWSM, SWSM_SWESMBI | SWSM_SMBI);
}

/*
 * The right to touch SW_FW_SYNC, section 10.5.4: first among drivers (SMBI, which a read sets, so
 * whoever reads 0 has it), then between driver and firmware (SWESMBI, which sticks if it is ours).
 */
static int semaphore_take(struct ixdp_port *port) {
	int err = reg_wait(port, REG_SWSM, SWSM_SMBI, false, 100000, "SWSM.SMBI");

	if (err == -ETIMEDOUT) {
		/* Nobody holds it that long: its owner has died with it. */
		ixdp_log(IXDP_LOG_WARNING, "%s; taking it over", ixdp_error());
		reg_clear(port, REG_SWSM, SWSM_SMBI);
		err = reg_wait(port, REG_SWSM, SWSM_SMBI, false, 1000, "SWSM.SMBI");
	}
	if (err)
		return err;
	reg_set(port, REG_SWSM, SWSM_SWESMBI);
	err = reg_wait(port, REG_SWSM, SWSM_SWESMBI, true, 100000, "SWSM.SWESMBI");
	if (err)
		semaphore_give(port);
	return err;
}

/*
 * The MAC's own registers are shared with firmware and the other port: bits of SW_FW_SYNC say who
 * has them, section 8.2.3.4.11.
 */
static int mac_lock(struct ixdp_port *port) {
	for (unsigned tries = 0; tries < 200; tries++) {
		int err = semaphore_take(port);

		if (err)
			return err;

		uint32_t held = reg_read(port, REG_SW_FW_SYNC) &
				(SW_FW_SYNC_SW_MAC_CSR | SW_FW_SYNC_FW_MAC_CSR);

		if (!held)
			reg_set(port, REG_SW_FW_SYNC, SW_FW_SYNC_SW_MAC_CSR);
		semaphore_give(port);
		if (!held)
			return 0;
		delay_us(port, 5000);
	}
	return ixdp_fail(ETIMEDOUT,
			 "%s: SW_FW_SYNC.MAC_CSR (register 0x%05x) is held by firmware or another "
			 "driver for 1 s",
			 port->bus->name, REG_SW_FW_SYNC);
}

static int mac_unlock(struct ixdp_port *port) {
	int err = semaphore_take(port);

	if (err)
		return err;
	reg_clear(port, REG_SW_FW_SYNC, SW_FW_SYNC_SW_MAC_CSR);
	semaphore_give(port);
	return 0;
}

/*
 * CHOICE: the kind of link (AUTOC.LMS) stays what the EEPROM says, which knows the board: SFI,
 * KX4, KR ... Only the negotiation is started anew. The link comes up later, by itself.
 */
int link_start(struct ixdp_port *port) {
	int err = mac_lock(port);

	if (err)
		return err;
	reg_set(port, REG_AUTOC, AUTOC_RESTART_AN);
	return mac_unlock(port);
}

int ixdp_link_get(struct ixdp_port *port, struct ixdp_link *link) {
	static const unsigned mbps[] = {
	    [LINKS_SPEED_100M] = 100, [LINKS_SPEED_1G] = 1000, [LINKS_SPEED_10G] = 10000};
	uint32_t links = reg_read(port, REG_LINKS);

	if (links == UINT32_MAX && reg_read(port, REG_STATUS) == UINT32_MAX)
		return ixdp_fail(ENODEV, "%s: device has gone: LINKS reads 0xffffffff",
				 port->bus->name);
	link->up = links & LINKS_UP;
	link->mbps = link->up ? mbps[FIELD_GET(LINKS_SPEED, links)] : 0;
	return 0;
}

int ixdp_link_wait(struct ixdp_port *port, unsigned timeout_ms, struct ixdp_link *link) {
	struct ixdp_bus *bus = port->bus;
	uint64_t deadline = bus->ops->now_ns(bus) + timeout_ms * UINT64_C(1000000);

	for (;;) {
		int err = ixdp_link_get(port, link);

		if (err || link->up)
			return err;
		if (bus->ops->now_ns(bus) >= deadline)
			return ixdp_fail(ETIMEDOUT,
					 "%s: LINKS.UP (register 0x%05x) is still clear after %u "
					 "ms: no link; cable, module, or peer?",
					 bus->name, REG_LINKS, timeout_ms);
		bus->ops->delay_us(bus, 1000);
	}
}
