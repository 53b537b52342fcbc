/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that go out of a port, around, and in again: in the NIC, or by a wire that loops. */
#pragma once

#include <ixdp/ixdp.h>

enum {
	LOOP_IDLE_S = 5,   /* nothing comes any more; with frames once lost one second says so */
	LOOP_LIMIT_S = 20, /* of a run: far above what a busy machine needs */
};

struct loop {
	struct ixdp_port *port;
	struct ixdp_config config;
	struct ixdp_frame_checker *checker;
	struct ixdp_frame_config frame; /* what the next run sends; loop_run() sets the generator */
	unsigned flows;
	unsigned idle_s;
	uint64_t sent, sent_bytes, received, received_bytes; /* of all runs */

	/* Hooks of a run, NULL for none. To change frame k, of which pkt is the first element. */
	void (*alter)(void *arg, unsigned k, struct ixdp_pkt *pkt);
	/*
	 * To look at a frame instead of the checker; data may be changed. False: it is none of
	 * those that were expected back.
	 */
	bool (*look)(void *arg, unsigned queue, const struct ixdp_pkt *pkt, uint8_t *data,
		     unsigned len);
	void *arg;
};

struct loop_result {
	unsigned sent;
	unsigned back;	/* frames that came back, without unexpected ones */
	unsigned whole; /* different ones of these that the checker found as they were sent */
};

/*
 * Opens a port, for frames from itself to itself, of IXDP_FRAME_MIN bytes and one flow. Returns 0,
 * or -errno with ixdp_error().
 */
int loop_open(struct loop *loop, const char *device, const struct ixdp_config *config);

/* Sends frames on TX queue 0 until `expected` have come back, or time is over. */
struct loop_result loop_run(struct loop *loop, unsigned frames, unsigned expected);

void loop_close(struct loop *loop);
