/* SPDX-License-Identifier: BSD-3-Clause */
#include "card.h"

#include "base/error.h"
#include "driver/regs.h"

#include <errno.h>
#include <sanitizer/asan_interface.h>

enum {
	BAR_WORDS = 0x20000 / 4,
	MAX_LIES = 15,
	MAX_STUCK = 15,
	MAX_MAPPED = 4,
	NS_PER_READ = 1000,
};

#define MAC_LOW 0x44332202u
#define MAC_HIGH (RAH_AV | 0x6655u)

enum lie_kind { LIE_ONCE, LIE_FLIP, LIE_GONE, LIE_FAIL_MAP, LIE_FAIL_DMA, LIE_JUMP, LIE_KINDS };

static struct card {
	struct ixdp_bus bus;
	bool open, dma;
	uint32_t regs[BAR_WORDS];
	uint64_t now_ns;
	unsigned reads_left;
	unsigned reads;

	struct {
		uint32_t reg, value;
	} stuck[MAX_STUCK];
	unsigned n_stuck;
	struct {
		unsigned at; /* reads */
		enum lie_kind kind;
		uint32_t value;
	} lies[MAX_LIES];
	unsigned n_lies, next_lie;
	bool gone, fail_map, fail_dma;

	size_t rings; /* bytes that rings may have of their memory */
	struct dma_mem *mapped[MAX_MAPPED];
} card;

/* Registers that decide where the driver goes. */
static const uint32_t interesting[] = {
    REG_STATUS, REG_CTRL,      REG_EEC,	  REG_FWSM,	     REG_RDRXCTL, REG_SECRXSTAT,
    REG_RXDCTL, REG_TXDCTL,    REG_RAL,	  REG_RAH,	     REG_LINKS,	  REG_TDH,
    REG_GPTC,	REG_GOTCL,     REG_GOTCH, REG_N(RXDCTL, 1),  REG_MPC,	  REG_N(TXDCTL, 1),
    REG_HLREG0, REG_SECRXCTRL, REG_QPRDC, REG_N(TXDCTL, 127)};

static uint32_t pick_register(struct input *in) {
	return interesting[input_u8(in) % (sizeof(interesting) / sizeof(interesting[0]))];
}

/* Registers that are not just what was written. */
static uint32_t healthy(uint32_t reg) {
	uint32_t value = card.regs[reg / 4];

	switch (reg) {
	case REG_STATUS:
		return card.regs[REG_CTRL / 4] & CTRL_MASTER_DISABLE ? 0 : STATUS_MASTER_ENABLE;
	case REG_CTRL:
		card.regs[REG_CTRL / 4] &= ~(uint32_t)(CTRL_RST | CTRL_MASTER_DISABLE);
		return card.regs[REG_CTRL / 4];
	default:
		return value;
	}
}

static void tell_lie(uint32_t *value) {
	uint32_t lie = card.lies[card.next_lie].value;

	switch (card.lies[card.next_lie++].kind) {
	case LIE_FLIP:
		*value ^= UINT32_C(1) << lie % 32;
		break;
	case LIE_GONE:
		card.gone = true;
		break;
	case LIE_FAIL_MAP:
		card.fail_map = true;
		break;
	case LIE_FAIL_DMA:
		card.fail_dma = true;
		break;
	case LIE_JUMP:
		card.now_ns += lie;
		break;
	default:
		*value = lie;
	}
}

static uint32_t card_read32(struct ixdp_bus *bus, uint32_t reg) {
	uint32_t value;

	(void)bus;
	MUST(card.open && reg % 4 == 0 && reg / 4 < BAR_WORDS, "read of 0x%x", reg);
	MUST(card.reads_left > 0, "the driver reads registers without end, now 0x%x", reg);
	card.reads_left--;
	card.now_ns += NS_PER_READ;
	value = healthy(reg);
	for (unsigned i = 0; i < card.n_stuck; i++)
		if (card.stuck[i].reg == reg) value = card.stuck[i].value;
	card.reads++;
	while (card.next_lie < card.n_lies && card.lies[card.next_lie].at <= card.reads)
		tell_lie(&value);
	return card.gone ? UINT32_MAX : value;
}

static void card_write32(struct ixdp_bus *bus, uint32_t reg, uint32_t value) {
	(void)bus;
	MUST(card.open && reg % 4 == 0 && reg / 4 < BAR_WORDS, "write of 0x%x", reg);
	card.regs[reg / 4] = value;
}

