/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of frames in a ring of bytes. A record is its length, then the frame, then padding; it
 * never wraps: where the rest of the ring is too short, a mark says so and the record is at the
 * start.
 */
#include "wire_kinds.h"

#include "../base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	RING_BYTES = 512 * 1024, /* as much as the 82599's receive packet buffer, section 1.3 */
	ALIGN = 8,
};

#define WRAP UINT32_MAX /* instead of a length */

int wire_queue_open(struct wire_queue *queue) {
	*queue = (struct wire_queue){.ring = malloc(RING_BYTES)};
	return queue->ring ? 0 : ixdp_fail(ENOMEM, "wire: no memory for a queue of frames");
}

void wire_queue_close(struct wire_queue *queue) { free(queue->ring); }

static uint64_t record_bytes(size_t len) {
	return (sizeof(uint32_t) + len + ALIGN - 1) / ALIGN * ALIGN;
}

/* From a position to the end of the ring. */
static uint64_t bytes_left(uint64_t position) { return RING_BYTES - position % RING_BYTES; }

static void *at(const struct wire_queue *queue, uint64_t position) {
	return queue->ring + position % RING_BYTES;
}

bool wire_queue_put(struct wire_queue *queue, const uint8_t *frame, size_t len) {
	/* Pairs with the release in wire_queue_pop(): bytes are written once they have been read.
	 */
	uint64_t head = __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE);
	uint64_t start = queue->tail;
	uint64_t record = record_bytes(len);
	uint32_t length = (uint32_t)len;

	if (bytes_left(start) < record) start += bytes_left(start);
	if (start + record - head > RING_BYTES) return false;
	if (start != queue->tail) *(uint32_t *)at(queue, queue->tail) = WRAP;
	*(uint32_t *)at(queue, start) = length;
	memcpy((uint8_t *)at(queue, start) + sizeof(length), frame, len);
	/* Pairs with the acquire in wire_queue_front(): the record is whole before it shows. */
	__atomic_store_n(&queue->tail, start + record, __ATOMIC_RELEASE);
	return true;
}

const uint8_t *wire_queue_front(struct wire_queue *queue, size_t *len) {
	uint32_t *record;

	if (queue->head == __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE)) return NULL;
	record = at(queue, queue->head);
	if (*record == WRAP) {
		__atomic_store_n(&queue->head, queue->head + bytes_left(queue->head),
				 __ATOMIC_RELEASE);
		record = at(queue, queue->head);
	}
	*len = *record;
	return (const uint8_t *)(record + 1);
}

void wire_queue_pop(struct wire_queue *queue) {
	size_t len;

	if (wire_queue_front(queue, &len))
		__atomic_store_n(&queue->head, queue->head + record_bytes(len), __ATOMIC_RELEASE);
}
