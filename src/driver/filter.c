/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames a port takes, sections 7.1.1 and 8.2.3.7: addresses, groups, VLANs. */
#include "port.h"

#include <errno.h>
#include <string.h>

static const uint8_t zero[6];

static int check_unicast(const struct ixdp_port *port, const uint8_t mac[6], const char *where) {
	if (!(mac[0] & 1) && memcmp(mac, zero, 6) != 0) return 0;
	return ixdp_fail(EINVAL, "%s: %s%02x:%02x:%02x:%02x:%02x:%02x is not a unicast address",
			 port->bus->name, where, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

static void set_bit(uint32_t *table, unsigned bit) { table[bit / 32] |= UINT32_C(1) << bit % 32; }

/* The port's own address and filters, the first time: receive address 0 is the EEPROM's. */
int filters_init(struct ixdp_port *port) {
	if (port->macs > 0) return 0;
	uint32_t low = reg_read(port, REG_RAL), high = reg_read(port, REG_RAH);
	for (unsigned i = 0; i < 6; i++)
		port->mac[0][i] = i < 4 ? low >> 8 * i : high >> 8 * (i - 4);
	if (check_unicast(port, port->mac[0], "EEPROM bad? Receive address 0 (RAL, RAH) "))
		return -EIO;
	port->macs = 1;
	port->fctrl = FCTRL_BAM;
	port->vlnctrl = reg_read(port, REG_VLNCTRL);
	return 0;
}

static void write_mac(struct ixdp_port *port, unsigned n) {
	const uint8_t *mac = port->mac[n];
	/* Not valid while half of it is there, section 8.2.3.7.9. */
	reg_write(port, REG_N(RAH, n), 0);
	reg_write(port, REG_N(RAL, n),
		  mac[0] | mac[1] << 8 | mac[2] << 16 | (uint32_t)mac[3] << 24);
	if (n < port->macs) reg_write(port, REG_N(RAH, n), mac[4] | mac[5] << 8 | RAH_AV);
}

/* All of it, with what is undefined after a reset; while nothing is received (8.2.3.7.1). */
void filters_write(struct ixdp_port *port) {
	for (unsigned n = 0; n < REG_RAL_COUNT; n++)
		write_mac(port, n);
	for (unsigned n = 0; n < REG_MTA_COUNT; n++)
		reg_write(port, REG_N(MTA, n), port->mta[n]);
	for (unsigned n = 0; n < REG_VFTA_COUNT; n++)
		reg_write(port, REG_N(VFTA, n), port->vfta[n]);
	reg_write(port, REG_MCSTCTRL, port->mcstctrl);
	reg_write(port, REG_VLNCTRL, port->vlnctrl);
	reg_write(port, REG_FCTRL,
		  port->fctrl | (port->cfg.promiscuous ? FCTRL_UPE | FCTRL_MPE | FCTRL_BAM : 0));
}

int ixdp_promiscuous_set(struct ixdp_port *port, bool on) {
	port->cfg.promiscuous = on;
	return rx_paused(port, filters_write);
}

static int check_filters(const struct ixdp_port *port, const struct ixdp_filters *f) {
	const char *name = port->bus->name;
	int err = 0;
	if (f->n_unicast > IXDP_MAX_UNICAST)
		return ixdp_fail(ENOSPC,
				 "%s: %u unicast addresses: there is room for %d; be promiscuous",
				 name, f->n_unicast, IXDP_MAX_UNICAST);
	for (unsigned i = 0; i < f->n_unicast && !err; i++)
		err = check_unicast(port, f->unicast[i], "");
	for (unsigned i = 0; i < f->n_multicast && !err; i++)
		if (!(f->multicast[i][0] & 1))
			err = ixdp_fail(EINVAL, "%s: multicast address %u: not a group's", name, i);
	for (unsigned i = 0; i < f->n_vlans && !err; i++)
		if (f->vlans[i] > 4095)
			err = ixdp_fail(EINVAL, "%s: VLAN %u: 0 to 4095", name, f->vlans[i]);
	return err;
}

int ixdp_filters_set(struct ixdp_port *port, const struct ixdp_filters *f) {
	int err = check_filters(port, f);
	if (err) return err;
	port->cfg.promiscuous = f->promiscuous;
	port->fctrl = (f->all_multicast ? FCTRL_MPE : 0) | (f->no_broadcast ? 0 : FCTRL_BAM);
	port->macs = 1 + f->n_unicast;
	if (f->n_unicast) memcpy(port->mac[1], f->unicast, 6 * f->n_unicast);

	/* A bit for each value of 12 bits of the address: its last with MO = 0 (8.2.3.7.3). */
	memset(port->mta, 0, sizeof(port->mta));
	for (unsigned i = 0; i < f->n_multicast; i++)
		set_bit(port->mta, f->multicast[i][4] >> 4 | f->multicast[i][5] << 4);
	port->mcstctrl = f->n_multicast ? MCSTCTRL_MFE : 0;

	memset(port->vfta, 0, sizeof(port->vfta));
	for (unsigned i = 0; i < f->n_vlans; i++)
		set_bit(port->vfta, f->vlans[i]);
	port->vlnctrl = (port->vlnctrl & VLNCTRL_VET) | (f->vlan_filter ? VLNCTRL_VFE : 0);
	return rx_paused(port, filters_write);
}

void ixdp_mac_get(const struct ixdp_port *port, uint8_t mac[6]) { memcpy(mac, port->mac[0], 6); }

int ixdp_mac_set(struct ixdp_port *port, const uint8_t mac[6]) {
	int err = check_unicast(port, mac, "");
	if (err) return err;
	memcpy(port->mac[0], mac, 6);
	if (port->running) write_mac(port, 0);
	return 0;
}