static volatile uint32_t *card_doorbell(struct ixdp_bus *bus, uint32_t reg) {
	(void)bus;
	return &card.regs[reg / 4];
}

/*
 * The pool is mapped first. Ring memory is whole pages: what the rings do not need of it is
 * nobody's.
 */
static bool is_ring_memory(const struct dma_mem *mem) { return mem != card.mapped[0]; }

static int card_dma_map(struct ixdp_bus *bus, struct dma_mem *mem, struct iova_table *table) {
	unsigned i = 0;

	if (card.fail_map) return ixdp_fail(ENOMEM, "%s: cannot map", bus->name);
	while (i < MAX_MAPPED && card.mapped[i])
		i++;
	MUST(i < MAX_MAPPED, "too many mappings");
	card.mapped[i] = mem;
	if (is_ring_memory(mem))
		ASAN_POISON_MEMORY_REGION(mem->addr + card.rings, mem->size - card.rings);
	iova_identity(table, mem);
	return 0;
}

/* Of memory that was never mapped too, on the way back from a failed open. */
static void card_dma_unmap(struct ixdp_bus *bus, struct dma_mem *mem) {
	(void)bus;
	ASAN_UNPOISON_MEMORY_REGION(mem->addr, mem->size);
	for (unsigned i = 0; i < MAX_MAPPED; i++)
		if (card.mapped[i] == mem) card.mapped[i] = NULL;
}

static int card_dma_enable(struct ixdp_bus *bus, bool on) {
	if (on && card.fail_dma) return ixdp_fail(EIO, "%s: no bus mastering", bus->name);
	card.dma = on;
	return 0;
}

static bool card_transactions_pending(struct ixdp_bus *bus) {
	(void)bus;
	return card.gone;
}

static uint64_t card_now_ns(struct ixdp_bus *bus) {
	(void)bus;
	return card.now_ns;
}

static void card_delay_us(struct ixdp_bus *bus, unsigned us) {
	(void)bus;
	card.now_ns += us * UINT64_C(1000);
}

static void card_close(struct ixdp_bus *bus) {
	(void)bus;
	MUST(card.open && !card.dma, "closed with bus mastering on");
	card.open = false;
}

static const struct ixdp_bus_ops ops = {
    .read32 = card_read32,
    .write32 = card_write32,
    .doorbell = card_doorbell,
    .dma_map = card_dma_map,
    .dma_unmap = card_dma_unmap,
    .dma_enable = card_dma_enable,
    .transactions_pending = card_transactions_pending,
    .now_ns = card_now_ns,
    .delay_us = card_delay_us,
    .close = card_close,
};

struct ixdp_bus *card_bus(void) {
	card.open = true;
	return &card.bus;
}

void card_begin(struct input *in, size_t rings) {
	unsigned counts = input_u8(in);

	memset(&card, 0, sizeof(card));
	card.bus.ops = &ops;
	strcpy(card.bus.name, "card");
	card.bus.numa_node = -1;
	card.bus.ordinary_pages = true;
	card.rings = rings;
	card.regs[REG_EEC / 4] = EEC_PRES | EEC_ARD;
	card.regs[REG_RDRXCTL / 4] = RDRXCTL_DMAIDONE;
	card.regs[REG_SECRXSTAT / 4] = SECRXSTAT_RDY;
	card.regs[REG_LINKS / 4] = LINKS_UP | FIELD(LINKS_SPEED, LINKS_SPEED_10G);
	card.regs[REG_RAL / 4] = MAC_LOW;
	card.regs[REG_RAH / 4] = MAC_HIGH;
	card.n_stuck = counts % 16;
	card.n_lies = counts / 16;
	for (unsigned i = 0; i < card.n_stuck; i++) {
		card.stuck[i].reg = pick_register(in);
		card.stuck[i].value = input_u32(in);
	}
	for (unsigned i = 0; i < card.n_lies; i++) {
		card.lies[i].at = input_u16(in) % 2048;
		card.lies[i].kind = input_u8(in) % LIE_KINDS;
		card.lies[i].value = input_u32(in);
	}
}

void card_end(void) {
	MUST(!card.open, "the bus stays open");
	for (unsigned i = 0; i < MAX_MAPPED; i++)
		MUST(!card.mapped[i], "memory stays mapped");
}

void card_allow_reads(unsigned reads) { card.reads_left = reads; }

/* --- rings, as the driver has set them up ------------------------------------------------------
 */

struct ring {
	struct desc *desc;
	uint32_t size, head, tail; /* descriptors */
	uint32_t head_reg;
	bool rx;
};

