/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive packet buffer: frames that found no descriptor, or that a test put there, each behind
 * what is known of it. The memory is twice what the buffer may hold, so that moving what is left to
 * its start, when the end is reached, costs less than one copy per byte.
 */
#include "nic.h"

#include <string.h>

/* Records stay aligned. */
static size_t record_size(size_t len) { return (sizeof(struct nic_frame) + len + 15) / 16 * 16; }

bool nic_fifo_push(struct softnic *nic, const struct nic_frame *frame) {
	struct nic_fifo *fifo = &nic->fifo;
	size_t limit = FIELD_GET(RXPBSIZE_SIZE, NIC_REG_N(nic, RXPBSIZE, 0)) * 1024;
	size_t size = record_size(frame->len);

	if (limit > NIC_FIFO_MAX) limit = NIC_FIFO_MAX;
	if (fifo->used + size > limit) return false;
	if (fifo->end + size > 2 * NIC_FIFO_MAX) {
		memmove(fifo->data, fifo->data + fifo->begin, fifo->end - fifo->begin);
		fifo->end -= fifo->begin;
		fifo->begin = 0;
	}
	memcpy(fifo->data + fifo->end, frame, sizeof(*frame));
	memcpy(fifo->data + fifo->end + sizeof(*frame), frame->data, frame->len);
	fifo->end += size;
	fifo->used += size;
	return true;
}

bool nic_fifo_peek(const struct nic_fifo *fifo, struct nic_frame *frame) {
	if (fifo->begin == fifo->end) return false;
	memcpy(frame, fifo->data + fifo->begin, sizeof(*frame));
	frame->data = fifo->data + fifo->begin + sizeof(*frame);
	return true;
}

void nic_fifo_pop(struct nic_fifo *fifo) {
	struct nic_frame frame;

	memcpy(&frame, fifo->data + fifo->begin, sizeof(frame));
	fifo->begin += record_size(frame.len);
	fifo->used -= record_size(frame.len);
	if (fifo->begin == fifo->end) fifo->begin = fifo->end = 0;
}
