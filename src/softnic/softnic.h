/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software 82599 as its users see it: the bus, the hardware thread, tests, and later a
 * vfio-user server. A NIC is a set of registers, a DMA engine, and a wire.
 *
 * Register side effects happen inside softnic_read32() and softnic_write32(), under the NIC's lock.
 * Packets move in softnic_step(), called by the hardware thread (one a process, for all NICs), or,
 * after softnic_set_stepped(true), by the test alone.
 */
#pragma once

#include <ixdp/wire.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct softnic;
struct wire;

/*
 * Makes the NIC of a port name, "NAME[,key=value...]" (what follows "soft:"), and plugs its wire.
 * Returns 0 or -errno with ixdp_error(): -EINVAL (name, key, value: which), -EBUSY (name in use, or
 * the peer's cable is plugged elsewhere), -ENOENT (capture file) and so on.
 */
int softnic_open(struct softnic **nic, const char *name);

/* Unplugs and frees it. The driver has let go of doorbells and memory. */
void softnic_close(struct softnic *nic);

/* NAME. */
const char *softnic_name(const struct softnic *nic);

/* BAR0. Offsets are multiples of 4. Any thread. */
uint32_t softnic_read32(struct softnic *nic, uint32_t reg);
void softnic_write32(struct softnic *nic, uint32_t reg, uint32_t value);

/* The 4 bytes behind RDT or TDT of a queue, which the NIC polls with acquire; NULL for others. */
volatile uint32_t *softnic_doorbell(struct softnic *nic, uint32_t reg);

/* Config space command bit 2. Off: no DMA from this moment on. */
void softnic_bus_master(struct softnic *nic, bool on);

/*
 * The memory that the NIC may touch: len bytes at addr appear to it at iova. Anything else is
 * reported as an IOMMU would report it, and not done. softnic_dma_unmap() waits for DMA under way.
 */
int softnic_dma_map(struct softnic *nic, void *addr, size_t len, uint64_t iova);
void softnic_dma_unmap(struct softnic *nic, uint64_t iova, size_t len);

/* The NIC's clock: CLOCK_MONOTONIC, or model time when stepped. */
uint64_t softnic_now_ns(struct softnic *nic);
void softnic_delay_us(struct softnic *nic, unsigned us); /* stepped: advances and steps */

int softnic_wire_stats(struct softnic *nic, struct ixdp_wire_stats *stats);
void softnic_wire_stop(struct softnic *nic);

/* --- for tests and benchmarks ------------------------------------------------------------- */

/* Before the first NIC is opened: no hardware thread, time is model time. Process wide. */
void softnic_set_stepped(bool on);

/*
 * Lets the NIC work: at most `frames` frames in each direction. Advances model time by 1 us when
 * stepped. Returns the frames moved.
 */
unsigned softnic_step(struct softnic *nic, unsigned frames);

/* Advances model time for all stepped NICs, without work. */
void softnic_advance_ns(uint64_t ns);

/*
 * Replaces the wire by the test itself. sent: called for each frame the NIC transmits (with its
 * padding, without FCS), returns false to make the NIC hold it and try again later; NULL drops.
 */
void softnic_tap(struct softnic *nic, bool (*sent)(const uint8_t *frame, size_t len, void *arg),
		 void *arg);

/* With a tap: a frame (without FCS) arrives. False: the NIC's packet buffer is full. */
bool softnic_inject(struct softnic *nic, const void *frame, size_t len);

/* The same with a wrong FCS. */
bool softnic_inject_bad_crc(struct softnic *nic, const void *frame, size_t len);

/*
 * Chooses the receive queue of a frame instead of the NIC, which has RSS for it; NULL: the NIC
 * does. May be asked again about a frame that had to wait. Called under the NIC's lock, as the
 * other callbacks of a test (but softnic_hooks.access) are: they must not call the NIC.
 */
void softnic_steer(struct softnic *nic,
		   unsigned (*queue_of)(const uint8_t *frame, size_t len, void *arg), void *arg);

/* Sets up a fault by hand, as fault=NAME[:ARG] does; "none" clears all. 0 or -EINVAL. */
int softnic_fault(struct softnic *nic, const char *fault);

/*
 * What strict checks and the DMA check have found: how many, and the latest in words ("" if none).
 * strict=off turns strict checks off; stray DMA is always reported. Each is also logged (warning).
 */
unsigned softnic_violations(struct softnic *nic);
const char *softnic_last_violation(struct softnic *nic);

/* Registers without side effects, for looking and for presetting counters. */
uint32_t softnic_peek(struct softnic *nic, uint32_t reg);
void softnic_poke(struct softnic *nic, uint32_t reg, uint32_t value);

/* An open NIC by its name, or NULL. */
struct softnic *softnic_find(const char *name);

/*
 * Called between the two stores of the torn write-back fault, with the descriptor visible half
 * written, and on every register access (write: value; read: value returned); NULL turns it off.
 */
struct softnic_hooks {
	void (*torn)(struct softnic *nic, unsigned queue, unsigned index, void *arg);
	void (*access)(struct softnic *nic, bool write, uint32_t reg, uint32_t value, void *arg);
	void *arg;
};
void softnic_set_hooks(struct softnic *nic, const struct softnic_hooks *hooks);
