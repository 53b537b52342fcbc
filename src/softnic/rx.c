/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving, in the order of section 7.1: a frame arrives, is judged and counted, waits for
 * descriptors (on the wire or in the packet buffer) or is dropped, and is written to memory:
 * buffers first, descriptors then, each with its second quad word last.
 */
#include "nic.h"

#include <string.h>

/* What becomes of a frame at the port, section 7.1.1 and 8.2.3.23. */
enum fate { FATE_TAKEN, FATE_FILTERED, FATE_UNDERSIZE, FATE_OVERSIZE, FATE_BAD_CRC, FATE_PAUSE };

enum { VLAN_TAG = 4 };

/* Whether a ring can take a frame now. */
enum room { ROOM, ROOM_NONE, ROOM_CLOSED };

/* In loopback the port hears itself, link or not, and nothing else: section 8.2.3.22.8. */
static bool looped(const struct softnic *nic) {
	return unlikely(NIC_REG(nic, HLREG0) & HLREG0_LPBK);
}

static bool receiving(struct softnic *nic) {
	return NIC_REG(nic, RXCTRL) & RXCTRL_RXEN &&
	       !(NIC_REG(nic, SECRXCTRL) & SECRXCTRL_RX_DIS) && (nic_link_up(nic) || looped(nic)) &&
	       !nic_fault(nic, FAULT_ALL_ONES);
}

/* The longest frame that the port takes, with FCS: a VLAN tag comes on top (8.2.3.22.13). */
static size_t longest(const struct softnic *nic, const struct nic_frame *frame) {
	size_t limit = 1518;

	if (NIC_REG(nic, HLREG0) & HLREG0_JUMBOEN)
		limit = FIELD_GET(MAXFRS_MFS, NIC_REG(nic, MAXFRS));
	limit += frame->headers.tagged ? 4 : 0;
	return limit < NIC_FRAME_MAX ? limit : NIC_FRAME_MAX;
}

/* Judges a frame without counting it, and completes it: a frame on a wire may be judged again. */
static enum fate judge(const struct softnic *nic, struct nic_frame *frame) {
	bool keep_bad = NIC_REG(nic, FCTRL) & FCTRL_SBP;
	enum nic_match match;

	frame->undersize = frame->len + NIC_FCS < NIC_FRAME_MIN;
	if (frame->len < 14 || (frame->undersize && !keep_bad)) return FATE_UNDERSIZE;
	nic_headers_parse(frame->data, frame->len, FIELD_GET(VLNCTRL_VET, NIC_REG(nic, VLNCTRL)),
			  &frame->headers);
	if (frame->len + NIC_FCS > longest(nic, frame)) return FATE_OVERSIZE;
	if (frame->bad_crc && !keep_bad) return FATE_BAD_CRC;
	if (unlikely(nic_flow_takes(nic, frame->data, frame->len)) && !frame->bad_crc)
		return FATE_PAUSE;
	match = nic_filter(nic, frame);
	if (match == NIC_MATCH_NONE) return FATE_FILTERED;
	frame->inexact = match == NIC_MATCH_INEXACT;
	frame->rss = RXD_RSS_NONE;
	frame->hash = 0;
	frame->queue = 0;
	if (FIELD_GET(MRQC_MRQE, NIC_REG(nic, MRQC)) == MRQC_MRQE_RSS &&
	    !nic_fault(nic, FAULT_NO_RSS))
		nic_rss(nic, frame);
	if (nic->steer)
		frame->queue = nic->steer(frame->data, frame->len, nic->steer_arg) % NIC_RX_QUEUES;
	return FATE_TAKEN;
}

/* What is wrong with a frame; a wrong FCS makes an undersize or oversize one something else. */
static void count_damage(struct softnic *nic, const struct nic_frame *frame, enum fate fate) {
	if (frame->undersize)
		nic_count(nic, frame->bad_crc ? REG_RFC : REG_RUC, 1);
	else if (fate == FATE_OVERSIZE)
		nic_count(nic, frame->bad_crc ? REG_RJC : REG_ROC, 1);
	else if (frame->bad_crc)
		nic_count(nic, REG_CRCERRS, 1);
}

