/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the software NIC: its state, and what its files offer each other. README.md has the order
 * in which to read them.
 *
 * Locks, in the order in which they are taken: life (open and close, thread.c), the list of NICs
 * (thread.c), a NIC's own, the wire's. Everything in struct softnic but the doorbells is touched
 * under the NIC's lock only, and all DMA happens under it.
 */
#pragma once

#include "../base/error.h"
#include "../driver/regs.h"
#include "nic_packet.h"
#include "nic_regs.h"
#include "softnic.h"
#include "wire.h"

#include <pthread.h>

enum {
	NIC_BAR_SIZE = 0x20000,
	NIC_RX_QUEUES = 2 * REG_RDT_COUNT,
	NIC_TX_QUEUES = REG_TDT_COUNT,
	NIC_FCS = 4,
	NIC_FRAME_MIN = 64,	   /* with FCS */
	NIC_FRAME_MAX = 15872,	   /* 15.5 KB with FCS: no frame may be larger, section 7.2.3.2.2 */
	NIC_FIFO_MAX = 512 * 1024, /* bytes of the receive packet buffer, section 8.2.3.8.9 */
	NIC_PACKET_MAX = 256 * 1024, /* to be cut into segments, with its headers */
	NIC_OCTETS = 3 + 16 + 16,    /* counters of octets */
	NIC_LATE_MAX = 1024,
};

/* --- state ----------------------------------------------------------------------------------- */

/*
 * A mutex that nobody overtakes for long: who waits for the mutex holds the turnstile, so that a
 * hardware thread that unlocks and locks again in a loop has to let it pass first.
 */
struct nic_lock {
	pthread_mutex_t turnstile;
	pthread_mutex_t mutex;
};

/* Memory that the NIC may touch. */
struct nic_region {
	uint64_t iova;
	uint64_t len;
	uint8_t *addr;
};

/* What the NIC remembers of a queue, receive or transmit, beside its registers. */
struct nic_queue {
	_Alignas(64) uint32_t doorbell; /* the tail: stored by the driver, on a line of its own */

	_Alignas(64) uint32_t tail; /* as last looked at */
	uint64_t looked;	    /* in this step */
	unsigned ring_region;	    /* where the last DMA went: looked at first for the next */
	unsigned data_region;
	unsigned without_rs; /* TX: descriptors since the last one with RS */
	unsigned segments;   /* TX: of the packet at the head, that have left already */
	struct nic_context contexts[NIC_CONTEXTS]; /* TX */
	bool hung;				   /* until it is enabled again */
	bool switching; /* fault: ENABLE will change after so many polls */
	unsigned polls;
};

/* A ring as its registers describe it. */
struct nic_ring {
	struct nic_queue *queue;
	uint64_t base;
	uint32_t size; /* descriptors */
	uint32_t base_reg;
	uint32_t tail_reg;
	uint32_t *head; /* the head register */
};

/* Frames that wait in the NIC's packet buffer, oldest first: fifo.c. */
struct nic_fifo {
	uint8_t *data; /* 2 * NIC_FIFO_MAX */
	size_t begin, end;
	size_t used; /* bytes, records included: what RXPBSIZE limits */
};

/* A write-back that the dd-late fault holds back. */
struct nic_late {
	struct nic_ring ring;
	uint32_t index;
	uint64_t qw1;
	uint64_t due; /* step */
};

struct nic_tap {
	struct wire wire;
	bool (*sent)(const uint8_t *frame, size_t len, void *arg);
	void *arg;
	struct ixdp_wire_stats stats;
};

/* fault.c has the table; the order is the same. */
enum nic_fault {
	FAULT_RESET_STUCK,
	FAULT_EEPROM_STUCK,
	FAULT_DMAI_STUCK,
	FAULT_ENABLE_LATE,
	FAULT_ENABLE_NEVER,
	FAULT_DISABLE_LATE,
	FAULT_DISABLE_NEVER,
	FAULT_MASTER_STUCK,
	FAULT_LINK_LATE,
	FAULT_LINK_DOWN,
	FAULT_LINK_FLAP,
	FAULT_SECRX_STUCK,
	FAULT_SEMAPHORE_HELD,
	FAULT_WRONG_MAC,
	FAULT_ALL_ONES,
	FAULT_GONE_AFTER,
	FAULT_TORN,
	FAULT_LEN_ZERO,
	FAULT_BAD_CRC,
	FAULT_DD_LATE,
	FAULT_TX_STOP,
	FAULT_RX_STOP,
	FAULT_RS_HANG,
	FAULT_IOMMU,
	FAULT_STALE_COUNTERS,
	FAULT_CORRUPT,
	FAULT_MISCOUNT,
	FAULT_NO_RSS,
	FAULT_NO_OFFLOAD,
	FAULT_NO_FILTER,
	FAULT_COUNT,
};

