/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the NIC may touch, and at which addresses it sees it: what an IOMMU is to a card.
 * Addresses that the device sees as neighbours may be anywhere in memory, so an access goes piece
 * by piece.
 */
#include "nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The region that contains iova, or NULL. */
static const struct nic_region *find(const struct softnic *nic, uint64_t iova, unsigned *hint) {
	unsigned low = 0, high = nic->n_regions;

	if (likely(*hint < nic->n_regions && nic_region_has(&nic->regions[*hint], iova)))
		return &nic->regions[*hint];
	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (nic_region_has(&nic->regions[middle], iova)) {
			*hint = middle;
			return &nic->regions[middle];
		}
		if (nic->regions[middle].iova > iova)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

uint8_t *nic_dma_look_elsewhere(const struct softnic *nic, uint64_t iova, uint64_t len,
				unsigned *hint) {
	const struct nic_region *region = find(nic, iova, hint);

	if (!region || region->len - (iova - region->iova) < len) return NULL;
	return region->addr + (iova - region->iova);
}

/* The longest piece of [iova, iova + *len) from its start; shortens *len to it. NULL: not mapped.
 */
static uint8_t *piece(const struct softnic *nic, uint64_t iova, size_t *len, unsigned *hint) {
	const struct nic_region *region = find(nic, iova, hint);
	uint64_t room;

	if (!region) return NULL;
	room = region->len - (iova - region->iova);
	if (room < *len) *len = room;
	return region->addr + (iova - region->iova);
}

/* The first address of the range that is not mapped; its end if all of it is. */
static uint64_t first_hole(const struct softnic *nic, uint64_t iova, uint64_t len) {
	unsigned hint = 0;

	while (len > 0) {
		size_t part = len;

		if (!piece(nic, iova, &part, &hint)) break;
		iova += part;
		len -= part;
	}
	return iova;
}

bool nic_dma_mapped(const struct softnic *nic, uint64_t iova, uint64_t len) {
	return iova + len >= iova && first_hole(nic, iova, len) == iova + len;
}

static bool stray(struct softnic *nic, const char *what, uint64_t iova, size_t len, uint32_t reg) {
	nic_violation(nic, VIOLATION_STRAY_DMA, reg,
		      "stray DMA %s %zu bytes at 0x%llx: 0x%llx is not mapped", what, len,
		      (unsigned long long)iova, (unsigned long long)first_hole(nic, iova, len));
	return false;
}

bool nic_dma_refused(struct softnic *nic) { return ++nic->dmas % nic->fault_arg[FAULT_IOMMU] == 0; }

static bool refused(struct softnic *nic, const char *what, uint64_t iova, size_t len,
		    uint32_t reg) {
	nic_violation(nic, VIOLATION_STRAY_DMA, reg,
		      "DMA %s %zu bytes at 0x%llx: refused by the IOMMU (fault=iommu)", what, len,
		      (unsigned long long)iova);
	return false;
}

bool nic_dma_read(struct softnic *nic, uint64_t iova, void *to, size_t len, unsigned *hint,
		  uint32_t reg) {
	if (nic_fault(nic, FAULT_IOMMU) && nic_dma_refused(nic))
		return refused(nic, "read of", iova, len, reg);
	if (!nic_dma_mapped(nic, iova, len)) return stray(nic, "read of", iova, len, reg);
	for (size_t done = 0; done < len;) {
		size_t part = len - done;
		const uint8_t *from = piece(nic, iova + done, &part, hint);

		memcpy((uint8_t *)to + done, from, part);
		done += part;
	}
	return true;
}

bool nic_dma_write(struct softnic *nic, uint64_t iova, const void *from, size_t len, unsigned *hint,
		   uint32_t reg) {
	uint8_t *whole = nic_dma_look(nic, iova, len, hint);

	if (nic_fault(nic, FAULT_IOMMU) && nic_dma_refused(nic))
		return refused(nic, "write of", iova, len, reg);
	if (likely(whole)) {
		memcpy(whole, from, len);
		return true;
	}
	if (!nic_dma_mapped(nic, iova, len)) return stray(nic, "write of", iova, len, reg);
	for (size_t done = 0; done < len;) {
		size_t part = len - done;
		uint8_t *to = piece(nic, iova + done, &part, hint);

		memcpy(to, (const uint8_t *)from + done, part);
		done += part;
	}
	return true;
}

/* Under the NIC's lock. */
static int add_region(struct softnic *nic, const struct nic_region *added) {
	unsigned at = nic->n_regions;

	while (at > 0 && nic->regions[at - 1].iova > added->iova)
		at--;
	if (at > 0 && nic->regions[at - 1].iova + nic->regions[at - 1].len > added->iova)
		return -EEXIST;
	if (at < nic->n_regions && added->iova + added->len > nic->regions[at].iova) return -EEXIST;
	if (nic->n_regions == nic->room_regions) {
		unsigned room = nic->room_regions ? 2 * nic->room_regions : 16;
		struct nic_region *more = realloc(nic->regions, room * sizeof(*more));

		if (!more) return -ENOMEM;
		nic->regions = more;
		nic->room_regions = room;
	}
	memmove(&nic->regions[at + 1], &nic->regions[at],
		(nic->n_regions - at) * sizeof(*nic->regions));
	nic->regions[at] = *added;
	nic->n_regions++;
	return 0;
}

int softnic_dma_map(struct softnic *nic, void *addr, size_t len, uint64_t iova) {
	struct nic_region region = {.iova = iova, .len = len, .addr = addr};
	int err;

	if (len == 0 || iova + len < iova)
		return ixdp_fail(EINVAL, "soft:%s: cannot map %zu bytes at device address 0x%llx",
				 nic->name, len, (unsigned long long)iova);
	nic_lock_take(&nic->lock);
	err = add_region(nic, &region);
	nic_lock_give(&nic->lock);
	if (err)
		return ixdp_fail(-err, "soft:%s: cannot map %zu bytes at device address 0x%llx: %s",
				 nic->name, len, (unsigned long long)iova,
				 err == -EEXIST ? "part of it is mapped already" : "out of memory");
	return 0;
}

/* Takes off what begins in the range. DMA happens under the lock: then none is under way. */
void softnic_dma_unmap(struct softnic *nic, uint64_t iova, size_t len) {
	unsigned kept = 0;

	nic_lock_take(&nic->lock);
	for (unsigned i = 0; i < nic->n_regions; i++)
		if (nic->regions[i].iova - iova >= len) nic->regions[kept++] = nic->regions[i];
	nic->n_regions = kept;
	nic_lock_give(&nic->lock);
}
