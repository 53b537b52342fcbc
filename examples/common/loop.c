/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop.h"

#include "elements.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum {
	BATCH = 32,
	VLAN_TAG = 4,
	WINDOW = 32, /* frames under way: so many of any size fit into rings and packet buffer */
};

int loop_open(struct loop *loop, const char *device, const struct ixdp_config *config) {
	*loop = (struct loop){
	    .config = *config,
	    .checker = ixdp_frame_checker_new(),
	    .frame = {.size = IXDP_FRAME_MIN},
	    .flows = 1,
	    .idle_s = LOOP_IDLE_S,
	};
	const int err = loop->checker ? ixdp_open(&loop->port, device, config) : -ENOMEM;

	if (err) {
		ixdp_frame_checker_free(loop->checker);
		return err;
	}
	ixdp_mac_get(loop->port, loop->frame.src_mac);
	ixdp_mac_get(loop->port, loop->frame.dst_mac);
	return 0;
}

void loop_close(struct loop *loop) {
	ixdp_close(loop->port);
	ixdp_frame_checker_free(loop->checker);
}

static void send_one(struct loop *loop, struct loop_result *result) {
	struct ixdp_pool *pool = ixdp_port_pool(loop->port);
	const unsigned elements = elements_of(loop->frame.size), k = result->sent;
	struct ixdp_pkt pkts[BATCH];
	uint8_t data[IXDP_FRAME_MAX];
	const unsigned n = ixdp_alloc(pool, pkts, elements);

	if (n == elements) {
		ixdp_frame_write(&loop->frame, k % loop->flows, k / loop->flows, data);
		elements_scatter(pkts, data, loop->frame.size);
		if (loop->alter) loop->alter(loop->arg, k, pkts);
		if (ixdp_tx(loop->port, 0, pkts, n) > 0) {
			loop->sent_bytes +=
			    loop->frame.size + (pkts->flags & IXDP_PKT_VLAN ? VLAN_TAG : 0);
			loop->sent++;
			result->sent++;
			return;
		}
	}
	ixdp_free(pool, pkts, n);
}

static unsigned receive_some(struct loop *loop, unsigned queue) {
	struct ixdp_pkt pkts[BATCH];
	uint8_t room[ELEMENTS_MAX_FRAME];
	const int n = ixdp_rx(loop->port, queue, pkts, BATCH);
	unsigned frames = 0;

	for (unsigned i = 0, elements; (int)i < n; i += elements) {
		unsigned len;
		const uint8_t *data = elements_gather(&pkts[i], room, &len, &elements);

		loop->received_bytes += len;
		loop->received++;
		if (loop->look) {
			if (data != room) memcpy(room, data, len);
			frames += loop->look(loop->arg, queue, &pkts[i], room, len);
		} else {
			ixdp_frame_check(loop->checker, data, len);
			frames++;
		}
	}
	if (n > 0) ixdp_free(ixdp_port_pool(loop->port), pkts, n);
	return frames;
}

struct loop_result loop_run(struct loop *loop, unsigned frames, unsigned expected) {
	const time_t limit = time(NULL) + LOOP_LIMIT_S;
	struct loop_result result = {0};
	time_t idle = time(NULL);
	unsigned moved;

	loop->frame.generator = ixdp_frame_generator();
	do {
		moved = 0;
		if (result.sent < frames &&
		    result.sent < result.back + WINDOW + (frames - expected))
			send_one(loop, &result);
		for (unsigned queue = 0; queue < loop->config.rx_queues; queue++)
			moved += receive_some(loop, queue);
		result.back += moved;
		if (moved)
			idle = time(NULL);
		else
			sched_yield(); /* to the thread of the software NIC */
	} while ((moved || result.back < expected || result.sent < frames) &&
		 time(NULL) <= idle + (time_t)loop->idle_s && time(NULL) < limit);
	if (result.back < expected) loop->idle_s = 1;
	result.whole = (unsigned)ixdp_frame_checker_seen(loop->checker, loop->frame.generator);
	return result;
}
