/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults that can be had for the asking, fault=NAME[:ARG] in a port's name: what a card may do and
 * a driver must survive. Most are one condition where the thing happens; here is their table, and
 * the write-backs that come torn or late.
 */
#include "nic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAP_MS = 10 };

/* README.md has the same table. arg: what the argument is; NULL: there is none. */
static const struct {
	const char *name;
	const char *arg;
} table[FAULT_COUNT] = {
    [FAULT_RESET_STUCK] = {"reset-stuck", NULL},
    [FAULT_EEPROM_STUCK] = {"eeprom-stuck", NULL},
    [FAULT_DMAI_STUCK] = {"dmai-stuck", NULL},
    [FAULT_ENABLE_LATE] = {"enable-late", "POLLS"},
    [FAULT_ENABLE_NEVER] = {"enable-never", NULL},
    [FAULT_DISABLE_LATE] = {"disable-late", "POLLS"},
    [FAULT_DISABLE_NEVER] = {"disable-never", NULL},
    [FAULT_MASTER_STUCK] = {"master-stuck", NULL},
    [FAULT_LINK_LATE] = {"link-late", "MS"},
    [FAULT_LINK_DOWN] = {"link-down", NULL},
    [FAULT_LINK_FLAP] = {"link-flap", "N[:MS]"},
    [FAULT_SECRX_STUCK] = {"secrx-stuck", NULL},
    [FAULT_SEMAPHORE_HELD] = {"semaphore-held", NULL},
    [FAULT_WRONG_MAC] = {"wrong-mac", NULL},
    [FAULT_ALL_ONES] = {"all-ones", NULL},
    [FAULT_GONE_AFTER] = {"gone-after", "N"},
    [FAULT_TORN] = {"torn", NULL},
    [FAULT_LEN_ZERO] = {"len-zero", "N"},
    [FAULT_BAD_CRC] = {"bad-crc", "N"},
    [FAULT_DD_LATE] = {"dd-late", "STEPS"},
    [FAULT_TX_STOP] = {"tx-stop", NULL},
    [FAULT_RX_STOP] = {"rx-stop", NULL},
    [FAULT_RS_HANG] = {"rs-hang", "N"},
    [FAULT_IOMMU] = {"iommu", "N"},
    [FAULT_STALE_COUNTERS] = {"stale-counters", NULL},
    [FAULT_CORRUPT] = {"corrupt", "N"},
    [FAULT_MISCOUNT] = {"miscount", "N"},
    [FAULT_NO_RSS] = {"no-rss", NULL},
    [FAULT_NO_OFFLOAD] = {"no-offload", NULL},
    [FAULT_NO_FILTER] = {"no-filter", NULL},
};

static int unknown(const struct softnic *nic, const char *text, size_t len) {
	char names[800];
	size_t used = snprintf(names, sizeof(names), "none");

	for (unsigned i = 0; i < FAULT_COUNT; i++)
		used += snprintf(names + used, sizeof(names) - used, ", %s%s%s", table[i].name,
				 table[i].arg ? ":" : "", table[i].arg ? table[i].arg : "");
	return ixdp_fail(EINVAL, "soft:%s: unknown fault '%.*s'; there are: %s", nic->name,
			 (int)len, text, names);
}

/* A whole number from 1 to a billion, which takes all of the text. */
static bool parse_arg(const char *text, size_t len, uint64_t *arg) {
	*arg = 0;
	if (len == 0 || len > 9) return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9') return false;
		*arg = *arg * 10 + (text[i] - '0');
	}
	return *arg > 0;
}

static void clear(struct softnic *nic) {
	nic->faults = 0;
	nic->link_at = 0;
	nic->moved = 0;
	if (nic_dma_on(nic)) nic_late_run(nic, true);
}