static void count(struct softnic *nic, const struct nic_frame *frame, enum fate fate) {
	nic->arrivals++;
	nic_count(nic, REG_TPR, 1);
	nic_count_octets(nic, REG_TORL, frame->len + NIC_FCS);
	count_damage(nic, frame, fate);
	if (fate == FATE_PAUSE) nic_flow_act(nic, frame->data);
	if (fate != FATE_TAKEN || frame->bad_crc || frame->undersize) return;
	nic_count(nic, REG_GPRC, 1);
	nic_count_octets(nic, REG_GORCL, frame->len + NIC_FCS);
	nic_count_size(nic, REG_PRC, frame->len);
	if (frame->data[0] & 1)
		nic_count(nic, nic_is_broadcast(frame->data) ? REG_BPRC : REG_MPRC, 1);
}

static size_t buffer_size(const struct softnic *nic, unsigned queue) {
	return FIELD_GET(SRRCTL_BSIZEPKT, NIC_RXQ(nic, SRRCTL, queue)) * 1024;
}

/* Bytes that the frame has in memory. */
static size_t stored_size(const struct softnic *nic, const struct nic_frame *frame) {
	return frame->len + (NIC_REG(nic, HLREG0) & HLREG0_RXCRCSTRP ? 0 : NIC_FCS) -
	       (nic_strips_vlan(nic, frame) ? VLAN_TAG : 0);
}

static uint32_t owned(const struct nic_ring *ring) {
	uint32_t tail = ring->queue->tail;

	if (tail >= ring->size) return 0;
	return tail >= *ring->head ? tail - *ring->head : tail + ring->size - *ring->head;
}

/*
 * Whether the ring has the descriptors that a frame needs. The doorbell's line is the driver's: it
 * is looked at once a step, and when what was there is used up.
 */
static enum room find_room(struct softnic *nic, const struct nic_ring *ring,
			   const struct nic_frame *frame) {
	struct nic_queue *queue = ring->queue;
	size_t size, need;

	if (!(NIC_RXQ(nic, RXDCTL, frame->queue) & RXDCTL_ENABLE)) return ROOM_CLOSED;
	if (queue->hung || nic_fault(nic, FAULT_RX_STOP) || !nic_dma_on(nic)) return ROOM_NONE;
	size = buffer_size(nic, frame->queue);
	if (size == 0) return ROOM_NONE;
	need = 1;
	if (unlikely(stored_size(nic, frame) > size))
		need = (stored_size(nic, frame) + size - 1) / size;
	if (queue->looked != nic->steps) {
		queue->looked = nic->steps;
		nic_ring_tail(nic, ring);
	}
	if (owned(ring) >= need) return ROOM;
	nic_ring_tail(nic, ring);
	return owned(ring) >= need ? ROOM : ROOM_NONE;
}

/*
 * The bytes of a frame that go to memory: all of them as they came, but for a tag that is taken off
 * and the frame check sequence (IEEE 802.3, 3.2.9), of the frame as it was on the wire.
 */
static const uint8_t *stored_bytes(struct softnic *nic, const struct nic_frame *frame) {
	const size_t macs = 12;
	size_t tag = nic_strips_vlan(nic, frame) ? VLAN_TAG : 0;
	size_t stored = frame->len - tag;
	bool keep_fcs = !(NIC_REG(nic, HLREG0) & HLREG0_RXCRCSTRP);

	if (likely(tag == 0 && !keep_fcs)) return frame->data;
	memmove(nic->scratch, frame->data, macs); /* in loopback it may lie there already */
	memmove(nic->scratch + macs, frame->data + macs + tag, stored - macs);
	if (keep_fcs) {
		uint32_t crc = nic_crc(NIC_CRC32, frame->data, frame->len);

		crc = htole32(frame->bad_crc ? ~crc : crc);
		memcpy(nic->scratch + stored, &crc, NIC_FCS);
	}
	return nic->scratch;
}

