/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software NIC under a driver that does anything: registers, doorbells, descriptors, faults,
 * mappings, in any order. It must stay within the memory that is mapped for it (what lies around
 * that is poisoned), send no frame that cannot be, and end each step.
 *
 * Device addresses are made of a few bits of the input, so that many point somewhere.
 */
#include "fuzz.h"

#include "softnic/nic.h"
#include "softnic/softnic.h"

#include <sanitizer/asan_interface.h>

enum { PAGE = 4096, REGIONS = 4, PAGES = 4, MAX_OPS = 400 };

/* Neighbours for the device from the first to the third; then a hole. In memory all are apart. */
static const uint64_t iovas[REGIONS] = {0x100000, 0x104000, 0x108000, 0x200000};
static uint8_t *memory[REGIONS];
static bool mapped[REGIONS];

static struct softnic *nic;
static unsigned held; /* so many frames the test's wire refuses */

static bool on_sent(const uint8_t *frame, size_t len, void *arg) {
	(void)arg;
	MUST(len > 0 && len <= NIC_FRAME_MAX - NIC_FCS, "sent %zu bytes", len);
	touch(frame, len);
	return held == 0 || held-- == 0;
}

static unsigned steer(const uint8_t *frame, size_t len, void *arg) {
	(void)arg;
	return len > 14 ? frame[14] : 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
	(void)argc, (void)argv;
	softnic_set_stepped(true);
	for (unsigned i = 0; i < REGIONS; i++) {
		uint8_t *guarded = aligned_alloc(PAGE, (PAGES + 2) * PAGE);

		MUST(guarded, "memory");
		memory[i] = guarded + PAGE;
		ASAN_POISON_MEMORY_REGION(guarded, PAGE);
		ASAN_POISON_MEMORY_REGION(memory[i] + PAGES * PAGE, PAGE);
	}
	return 0;
}

static uint64_t some_iova(struct input *in) {
	unsigned where = input_u16(in);

	if (where >> 14 == 3) /* at the edges, and far away */
		return iovas[where % REGIONS] + PAGES * PAGE - (where >> 4 & 0x3FF) +
		       (where & 8 ? (uint64_t)input_u32(in) << 20 : 0);
	return iovas[where % REGIONS] + (where >> 2) % PAGES * PAGE + (where >> 4 & 0x3F) * 16;
}

/* Registers that matter, of queues that are used; or any offset. */
static uint32_t some_register(struct input *in) {
	static const uint32_t regs[] = {
#define R(name, offset, stride, count, reset, access, section, what) offset,
	    IXDP_REGISTERS(R) NIC_REGISTERS(R)
#undef R
	};
	static const uint32_t strides[] = {
#define R(name, offset, stride, count, reset, access, section, what) stride,
	    IXDP_REGISTERS(R) NIC_REGISTERS(R)
#undef R
	};
	unsigned which = input_u8(in);

	if (which >= sizeof(regs) / sizeof(regs[0])) return input_u32(in);
	return regs[which] + strides[which] * (input_u8(in) % 3);
}

/* A queue as a driver would set it up, but for where and how large its ring is. */
static void start_queue(struct input *in, bool rx) {
	unsigned n = input_u8(in) % 3;
	uint64_t base = some_iova(in);
	uint32_t len = (input_u8(in) % 17) * 128;

	softnic_write32(nic, rx ? REG_N(RDBAL, n) : REG_N(TDBAL, n), (uint32_t)base);
	softnic_write32(nic, rx ? REG_N(RDBAH, n) : REG_N(TDBAH, n), base >> 32);
	softnic_write32(nic, rx ? REG_N(RDLEN, n) : REG_N(TDLEN, n), len);
	softnic_write32(nic, rx ? REG_N(RDH, n) : REG_N(TDH, n), 0);
	if (rx) softnic_write32(nic, REG_N(SRRCTL, n), input_u32(in) & (1 << 25 | 1 << 28 | 0x1F));
	softnic_write32(nic, rx ? REG_N(RXDCTL, n) : REG_N(TXDCTL, n), RXDCTL_ENABLE);
	softnic_write32(nic, REG_DMATXCTL, DMATXCTL_TE);
	softnic_write32(nic, REG_FCTRL, FCTRL_UPE | FCTRL_MPE | FCTRL_BAM);
	softnic_write32(nic, REG_RXCTRL, RXCTRL_RXEN);
}

static void write_descriptors(struct input *in) {
	struct desc *ring = (struct desc *)memory[input_u8(in) % REGIONS];
	unsigned at = input_u16(in), count = 1 + input_u8(in) % 64;
	uint64_t addr = some_iova(in), bits = input_u32(in), len = input_u16(in);
	bool plausible = bits & 1, context = plausible && bits & 2;

	/* With checksums, VLAN tags, segmentation, which the context in front is for. */
	if (plausible)
		bits = (bits & 0xFF000000) | (bits & 0x300) << 32 | TXD_DEXT | TXD_DTYP_DATA |
		       TXD_IFCS;
	if (context) {
		struct desc *d = &ring[at++ % (PAGES * PAGE / sizeof(*ring))];

		d->qw0 = htole64(input_u32(in));
		d->qw1 = htole64((input_number(in, 8) & ~(uint64_t)TXD_DTYP) | TXD_DEXT |
				 TXD_DTYP_CONTEXT);
	}
	for (unsigned i = 0; i < count; i++)
		ring[(at + i) % (PAGES * PAGE / sizeof(*ring))] =
		    (struct desc){htole64(addr + (plausible ? 64 * i : 0)),
				  htole64(len << 46 | bits | (len & 0xFFFF))};
}

