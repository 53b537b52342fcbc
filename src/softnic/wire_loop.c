/* SPDX-License-Identifier: BSD-3-Clause */
/* peer=loop: what the port sends comes back to it; when that piles up, the port has to hold it. */
#include "wire_kinds.h"

#include "../base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct loop {
	struct wire wire;
	struct wire_plug plug;
	struct wire_queue queue;
	struct ixdp_wire_stats totals;
};

static const uint8_t *loop_peek(struct wire *wire, uint64_t now_ns, size_t *len, bool *bad_crc) {
	struct loop *loop = (struct loop *)wire;

	(void)now_ns;
	*bad_crc = false;
	return wire_queue_front(&loop->queue, len);
}

static void loop_pop(struct wire *wire) {
	struct loop *loop = (struct loop *)wire;
	size_t len;

	if (!wire_queue_front(&loop->queue, &len)) return;
	wire_count_to_port(&loop->totals, len);
	wire_queue_pop(&loop->queue);
}

static bool loop_send(struct wire *wire, const uint8_t *frame, size_t len, uint64_t now_ns) {
	struct loop *loop = (struct loop *)wire;

	(void)now_ns;
	if (!wire_queue_put(&loop->queue, frame, len)) return false;
	wire_count_from_port(&loop->totals, len);
	return true;
}

static void loop_stats(struct wire *wire, struct ixdp_wire_stats *stats) {
	*stats = ((struct loop *)wire)->totals;
}

static void loop_close(struct wire *wire) {
	struct loop *loop = (struct loop *)wire;

	wire_plug_out(&loop->plug);
	wire_queue_close(&loop->queue);
	free(loop);
}

static const struct wire_ops loop_ops = {
    .peek = loop_peek,
    .pop = loop_pop,
    .send = loop_send,
    .stats = loop_stats,
    .close = loop_close,
};

int wire_loop_open(struct wire **wire, const struct wire_request *request) {
	struct loop *loop = calloc(1, sizeof(*loop));
	int err;

	if (!loop) return ixdp_fail(ENOMEM, "soft:%s: out of memory", request->name->name);
	loop->wire.ops = &loop_ops;
	loop->wire.waits = true;
	strcpy(loop->plug.name, request->name->name);
	err = wire_queue_open(&loop->queue);
	if (err) goto free_loop;
	err = wire_plug_in(&loop->plug);
	if (err) goto close_queue;
	*wire = &loop->wire;
	return 0;

close_queue:
	wire_queue_close(&loop->queue);
free_loop:
	free(loop);
	return err;
}