/* Fills one descriptor's buffer and gives it back. False: there was no descriptor in memory. */
static bool write_part(struct softnic *nic, const struct nic_ring *ring,
		       const struct nic_frame *frame, const struct nic_writeback *wb,
		       const uint8_t *data, size_t len, bool last) {
	uint32_t index = *ring->head;
	uint32_t srrctl = NIC_RXQ(nic, SRRCTL, frame->queue);
	bool advanced = FIELD_GET(SRRCTL_DESCTYPE, srrctl) == SRRCTL_DESCTYPE_ADVANCED;
	struct nic_queue *queue = ring->queue;
	struct desc *d = nic_ring_desc(nic, ring, index);
	uint64_t addr;

	if (!d) return false;
	/* Bit 0 of an advanced descriptor's address says no-snoop, section 7.1.6.1. */
	addr = le64toh(__atomic_load_n(&d->qw0, __ATOMIC_RELAXED)) & ~(uint64_t)advanced;
	nic_dma_write(nic, addr, data, len, &queue->data_region, ring->base_reg);
	if (unlikely(NIC_RXQ(nic, DCA_RXCTRL, frame->queue) & DCA_RXCTRL_MUST_BE_0 && len > 0)) {
		/* Silicon may corrupt packets then: here it always does, so that it shows. */
		uint8_t poison = ~data[len - 1];

		nic_dma_write(nic, addr + len - 1, &poison, 1, &queue->data_region, ring->base_reg);
		nic_violation(nic, VIOLATION_DCA, NIC_RXQ_REG(DCA_RXCTRL, frame->queue),
			      "bit 12 is set, which corrupts packets: clear it before the queue is "
			      "enabled (8.2.3.11.1)");
	}
	if (advanced) __atomic_store_n(&d->qw0, htole64(last ? wb->qw0 : 0), __ATOMIC_RELAXED);
	if (unlikely(nic_fault(nic, FAULT_TORN) && !nic_fault(nic, FAULT_DD_LATE)))
		nic_torn(nic, frame->queue, index, d, nic_writeback_qw1(wb, advanced, last, 0),
			 nic_writeback_qw1(wb, advanced, last, len));
	else
		nic_write_back(nic, ring, index, d, nic_writeback_qw1(wb, advanced, last, len));
	*ring->head = nic_ring_next(ring, index);
	return true;
}

static bool is_len_zero(struct softnic *nic) {
	return nic_fault(nic, FAULT_LEN_ZERO) &&
	       ++nic->deliveries % nic->fault_arg[FAULT_LEN_ZERO] == 0;
}

static void count_delivered(struct softnic *nic, const struct nic_frame *frame) {
	unsigned counter = nic_rx_counter(nic, frame->queue);

	nic_count(nic, REG_N(QPRC, counter), 1);
	nic_count_octets(nic, REG_N(QBRCL, counter), frame->len + NIC_FCS);
}

/* What the corrupt fault makes of the bytes of a frame. */
static const uint8_t *corrupted(struct softnic *nic, const uint8_t *data, size_t len) {
	if (++nic->stored % nic->fault_arg[FAULT_CORRUPT] != 0) return data;
	memmove(nic->scratch, data, len);
	nic->scratch[len - 1] ^= 0xFF;
	return nic->scratch;
}

/* Writes a frame to memory; the ring has the room. */
static void deliver(struct softnic *nic, const struct nic_ring *ring,
		    const struct nic_frame *frame) {
	size_t size = buffer_size(nic, frame->queue);
	size_t total = stored_size(nic, frame);
	const uint8_t *data = stored_bytes(nic, frame);
	struct nic_writeback wb;

	nic_writeback_of(nic, frame, &wb);
	if (unlikely(nic_fault(nic, FAULT_CORRUPT))) data = corrupted(nic, data, total);
	if (unlikely(is_len_zero(nic))) total = 0;
	for (size_t done = 0;;) {
		size_t part = total - done < size ? total - done : size;

		if (!write_part(nic, ring, frame, &wb, data + done, part, done + part == total))
			return;
		done += part;
		if (done == total) break;
	}
	count_delivered(nic, frame);
}

static void miss(struct softnic *nic, uint64_t frames) {
	nic_count(nic, REG_N(MPC, 0), frames);
	NIC_REG(nic, EICR) |= EICR_RX_MISS;
}

