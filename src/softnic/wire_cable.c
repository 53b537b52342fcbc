/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer=NAME, or no peer at all: one end of a cable. While there is no port at the other end, it is
 * a sink that checks. Each end has a queue for what comes to it, put in by the other end.
 */
#include "wire_kinds.h"

#include "checker.h"

#include "../base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct cable {
	struct wire wire;
	struct wire_plug plug;
	struct wire_sink sink;
	struct ixdp_wire_stats totals;
	bool passed; /* the latest frame went to the other end */

	pthread_spinlock_t lock; /* holds `other` still, and open, while a frame goes there */
	struct cable *other;

	struct wire_queue inbound;
	uint64_t missed; /* frames that did not fit; atomic */
};

void wire_cable_connect(struct cable *cable, struct cable *other) {
	pthread_spin_lock(&cable->lock);
	cable->other = other;
	pthread_spin_unlock(&cable->lock);
}

void wire_cable_disconnect(struct cable *cable) {
	struct cable *other = cable->other;

	if (!other) return;
	wire_cable_connect(cable, NULL);
	wire_cable_connect(other, NULL);
}

static const uint8_t *cable_peek(struct wire *wire, uint64_t now_ns, size_t *len, bool *bad_crc) {
	struct cable *cable = (struct cable *)wire;

	(void)now_ns;
	*bad_crc = false;
	return wire_queue_front(&cable->inbound, len);
}

static void cable_pop(struct wire *wire) {
	struct cable *cable = (struct cable *)wire;
	size_t len;

	if (!wire_queue_front(&cable->inbound, &len)) return;
	wire_count_to_port(&cable->totals, len);
	wire_queue_pop(&cable->inbound);
}

/* To the other end, if there is one. What finds no room there is lost, as with any NIC. */
static bool pass(struct cable *cable, const uint8_t *frame, size_t len) {
	struct cable *other;

	pthread_spin_lock(&cable->lock);
	other = cable->other;
	if (other && !wire_queue_put(&other->inbound, frame, len))
		__atomic_fetch_add(&other->missed, 1, __ATOMIC_RELAXED);
	pthread_spin_unlock(&cable->lock);
	return other;
}

static bool cable_send(struct wire *wire, const uint8_t *frame, size_t len, uint64_t now_ns) {
	struct cable *cable = (struct cable *)wire;

	(void)now_ns;
	wire_count_from_port(&cable->totals, len);
	if (pass(cable, frame, len)) {
		cable->passed = true;
		return true;
	}
	if (cable->passed) checker_rejoin(cable->sink.checker);
	cable->passed = false;
	ixdp_frame_check(cable->sink.checker, frame, len);
	return true;
}

static uint64_t cable_missed(struct wire *wire) {
	return __atomic_exchange_n(&((struct cable *)wire)->missed, 0, __ATOMIC_RELAXED);
}

static void cable_stats(struct wire *wire, struct ixdp_wire_stats *stats) {
	struct cable *cable = (struct cable *)wire;
	struct ixdp_frame_counts counts;

	*stats = cable->totals;
	wire_sink_stats(&cable->sink, stats);
	ixdp_frame_checker_counts(cable->sink.checker, &counts);
	pthread_spin_lock(&cable->lock);
	stats->checks = !cable->other || counts.frames > 0;
	pthread_spin_unlock(&cable->lock);
}

static void cable_close(struct wire *wire) {
	struct cable *cable = (struct cable *)wire;

	wire_plug_out(&cable->plug);
	wire_sink_close(&cable->sink);
	wire_queue_close(&cable->inbound);
	pthread_spin_destroy(&cable->lock);
	free(cable);
}

static const struct wire_ops cable_ops = {
    .peek = cable_peek,
    .pop = cable_pop,
    .send = cable_send,
    .missed = cable_missed,
    .stats = cable_stats,
    .close = cable_close,
};

int wire_cable_open(struct wire **wire, const struct wire_request *request) {
	struct cable *cable;
	int err;

	if (request->peer && strcmp(request->peer, request->name->name) == 0)
		return ixdp_fail(EINVAL,
				 "soft:%s: peer=%s: a cable has two ends; peer=loop sends back",
				 request->name->name, request->peer);
	cable = calloc(1, sizeof(*cable));
	if (!cable) return ixdp_fail(ENOMEM, "soft:%s: out of memory", request->name->name);
	cable->wire.ops = &cable_ops;
	pthread_spin_init(&cable->lock, PTHREAD_PROCESS_PRIVATE);
	strcpy(cable->plug.name, request->name->name);
	cable->plug.cable = cable;
	if (request->peer) strcpy(cable->plug.peer, request->peer);
	err = wire_queue_open(&cable->inbound);
	if (err) goto free_cable;
	err = wire_sink_open(&cable->sink);
	if (err) goto close_queue;
	err = wire_plug_in(&cable->plug);
	if (err) goto close_sink;
	*wire = &cable->wire;
	return 0;

close_sink:
	wire_sink_close(&cable->sink);
close_queue:
	wire_queue_close(&cable->inbound);
free_cable:
	pthread_spin_destroy(&cable->lock);
	free(cable);
	return err;
}