/* In one piece in the memory of rings, or in that of packet buffers. */
static bool is_mapped(uint64_t addr, size_t len, bool rings) {
	for (unsigned i = 0; i < MAX_MAPPED; i++) {
		const struct dma_mem *mem = card.mapped[i];

		if (mem && is_ring_memory(mem) == rings && addr >= (uintptr_t)mem->addr &&
		    addr - (uintptr_t)mem->addr + len <= (rings ? card.rings : mem->size))
			return true;
	}
	return false;
}

/* A queue's ring; false when the driver has not set it up. */
static bool find_ring(struct ring *ring, bool rx, unsigned n) {
	uint32_t first = rx ? REG_N(RDBAL, n) : REG_N(TDBAL, n);
	const uint32_t *regs = &card.regs[first / 4];
	uint64_t base = (uint64_t)regs[1] << 32 | regs[0];

	if (base == 0) return false;
	*ring = (struct ring){
	    .desc = (struct desc *)base,
	    .size = regs[2] / sizeof(struct desc),
	    .head = card.regs[(rx ? REG_N(RDH, n) : REG_N(TDH, n)) / 4],
	    .tail = card.regs[(rx ? REG_N(RDT, n) : REG_N(TDT, n)) / 4],
	    .head_reg = rx ? REG_N(RDH, n) : REG_N(TDH, n),
	    .rx = rx,
	};
	return true;
}

static bool pick_ring(struct ring *ring, struct input *in, bool rx) {
	return find_ring(ring, rx, input_u8(in) % 3);
}

/* Addresses and tail are the driver's alone, and never wrong, however the card behaves. */
static void check_ring(const struct ring *ring) {
	MUST(is_mapped((uintptr_t)ring->desc, ring->size * sizeof(struct desc), true),
	     "ring at %p of %u descriptors", (void *)ring->desc, ring->size);
	MUST(ring->tail < ring->size, "tail %u in a ring of %u", ring->tail, ring->size);
}

void card_check(void) {
	struct ring ring;

	for (unsigned n = 0; n < 3; n++) {
		if (find_ring(&ring, true, n)) check_ring(&ring);
		if (find_ring(&ring, false, n)) check_ring(&ring);
	}
}

/* --- deeds -------------------------------------------------------------------------------------
 */

void card_receive(struct input *in, bool parts) {
	unsigned n = 1 + input_u8(in) % 64;
	/* Descriptors of a frame, and what else its last one says. */
	unsigned k = parts ? 1 + input_u8(in) % 6 : 1;
	uint64_t status = parts ? input_number(in, 8) & ~RXD_LEN : 0;
	uint16_t len = 60 + input_u16(in) % (parts ? IXDP_DATA_SIZE : 1459);
	struct ring ring;

	if (!pick_ring(&ring, in, true) || ring.head >= ring.size) return;
	for (; n > 0 && ring.head != ring.tail; n--) {
		uint64_t addr = le64toh(ring.desc[ring.head].qw0);

		/* Unless it was scribbled on it is a buffer's. */
		if (is_mapped(addr, len, false)) memset((void *)addr, n, len);
		desc_publish(&ring.desc[ring.head], RXD_DD | (uint64_t)len << RXD_LEN_LOW |
							(n % k == 0 ? RXD_EOP | status : 0));
		ring.head = (ring.head + 1) % ring.size;
	}
	card.regs[ring.head_reg / 4] = ring.head;
}

void card_scribble(struct input *in) {
	unsigned how = input_u8(in);
	struct ring ring;

	if (!pick_ring(&ring, in, how & 1)) return;

	unsigned at = input_u8(in), n = how & 2 ? 1 : 1 + input_u8(in) % ring.size;
	uint64_t qw1 = input_number(in, 8);
	uint64_t qw0 = how & 4 ? input_number(in, 8) : 0;

	if (how & 8) qw1 = ring.rx ? qw1 | RXD_DD : qw1 | TXD_DD;
	for (unsigned i = 0; i < n; i++) {
		struct desc *d = &ring.desc[(at + i) % ring.size];

		if (how & 4) d->qw0 = qw0;
		desc_publish(d, qw1);
	}
}

void card_set_register(struct input *in) {
	unsigned which = input_u8(in);

	if (which & 0x80)
		card.regs[(which & 1 ? REG_N(TDH, which / 2 % 3) : REG_N(RDH, which / 2 % 3)) / 4] =
		    input_u16(in);
	else
		card.regs[pick_register(in) / 4] = input_u32(in);
}