/* What strict checks find, section by section of the driver's life; strict.c logs each once. */
enum nic_violation {
	VIOLATION_STRAY_DMA, /* reported even with strict=off */
	VIOLATION_RESERVED,
	VIOLATION_READ_ONLY,
	VIOLATION_FCTRL_LIVE,
	VIOLATION_HEAD_LIVE,
	VIOLATION_TAIL_EARLY,
	VIOLATION_TAIL_OUTSIDE,
	VIOLATION_TAIL_IS_HEAD,
	VIOLATION_RING_UNMAPPED,
	VIOLATION_RX_BUFFERS,
	VIOLATION_DCA,
	VIOLATION_QUEUE_64,
	VIOLATION_DESCRIPTOR,
	VIOLATION_NO_FCS,
	VIOLATION_PAYLEN,
	VIOLATION_RS_DISTANCE,
	VIOLATION_MTQC_LIVE,
	VIOLATION_UNKNOWN_MODE,
};

struct softnic {
	struct nic_lock lock;
	char name[IXDP_NAME_MAX];
	uint8_t mac[6];
	struct softnic *next; /* list of all, thread.c */
	struct wire *wire;
	struct nic_tap tap;
	struct softnic_hooks hooks;
	unsigned (*steer)(const uint8_t *frame, size_t len, void *arg);
	void *steer_arg;

	uint32_t regs[NIC_BAR_SIZE / 4]; /* by offset; heads too, but tails are the doorbells */
	uint8_t unknown[NIC_BAR_SIZE / 4 / 8]; /* unknown registers that were logged */
	uint32_t octets_high[NIC_OCTETS]; /* GORCH and so on as reads of the low halves left them */
	unsigned rars;			  /* receive addresses in use: those above are not valid */
	bool link;			  /* as last reported in EICR */
	uint64_t link_at;		  /* when it comes up */

	bool bus_master;
	struct nic_region *regions; /* ascending iova */
	unsigned n_regions, room_regions;

	uint64_t steps;
	uint64_t tx_on[NIC_TX_QUEUES / 64]; /* enabled TX queues, a bit each */
	unsigned tx_turn;		    /* the TX queue that is next */
	struct nic_queue rx[NIC_RX_QUEUES];
	struct nic_queue tx[NIC_TX_QUEUES];
	struct nic_fifo fifo;
	uint8_t scratch[NIC_PACKET_MAX]; /* a packet that is not in one piece elsewhere */
	uint8_t segment[NIC_FRAME_MAX];	 /* a frame after its offloads */

	uint64_t paused_until; /* as a PAUSE frame has asked */
	bool xoff;	       /* the other end has been asked to pause, and again at: */
	uint64_t xoff_again;

	uint32_t faults; /* a bit each */
	uint64_t fault_arg[FAULT_COUNT];
	uint64_t flap_ns;	       /* link-flap: how long it is down, and up in between */
	uint64_t dmas;		       /* counted for iommu */
	uint64_t moved;		       /* frames, counted for gone-after */
	uint64_t arrivals, deliveries; /* counted for bad-crc and len-zero */
	uint64_t stored, sent;	       /* counted for corrupt and miscount */
	unsigned wedged;	       /* resets until DMA works again, after master-stuck */
	uint64_t reset_at;
	struct nic_late late[NIC_LATE_MAX];
	unsigned late_begin, late_count;

	bool strict;
	unsigned violations;
	char violation[256];
	struct {
		enum nic_violation kind;
		uint32_t reg;
	} logged[64];
	unsigned n_logged;
};

/* MTQC with which queues 64 to 127 run: RT_ENA and 4 traffic classes, section 8.2.3.9.15. */
enum { NIC_MTQC_128_QUEUES = MTQC_RT_ENA | 2u << MTQC_NUM_TC_OR_Q_LOW };

/* A register in storage. */
#define NIC_REG(nic, name) ((nic)->regs[REG_##name / 4])
#define NIC_RXQ(nic, name, n) ((nic)->regs[NIC_RXQ_REG(name, n) / 4])
#define NIC_REG_N(nic, name, n) ((nic)->regs[REG_N(name, n) / 4])