static void ring_doorbell(struct input *in) {
	unsigned which = input_u8(in);
	uint32_t reg = which & 1 ? REG_N(RDT, which / 2 % 3) : REG_N(TDT, which / 2 % 3);

	__atomic_store_n(softnic_doorbell(nic, reg), input_u16(in), __ATOMIC_RELEASE);
}

static void fill(struct input *in) {
	uint8_t *to = memory[input_u8(in) % REGIONS] + input_u16(in) % ((PAGES - 1) * PAGE);
	struct input part = input_part(in, input_u8(in));

	memcpy(to, part.data, part.len);
}

static void inject(struct input *in) {
	static uint8_t frame[16384];
	size_t len = input_u16(in) % sizeof(frame);
	unsigned how = input_u8(in);
	uint8_t *exact = malloc(len + 1);

	memset(exact, how, len);
	if (len > 14) exact[14] = input_u8(in) % 3;
	if (how & 1)
		softnic_inject(nic, exact, len);
	else
		softnic_inject_bad_crc(nic, exact, len);
	free(exact);
}

static void set_fault(struct input *in) {
	static const char *const faults[] = {
	    "none",	  "reset-stuck",   "enable-late:2", "enable-never", "disable-late:2",
	    "link-down",  "disable-never", "link-late:1",   "all-ones",	    "torn",
	    "len-zero:2", "bad-crc:2",	   "dd-late:3",	    "tx-stop",	    "rx-stop",
	    "dd-late:1",  "master-stuck",  "secrx-stuck",   "eeprom-stuck", "semaphore-held",
	};

	MUST(softnic_fault(nic, faults[input_u8(in) % (sizeof(faults) / sizeof(faults[0]))]) == 0,
	     "%s", ixdp_error());
}

static void toggle_mapping(struct input *in) {
	unsigned i = input_u8(in) % REGIONS;

	if (mapped[i])
		softnic_dma_unmap(nic, iovas[i], PAGES * PAGE);
	else
		MUST(softnic_dma_map(nic, memory[i], PAGES * PAGE, iovas[i]) == 0, "%s",
		     ixdp_error());
	mapped[i] = !mapped[i];
}

static void step(struct input *in) {
	unsigned frames = input_u8(in) % 128;
	unsigned moved = softnic_step(nic, frames);

	/* Frames that wait in the packet buffer come before those on the wire. */
	MUST(moved <= 3 * frames, "asked for %u, moved %u", frames, moved);
}

static void one_op(struct input *in) {
	struct ixdp_wire_stats stats;
	uint32_t reg;

	switch (input_u8(in) % 16) {
	case 0:
		reg = some_register(in);
		softnic_write32(nic, reg, input_u32(in));
		break;
	case 1:
		softnic_read32(nic, some_register(in));
		break;
	case 2:
		start_queue(in, true);
		break;
	case 3:
		start_queue(in, false);
		break;
	case 4:
	case 5:
		write_descriptors(in);
		break;
	case 6:
	case 7:
		ring_doorbell(in);
		break;
	case 8:
		fill(in);
		break;
	case 9:
		inject(in);
		break;
	case 10:
		set_fault(in);
		break;
	case 11:
		toggle_mapping(in);
		break;
	case 12:
		held = input_u8(in);
		softnic_steer(nic, held & 1 ? steer : NULL, NULL);
		break;
	case 13:
		softnic_bus_master(nic, input_u8(in) & 3);
		softnic_wire_stats(nic, &stats);
		break;
	default:
		step(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
	/* The test's own wire takes the place of the first one. */
	static const char *const names[] = {"f,strict=off,peer=loop", "f,strict=off,peer=loop",
					    "f,strict=off,peer=gen,size=1514", "f"};
	struct input in = {data, len};
	unsigned kind = input_u8(&in) % 4;

	held = 0;
	MUST(softnic_open(&nic, names[kind]) == 0, "%s", ixdp_error());
	if (kind == 0) softnic_tap(nic, on_sent, NULL);
	softnic_bus_master(nic, true);
	for (unsigned i = 0; i < REGIONS; i++) {
		memset(memory[i], 0, PAGES * PAGE);
		mapped[i] = false;
	}
	for (unsigned i = 0; i < REGIONS; i++)
		toggle_mapping(&(struct input){(const uint8_t[]){i}, 1});
	for (unsigned ops = 0; in.len > 0 && ops < MAX_OPS; ops++)
		one_op(&in);
	softnic_step(nic, 64);
	softnic_close(nic);
	return 0;
}
