/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The register table: the lines of regs.h and NIC_REGISTERS, with what is special about some of
 * them. An address finds its line through a map of the BAR; an alias is a second entry in the map.
 */
#include "nic.h"

#include <stdio.h>
#include <string.h>

enum {
#define R(name, offset, stride, count, reset, access, section, what) ID_##name,
	IXDP_REGISTERS(R) NIC_REGISTERS(R)
#undef R
	    ID_COUNT
};

static struct nic_reg table[ID_COUNT] = {
#define R(name, offset, stride, count, reset, access, section, what)                               \
	[ID_##name] = {#name, offset, stride, count, reset, 0, NIC_##access, 0, 0, NULL, NULL},
    IXDP_REGISTERS(R) NIC_REGISTERS(R)
#undef R
};

static const struct {
	unsigned id;
	uint32_t mask;
} fields[] = {
#define F(reg, field, low, width) {ID_##reg, reg##_##field},
    IXDP_FIELDS(F) NIC_FIELDS(F)
#undef F
};

static const struct {
	unsigned id;
	uint32_t offset, stride, count;
} aliases[] = {
#define A(name, offset, stride, count) {ID_##name, offset, stride, count},
    NIC_ALIASES(A)
#undef A
};

static const struct {
	unsigned id;
	uint32_t offset;
} more[] = {
#define M(name, offset) {ID_##name, offset},
    NIC_MORE_QUEUES(M)
#undef M
};

/* Registers that do more than their access kind says. */
static const struct {
	unsigned id;
	uint32_t fixed;
	uint32_t (*read)(struct softnic *nic, unsigned n, uint32_t stored);
	void (*write)(struct softnic *nic, unsigned n, uint32_t value);
} specials[] = {
    {ID_CTRL, 0, NULL, nic_write_ctrl},
    {ID_STATUS, 0, nic_read_status, NULL},
    {ID_EEC, EEC_PRES | EEC_ARD, nic_read_eec, NULL},
    {ID_SWSM, 0, nic_read_swsm, NULL},
    {ID_EICR, 0, NULL, nic_write_eicr},
    {ID_EIMC, 0, NULL, nic_write_eimc},
    {ID_EIMC_EX, 0, NULL, nic_write_eimc_ex},
    {ID_FCTRL, 0, NULL, nic_write_fctrl},
    {ID_RAH, 0, NULL, nic_write_rah},
    {ID_MRQC, 0, NULL, nic_write_mrqc},
    {ID_RDBAL, ~(uint32_t)RDBAL_BASE, NULL, NULL},
    {ID_RDLEN, ~(uint32_t)RDLEN_LEN, NULL, NULL},
    {ID_RDH, 0, NULL, nic_write_rdh},
    {ID_RDT, 0, nic_read_rdt, nic_write_rdt},
    {ID_RXDCTL, 0, nic_read_rxdctl, nic_write_rxdctl},
    {ID_RDRXCTL, RDRXCTL_DMAIDONE, nic_read_rdrxctl, NULL},
    {ID_SECRXSTAT, 0, nic_read_secrxstat, NULL},
    {ID_TDBAL, ~(uint32_t)TDBAL_BASE, NULL, NULL},
    {ID_TDLEN, ~(uint32_t)TDLEN_LEN, NULL, NULL},
    {ID_TDH, 0, NULL, nic_write_tdh},
    {ID_TDT, 0, nic_read_tdt, nic_write_tdt},
    {ID_MTQC, 0, NULL, nic_write_mtqc},
    {ID_TXDCTL, 0, nic_read_txdctl, nic_write_txdctl},
    {ID_AUTOC, 0, NULL, nic_write_autoc},
    {ID_LINKS, 0, nic_read_links, NULL},
    {ID_TFCS, 0, nic_read_tfcs, NULL},
    {ID_GORCL, 0, nic_read_gorc_low, NULL},
    {ID_GORCH, 0, nic_read_gorc_high, NULL},
    {ID_GOTCL, 0, nic_read_gotc_low, NULL},
    {ID_GOTCH, 0, nic_read_gotc_high, NULL},
    {ID_TORL, 0, nic_read_tor_low, NULL},
    {ID_TORH, 0, nic_read_tor_high, NULL},
    {ID_QBRCL, 0, nic_read_qbrc_low, NULL},
    {ID_QBRCH, 0, nic_read_qbrc_high, NULL},
    {ID_QBTCL, 0, nic_read_qbtc_low, NULL},
    {ID_QBTCH, 0, nic_read_qbtc_high, NULL},
};

/* Filters that hold anything after a reset, sections 8.2.3.7 and 8.2.3.27: here, this. */
static const unsigned undefined[] = {ID_MTA, ID_VFTA, ID_UTA, ID_VLVF, ID_VLVFB, ID_MPSAR, ID_FTQF};
enum { JUNK = 0xA5A5A5A5 };

/* For every 32-bit word of the BAR: which register it is. 0: none, else the id plus one. */
static struct {
	uint16_t id_plus_1;
	uint16_t n;
} map[NIC_BAR_SIZE / 4];

static pthread_once_t built = PTHREAD_ONCE_INIT;

static void map_array(unsigned id, uint32_t offset, uint32_t stride, uint32_t count,
		      uint32_t first) {
	for (uint32_t i = 0; i < count; i++) {
		map[(offset + stride * i) / 4].id_plus_1 = id + 1;
		map[(offset + stride * i) / 4].n = first + i;
	}
}

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void build(void) {
	for (size_t i = 0; i < LENGTH(fields); i++)
		table[fields[i].id].fields |= fields[i].mask;
	for (size_t i = 0; i < LENGTH(specials); i++) {
		table[specials[i].id].fixed = specials[i].fixed;
		table[specials[i].id].read = specials[i].read;
		table[specials[i].id].write = specials[i].write;
	}
	for (unsigned id = 0; id < ID_COUNT; id++)
		map_array(id, table[id].offset, table[id].stride, table[id].count, 0);
	for (size_t i = 0; i < LENGTH(aliases); i++)
		map_array(aliases[i].id, aliases[i].offset, aliases[i].stride, aliases[i].count, 0);
	/* Last: regs.h, too, names one of them, RXDCTL_HIGH. */
	for (size_t i = 0; i < LENGTH(more); i++) {
		struct nic_reg *reg = &table[more[i].id];

		reg->more = more[i].offset;
		map_array(more[i].id, reg->more, reg->stride, reg->count, reg->count);
	}
}

const struct nic_reg *nic_reg_find(uint32_t offset, unsigned *n) {
	pthread_once(&built, build);
	if (offset >= NIC_BAR_SIZE || offset % 4 != 0 || map[offset / 4].id_plus_1 == 0)
		return NULL;
	*n = map[offset / 4].n;
	return &table[map[offset / 4].id_plus_1 - 1];
}

static void fill(struct softnic *nic, unsigned id, uint32_t value) {
	for (uint32_t n = 0; n < table[id].count * (table[id].more ? 2 : 1); n++)
		nic->regs[nic_reg_offset(&table[id], n) / 4] = value;
}

void nic_reg_reset(struct softnic *nic) {
	pthread_once(&built, build);
	memset(nic->regs, 0, sizeof(nic->regs));
	for (unsigned id = 0; id < ID_COUNT; id++) {
		bool stale = table[id].access == NIC_RC && id != ID_EICR &&
			     nic_fault(nic, FAULT_STALE_COUNTERS);
		fill(nic, id, stale ? JUNK : table[id].reset);
	}
	for (size_t i = 0; i < LENGTH(undefined); i++) {
		uint32_t fields = table[undefined[i]].fields;
		fill(nic, undefined[i], fields ? JUNK & fields : JUNK);
	}
}

void nic_reg_name(uint32_t offset, char *text, size_t size) {
	unsigned n;
	const struct nic_reg *reg = nic_reg_find(offset, &n);

	if (!reg)
		snprintf(text, size, "register 0x%05X", offset);
	else if (reg->count == 1)
		snprintf(text, size, "%s", reg->name);
	else
		snprintf(text, size, "%s[%u]", reg->name, n);
}