static inline bool nic_fault(const struct softnic *nic, enum nic_fault fault) {
	return unlikely(nic->faults >> fault & 1);
}

/* --- control.c: reset, link, and all that is not a queue ---------------------------------------
 */

/* What CTRL.RST and power-on do. */
void nic_reset(struct softnic *nic);
/* It comes up anew, with its faults. */
void nic_link_restart(struct softnic *nic);
/* The link's state now; notes a change in EICR. */
bool nic_link_up(struct softnic *nic);
/* DMA may happen: bus master, no master disable, no fault that forbids it. */
bool nic_dma_on(const struct softnic *nic);

uint32_t nic_read_status(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_eec(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_swsm(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_rdrxctl(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_secrxstat(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_links(struct softnic *nic, unsigned n, uint32_t stored);
void nic_write_ctrl(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_eicr(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_eimc(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_eimc_ex(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_fctrl(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_autoc(struct softnic *nic, unsigned n, uint32_t value);

/* --- queue.c: what both kinds of queue have in common ------------------------------------------
 */

/* Inline, as what is done once a frame. */
static inline struct nic_ring nic_rx_ring(struct softnic *nic, unsigned n) {
	return (struct nic_ring){
	    .queue = &nic->rx[n],
	    .base = (uint64_t)NIC_RXQ(nic, RDBAH, n) << 32 | NIC_RXQ(nic, RDBAL, n),
	    .size = NIC_RXQ(nic, RDLEN, n) / sizeof(struct desc),
	    .base_reg = NIC_RXQ_REG(RDBAL, n),
	    .tail_reg = NIC_RXQ_REG(RDT, n),
	    .head = &NIC_RXQ(nic, RDH, n),
	};
}

static inline struct nic_ring nic_tx_ring(struct softnic *nic, unsigned n) {
	return (struct nic_ring){
	    .queue = &nic->tx[n],
	    .base = (uint64_t)NIC_REG_N(nic, TDBAH, n) << 32 | NIC_REG_N(nic, TDBAL, n),
	    .size = NIC_REG_N(nic, TDLEN, n) / sizeof(struct desc),
	    .base_reg = REG_N(TDBAL, n),
	    .tail_reg = REG_N(TDT, n),
	    .head = &NIC_REG_N(nic, TDH, n),
	};
}

/* Looks at the doorbell: the tail, or the head (nothing to do) if the tail makes no sense. */
uint32_t nic_ring_tail(struct softnic *nic, const struct nic_ring *ring);
/* Reports that a descriptor is not in memory or not in the ring; the queue hangs. */
void nic_ring_stray(struct softnic *nic, const struct nic_ring *ring, uint32_t index);

static inline uint32_t nic_ring_next(const struct nic_ring *ring, uint32_t index) {
	return index + 1 == ring->size ? 0 : index + 1;
}

uint32_t nic_read_rdt(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_tdt(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_rxdctl(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_txdctl(struct softnic *nic, unsigned n, uint32_t stored);
void nic_write_rdh(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_tdh(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_rdt(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_tdt(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_rxdctl(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_mtqc(struct softnic *nic, unsigned n, uint32_t value);
void nic_write_txdctl(struct softnic *nic, unsigned n, uint32_t value);

/* --- dma.c -------------------------------------------------------------------------------------
 */

static inline bool nic_region_has(const struct nic_region *region, uint64_t iova) {
	return iova >= region->iova && iova - region->iova < region->len;
}

uint8_t *nic_dma_look_elsewhere(const struct softnic *nic, uint64_t iova, uint64_t len,
				unsigned *hint);
/*
 * The memory of len bytes at iova if it is in one piece, else NULL, which need not be an error.
 * hint: the caller's region of last time.
 */
static inline uint8_t *nic_dma_look(const struct softnic *nic, uint64_t iova, uint64_t len,
				    unsigned *hint) {
	const struct nic_region *last = &nic->regions[*hint];

	if (likely(*hint < nic->n_regions && nic_region_has(last, iova) &&
		   last->len - (iova - last->iova) >= len))
		return last->addr + (iova - last->iova);
	return nic_dma_look_elsewhere(nic, iova, len, hint);
}
/* The iommu fault, which must be set: whether this DMA is refused. */
bool nic_dma_refused(struct softnic *nic);

/* A ring's descriptor, or NULL: stray DMA, reported, and the queue hangs. */
static inline struct desc *nic_ring_desc(struct softnic *nic, const struct nic_ring *ring,
					 uint32_t index) {
	void *desc = nic_dma_look(nic, ring->base + index * sizeof(struct desc),
				  sizeof(struct desc), &ring->queue->ring_region);

	if (nic_fault(nic, FAULT_IOMMU) && nic_dma_refused(nic)) desc = NULL;
	/* Outside: a head that was written so. */
	if (likely(desc && index < ring->size)) return desc;
	nic_ring_stray(nic, ring, index);
	return NULL;
}

/* Every byte of it is mapped, in whatever pieces. */
bool nic_dma_mapped(const struct softnic *nic, uint64_t iova, uint64_t len);
/*
 * Copies, across regions where need be. False: not all of it is mapped; reported against reg, and
 * nothing is copied.
 */
bool nic_dma_read(struct softnic *nic, uint64_t iova, void *to, size_t len, unsigned *hint,
		  uint32_t reg);
bool nic_dma_write(struct softnic *nic, uint64_t iova, const void *from, size_t len, unsigned *hint,
		   uint32_t reg);

/* --- headers.c, checksum.c, rss.c
 * --------------------------------------------------------------------------
 */

/* The hash of a frame whose headers are known, and its queue if there is one. */
void nic_rss(const struct softnic *nic, struct nic_frame *frame);
void nic_write_mrqc(struct softnic *nic, unsigned n, uint32_t value);

/* --- rx.c, writeback.c, filter.c, fifo.c, tx.c, stats.c
 * -----------------------------------------------------
 */

/* Each moves at most `frames` frames, and returns how many were dealt with. */
unsigned nic_rx_run(struct softnic *nic, unsigned frames, uint64_t now);
unsigned nic_tx_run(struct softnic *nic, unsigned frames, uint64_t now);

/* A queue hangs because of the descriptor at its head, which `why` describes. Returns false. */
bool nic_tx_hang(struct softnic *nic, const struct nic_ring *ring, enum nic_violation kind,
		 const char *why, unsigned long long value);

/* offload.c. False: the queue hangs. */
bool nic_context_write(struct softnic *nic, const struct nic_ring *ring, const struct desc *d);
/* Reads what a frame's first descriptor asks for (a legacy one's last). */
bool nic_offload_read(struct softnic *nic, const struct nic_ring *ring, uint64_t first,
		      uint64_t last, size_t len, struct nic_offload *offload);
/* Makes frame n of the packet, in nic->segment, and returns its length. */
size_t nic_offload_frame(struct softnic *nic, const struct nic_offload *offload,
			 const uint8_t *data, size_t len, unsigned n);

/* A frame arrives and waits in the packet buffer. False: no room, and it was counted as missed. */
bool nic_rx_arrive(struct softnic *nic, const uint8_t *frame, size_t len, bool bad_crc);

static inline bool nic_strips_vlan(const struct softnic *nic, const struct nic_frame *frame) {
	return frame->headers.tagged && NIC_RXQ(nic, RXDCTL, frame->queue) & RXDCTL_VME &&
	       !nic_fault(nic, FAULT_NO_OFFLOAD);
}

void nic_writeback_of(const struct softnic *nic, const struct nic_frame *frame,
		      struct nic_writeback *wb);
/* The second quad word of one of its descriptors, with len bytes. */
uint64_t nic_writeback_qw1(const struct nic_writeback *wb, bool advanced, bool last, size_t len);

enum nic_match { NIC_MATCH_NONE, NIC_MATCH_EXACT, NIC_MATCH_INEXACT };
/* What the L2 filters say to a frame whose headers are known, sections 7.1.1.1 and 8.2.3.7. */
enum nic_match nic_filter(const struct softnic *nic, const struct nic_frame *frame);
void nic_write_rah(struct softnic *nic, unsigned n, uint32_t value);
void nic_filter_addresses(struct softnic *nic); /* the RAH have changed */

bool nic_fifo_push(struct softnic *nic, const struct nic_frame *frame);	  /* false: no room */
bool nic_fifo_peek(const struct nic_fifo *fifo, struct nic_frame *frame); /* false: empty */
void nic_fifo_pop(struct nic_fifo *fifo);

/* Adds to a counter, which sticks at its maximum. Inline: there are ten of them for every frame. */
static inline void nic_count(struct softnic *nic, uint32_t reg, uint64_t events) {
	uint32_t *count = &nic->regs[reg / 4];

	*count = likely(events <= UINT32_MAX - *count) ? *count + events : UINT32_MAX;
}

/* The same with 36 bits in two registers. */
static inline void nic_count_octets(struct softnic *nic, uint32_t reg_low, uint64_t octets) {
	const uint64_t full = (UINT64_C(1) << 36) - 1;
	uint32_t *low = &nic->regs[reg_low / 4];
	uint64_t count = ((uint64_t)low[1] << 32 | low[0]) + octets;

	if (unlikely(count > full)) count = full;
	low[0] = (uint32_t)count;
	low[1] = count >> 32;
}

/* The statistics counter of a queue: four of them have its number in one register, a byte each. */
static inline unsigned nic_rx_counter(const struct softnic *nic, unsigned queue) {
	return NIC_REG_N(nic, RQSMR, queue / 4) >> queue % 4 * 8 & 0xF;
}

static inline unsigned nic_tx_counter(const struct softnic *nic, unsigned queue) {
	return NIC_REG_N(nic, TQSM, queue / 4) >> queue % 4 * 8 & 0xF;
}

/* Adds a frame of len bytes without FCS to its class of PRC or PTC. */
void nic_count_size(struct softnic *nic, uint32_t reg_first, size_t len);
/* Adds a frame that has left to the counters of the port. */
void nic_count_sent(struct softnic *nic, const uint8_t *frame, size_t len);
bool nic_is_broadcast(const uint8_t *frame);
uint32_t nic_read_gorc_low(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_gorc_high(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_gotc_low(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_gotc_high(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_tor_low(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_tor_high(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_qbrc_low(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_qbrc_high(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_qbtc_low(struct softnic *nic, unsigned n, uint32_t stored);
uint32_t nic_read_qbtc_high(struct softnic *nic, unsigned n, uint32_t stored);

/* --- flow.c ------------------------------------------------------------------------------------
 */

/* The frame, which is good and of at least 14 bytes, is a PAUSE frame, and the MAC's business. */
bool nic_flow_takes(const struct softnic *nic, const uint8_t *frame, size_t len);
void nic_flow_act(struct softnic *nic, const uint8_t *frame);
bool nic_flow_paused(const struct softnic *nic, uint64_t now);
/* Asks the other end to pause, or to go on, if it is time for that. */
void nic_flow_run(struct softnic *nic, uint64_t now);
uint32_t nic_read_tfcs(struct softnic *nic, unsigned n, uint32_t stored);

/* --- fault.c, strict.c --------------------------------------------------------------------------
 */

/* Sets "NAME[:ARG][+NAME[:ARG]...]". 0 or -EINVAL with ixdp_error(). */
int nic_fault_set(struct softnic *nic, const char *text);

/* Publishes a descriptor's second quad word some steps later: the dd-late fault. */
void nic_write_back_late(struct softnic *nic, const struct nic_ring *ring, uint32_t index,
			 uint64_t qw1);
static inline void nic_write_back(struct softnic *nic, const struct nic_ring *ring, uint32_t index,
				  struct desc *d, uint64_t qw1) {
	if (likely(!nic_fault(nic, FAULT_DD_LATE)))
		desc_publish(d, qw1);
	else
		nic_write_back_late(nic, ring, index, qw1);
}

/* The torn fault: publishes a receive descriptor half, calls the hook, publishes the whole. */
void nic_torn(struct softnic *nic, unsigned queue, uint32_t index, struct desc *d, uint64_t half,
	      uint64_t whole);
/* The gone-after fault, which must be set: so many frames more have moved. */
void nic_fault_count(struct softnic *nic, unsigned moved);
/* Publishes held-back write-backs: those that are due, or all. */
void nic_late_run(struct softnic *nic, bool all);

/* Notes that the driver did what it must not; reg: the offset of the register it concerns. */
void nic_violation(struct softnic *nic, enum nic_violation kind, uint32_t reg, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Checks a register write for reserved bits. */
void nic_strict_write(struct softnic *nic, const struct nic_reg *reg, uint32_t offset,
		      uint32_t value);

/* --- thread.c: the open NICs, their clock, and the thread that lets them work --------------------
 */

int nic_lock_init(struct nic_lock *lock);
void nic_lock_take(struct nic_lock *lock);
void nic_lock_give(struct nic_lock *lock);

/* Serialises open and close. */
void nic_life_begin(void);
void nic_life_end(void);
/* Within: adds a NIC to the list, or takes it off; starts and ends the hardware thread. */
int nic_attach(struct softnic *nic);
void nic_detach(struct softnic *nic);