/* What follows the colon: a number, and for link-flap a second one if there is a second colon. */
static bool parse_args(struct softnic *nic, unsigned fault, const char *text, size_t len) {
	const char *colon = memchr(text, ':', len);
	uint64_t ms = FLAP_MS;

	if (fault == FAULT_LINK_FLAP && colon) {
		if (!parse_arg(colon + 1, text + len - colon - 1, &ms)) return false;
		len = colon - text;
	}
	nic->flap_ns = ms * 1000000;
	return parse_arg(text, len, &nic->fault_arg[fault]);
}

/* One NAME[:ARG]. */
static int set_one(struct softnic *nic, const char *text, size_t len) {
	const char *colon = memchr(text, ':', len);
	size_t name_len = colon ? (size_t)(colon - text) : len;
	unsigned i = 0;

	if (len == 4 && memcmp(text, "none", 4) == 0) {
		clear(nic);
		return 0;
	}
	while (i < FAULT_COUNT &&
	       (strlen(table[i].name) != name_len || memcmp(table[i].name, text, name_len) != 0))
		i++;
	if (i == FAULT_COUNT) return unknown(nic, text, len);
	if (!table[i].arg && colon)
		return ixdp_fail(EINVAL, "soft:%s: fault %s takes no argument", nic->name,
				 table[i].name);
	if (table[i].arg && (!colon || !parse_args(nic, i, colon + 1, len - name_len - 1)))
		return ixdp_fail(EINVAL, "soft:%s: fault %s:%s needs a number from 1 to 999999999",
				 nic->name, table[i].name, table[i].arg);
	nic->faults |= UINT32_C(1) << i;
	if (i == FAULT_LINK_LATE || i == FAULT_LINK_FLAP) nic_link_restart(nic);
	return 0;
}

int nic_fault_set(struct softnic *nic, const char *text) {
	for (;;) {
		size_t len = strcspn(text, "+");
		int err = set_one(nic, text, len);

		if (err) return err;
		if (text[len] == '\0') return 0;
		text += len + 1;
	}
}

void nic_fault_count(struct softnic *nic, unsigned moved) {
	nic->moved += moved;
	if (nic->moved >= nic->fault_arg[FAULT_GONE_AFTER])
		nic->faults |= UINT32_C(1) << FAULT_ALL_ONES;
}

void nic_torn(struct softnic *nic, unsigned queue, uint32_t index, struct desc *d, uint64_t half,
	      uint64_t whole) {
	half = htole64(half);
	__atomic_store_n(&d->qw1, half, __ATOMIC_RELEASE);
	if (nic->hooks.torn) nic->hooks.torn(nic, queue, index, nic->hooks.arg);
	/* A driver that took the half for the whole may have made a new descriptor of it. */
	__atomic_compare_exchange_n(&d->qw1, &half, htole64(whole), false, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
}

static void publish_oldest(struct softnic *nic) {
	const struct nic_late *late = &nic->late[nic->late_begin];
	struct desc *d = nic_ring_desc(nic, &late->ring, late->index);

	if (d) desc_publish(d, late->qw1);
	nic->late_begin = (nic->late_begin + 1) % NIC_LATE_MAX;
	nic->late_count--;
}

void nic_late_run(struct softnic *nic, bool all) {
	while (nic->late_count > 0 && nic_dma_on(nic) &&
	       (all || nic->late[nic->late_begin].due <= nic->steps))
		publish_oldest(nic);
}

void nic_write_back_late(struct softnic *nic, const struct nic_ring *ring, uint32_t index,
			 uint64_t qw1) {
	/* When there is no room for more, the oldest comes early: their order is what counts. */
	if (nic->late_count == NIC_LATE_MAX) publish_oldest(nic);
	nic->late[(nic->late_begin + nic->late_count++) % NIC_LATE_MAX] = (struct nic_late){
	    .ring = *ring,
	    .index = index,
	    .qw1 = qw1,
	    .due = nic->steps + nic->fault_arg[FAULT_DD_LATE],
	};
}