/* Frames that the wire had no place for have been missed, if the port was receiving. */
static void count_missed(struct softnic *nic, bool on) {
	uint64_t missed = nic->wire->ops->missed ? nic->wire->ops->missed(nic->wire) : 0;

	if (missed > 0 && on) miss(nic, missed);
}

static void drop(struct softnic *nic, const struct nic_frame *frame) {
	nic_count(nic, REG_N(QPRDC, nic_rx_counter(nic, frame->queue)), 1);
}

/* Into the packet buffer, where the frame holds up all those behind it. */
static bool store(struct softnic *nic, const struct nic_frame *frame) {
	if (nic_fifo_push(nic, frame)) return true;
	miss(nic, 1);
	return false;
}

/* True: the frame is dealt with. False: it has to wait. */
static bool hand_over(struct softnic *nic, const struct nic_frame *frame, enum room room,
		      const struct nic_ring *ring) {
	if (likely(room == ROOM))
		deliver(nic, ring, frame);
	else if (room == ROOM_NONE && !(NIC_RXQ(nic, SRRCTL, frame->queue) & SRRCTL_DROP_EN))
		return false;
	else if (room == ROOM_NONE)
		drop(nic, frame);
	return true;
}

static unsigned drain_fifo(struct softnic *nic, unsigned frames) {
	struct nic_frame frame;
	unsigned moved = 0;

	while (moved < frames && nic_fifo_peek(&nic->fifo, &frame)) {
		struct nic_ring ring = nic_rx_ring(nic, frame.queue);

		if (!hand_over(nic, &frame, find_room(nic, &ring, &frame), &ring)) break;
		nic_fifo_pop(&nic->fifo);
		moved++;
	}
	return moved;
}

/* Whether the fault strikes the frame that arrives next. */
static bool is_damaged(const struct softnic *nic) {
	return nic_fault(nic, FAULT_BAD_CRC) &&
	       (nic->arrivals + 1) % nic->fault_arg[FAULT_BAD_CRC] == 0;
}

/* The next frame on the wire. False: there is none. */
static bool next_arrival(struct softnic *nic, uint64_t now, struct nic_frame *frame) {
	frame->data = nic->wire->ops->peek(nic->wire, now, &frame->len, &frame->bad_crc);
	if (!frame->data) return false;
	frame->bad_crc |= is_damaged(nic);
	return true;
}

/*
 * A frame on the wire, while the port receives. True: taken off the wire. A wire that waits keeps
 * what has no descriptor yet, whatever DROP_EN says.
 */
static bool take_arrival(struct softnic *nic, struct nic_frame *frame) {
	enum fate fate = judge(nic, frame);
	struct nic_ring ring;
	enum room room;

	if (fate != FATE_TAKEN) {
		count(nic, frame, fate);
		return true;
	}
	ring = nic_rx_ring(nic, frame->queue);
	room = find_room(nic, &ring, frame);
	if (nic->wire->waits && room != ROOM) return false;
	count(nic, frame, fate);
	/* Nobody overtakes what waits in the packet buffer. */
	if (nic->fifo.used > 0 || !hand_over(nic, frame, room, &ring)) store(nic, frame);
	return true;
}

unsigned nic_rx_run(struct softnic *nic, unsigned frames, uint64_t now) {
	unsigned moved = drain_fifo(nic, frames);
	bool on = receiving(nic) && !looped(nic);
	struct nic_frame frame;

	count_missed(nic, on);
	if (!on && nic->wire->waits) return moved;
	while (moved < frames && next_arrival(nic, now, &frame)) {
		if (on && !take_arrival(nic, &frame)) break;
		nic->wire->ops->pop(nic->wire);
		moved++;
	}
	return moved;
}

bool nic_rx_arrive(struct softnic *nic, const uint8_t *data, size_t len, bool bad_crc) {
	struct nic_frame frame = {.data = data, .len = len, .bad_crc = bad_crc || is_damaged(nic)};
	enum fate fate;

	if (!receiving(nic)) return true;
	fate = judge(nic, &frame);
	count(nic, &frame, fate);
	return fate != FATE_TAKEN || store(nic, &frame);
}
