/* SPDX-License-Identifier: BSD-3-Clause */
/* peer=gen: sends test frames into the port, and checks what the port sends. */
#include "wire_kinds.h"

#include "../base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/*
	 * What may pile up while the NIC's thread is not scheduled, at least 32 frames. A generator
	 * that waits for room may catch up on more than one that then loses frames.
	 */
	BURST_MIN = 32,
	BURST_MS_WAITS = 10,
	BURST_MS_DROPS = 1,
};

struct gen {
	struct wire wire;
	struct wire_plug plug;
	struct wire_sink sink;
	struct wire_source source;
	struct ixdp_wire_stats totals;
	struct ixdp_frame_config frame;
	struct ixdp_pacer pacer;
	bool paced;
	bool unstoppable;
	bool ready;    /* the next frame is in data */
	uint64_t left; /* frames still to be handed out */
	uint64_t flows;
	uint32_t flow; /* of the next frame */
	uint64_t seq;  /* likewise */
	uint8_t data[IXDP_FRAME_MAX];
};

static const uint8_t *gen_peek(struct wire *wire, uint64_t now_ns, size_t *len, bool *bad_crc) {
	struct gen *gen = (struct gen *)wire;

	*bad_crc = false;
	*len = gen->frame.size;
	if (gen->ready) return gen->data;
	if (gen->left == 0 || (gen->paced && !ixdp_pacer_due(&gen->pacer, now_ns, 1))) return NULL;
	ixdp_frame_write(&gen->frame, (uint16_t)gen->flow, gen->seq, gen->data);
	gen->ready = true;
	return gen->data;
}

static void end(struct gen *gen) {
	gen->left = 0;
	gen->ready = false;
	__atomic_store_n(&gen->source.done, true, __ATOMIC_RELAXED);
}

static void gen_stop(struct wire *wire) {
	struct gen *gen = (struct gen *)wire;

	if (!gen->unstoppable) end(gen);
}

/* The next frame is the next flow's; after the last one they all begin again, one number on. */
static void gen_pop(struct wire *wire) {
	struct gen *gen = (struct gen *)wire;

	if (!gen->ready) return;
	gen->ready = false;
	if (++gen->flow == gen->flows) {
		gen->flow = 0;
		gen->seq++;
	}
	if (gen->paced) ixdp_pacer_sent(&gen->pacer, 1);
	wire_count_to_port(&gen->totals, gen->frame.size);
	__atomic_store_n(&gen->source.handed, gen->totals.to_port_packets, __ATOMIC_RELAXED);
	if (--gen->left == 0) end(gen);
}

static bool gen_send(struct wire *wire, const uint8_t *frame, size_t len, uint64_t now_ns) {
	struct gen *gen = (struct gen *)wire;

	(void)now_ns;
	wire_count_from_port(&gen->totals, len);
	ixdp_frame_check(gen->sink.checker, frame, len);
	return true;
}

static void gen_stats(struct wire *wire, struct ixdp_wire_stats *stats) {
	struct gen *gen = (struct gen *)wire;

	*stats = gen->totals;
	stats->exhausted = gen->left == 0;
	wire_sink_stats(&gen->sink, stats);
}

static void gen_close(struct wire *wire) {
	struct gen *gen = (struct gen *)wire;

	wire_source_remove(&gen->source);
	wire_sink_close(&gen->sink);
	wire_plug_out(&gen->plug);
	free(gen);
}

static const struct wire_ops gen_ops = {
    .peek = gen_peek,
    .pop = gen_pop,
    .send = gen_send,
    .stats = gen_stats,
    .stop = gen_stop,
    .close = gen_close,
};

/* on or off, where the key is given. */
static int read_switch(const struct wire_request *request, const char *key, bool *on) {
	const char *text = softnic_name_get(request->name, key);

	if (!text) return 0;
	*on = strcmp(text, "on") == 0;
	if (!*on && strcmp(text, "off") != 0)
		return ixdp_fail(EINVAL, "soft:%s: %s=%.40s: must be on or off",
				 request->name->name, key, text);
	return 0;
}

static int read_options(struct gen *gen, const struct wire_request *request) {
	uint64_t size = IXDP_FRAME_MIN;
	struct ixdp_rate rate;
	double pps = 0;
	bool drop = false, stop = true;
	int err;

	gen->flows = 1;
	gen->left = UINT64_MAX;
	if ((err = wire_option_number(request, "size", IXDP_FRAME_MIN, IXDP_FRAME_MAX, &size)) ||
	    (err = wire_option_number(request, "flows", 1, IXDP_FRAME_MAX_FLOWS, &gen->flows)) ||
	    (err = wire_option_number(request, "count", 1, UINT64_MAX - 1, &gen->left)) ||
	    (err = wire_option_rate(request, (unsigned)size, &rate, &pps)) ||
	    (err = read_switch(request, "drop", &drop)) ||
	    (err = read_switch(request, "stop", &stop)))
		return err;

	gen->wire.waits = !drop;
	gen->unstoppable = !stop;
	gen->frame.size = (uint16_t)size;
	gen->totals.source = true;
	gen->totals.checks = true;
	gen->totals.finite = gen->left != UINT64_MAX;
	gen->paced = pps > 0;
	if (gen->paced) {
		double pile = pps * (drop ? BURST_MS_DROPS : BURST_MS_WAITS) / 1e3;

		ixdp_pacer_init(&gen->pacer, pps, pile > BURST_MIN ? (unsigned)pile : BURST_MIN);
	}
	return 0;
}

int wire_gen_open(struct wire **wire, const struct wire_request *request) {
	struct gen *gen = calloc(1, sizeof(*gen));
	uint16_t generator = ixdp_frame_generator();
	int err;

	if (!gen) return ixdp_fail(ENOMEM, "soft:%s: out of memory", request->name->name);
	gen->wire.ops = &gen_ops;
	strcpy(gen->plug.name, request->name->name);
	gen->frame.generator = generator;
	gen->source.generator = generator;
	gen->source.home = &gen->sink;
	memcpy(gen->frame.dst_mac, request->mac, 6);
	/* A locally administered address of its own. */
	memcpy(gen->frame.src_mac,
	       (uint8_t[]){0x02, 0, 0, 0, (uint8_t)(generator >> 8), (uint8_t)generator}, 6);

	err = read_options(gen, request);
	if (err) goto free_gen;
	err = wire_plug_in(&gen->plug);
	if (err) goto free_gen;
	err = wire_sink_open(&gen->sink);
	if (err) goto plug_out;
	wire_source_add(&gen->source);
	*wire = &gen->wire;
	return 0;

plug_out:
	wire_plug_out(&gen->plug);
free_gen:
	free(gen);
	return err;
}
