/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

enum { BATCH = 32 };

struct loop {
	struct ixdp_port *port;
	struct ixdp_pool *pool;
	struct ixdp_frame_config frame;
	struct ixdp_frame_checker *checker;
	unsigned to_send, sent, received;
};

static void send_some(struct loop *loop) {
	const unsigned left = loop->to_send - loop->sent;
	struct ixdp_pkt pkts[BATCH];
	const int n = ixdp_alloc(loop->pool, pkts, left < BATCH ? left : BATCH);

	for (int i = 0; i < n; i++)
		pkts[i].len = ixdp_frame_write(&loop->frame, 0, loop->sent + i, pkts[i].data);

	const int result = ixdp_tx(loop->port, 0, pkts, n);
	const int taken = result > 0 ? result : 0;

	ixdp_free(loop->pool, pkts + taken, n - taken);
	loop->sent += taken;
}

static void receive_some(struct loop *loop) {
	struct ixdp_pkt pkts[BATCH];
	const int n = ixdp_rx(loop->port, 0, pkts, BATCH);

	for (int i = 0; i < n; i++)
		ixdp_frame_check(loop->checker, pkts[i].data, pkts[i].len);
	if (n <= 0) {
		sched_yield(); /* to the thread of the software NIC */
		return;
	}
	ixdp_free(loop->pool, pkts, n);
	loop->received += n;
}

int loop_frames(const char *device, unsigned frames, struct ixdp_frame_counts *counts) {
	const time_t limit = time(NULL) + LOOP_LIMIT_S;
	struct loop loop = {
	    .frame = {.size = IXDP_FRAME_MIN, .dst_mac = {2}},
	    .to_send = frames,
	};
	int err = ixdp_open(&loop.port, device, NULL);

	if (err) return err;
	loop.pool = ixdp_port_pool(loop.port);
	loop.frame.generator = ixdp_frame_generator();
	ixdp_mac_get(loop.port, loop.frame.src_mac);
	loop.checker = ixdp_frame_checker_new();
	if (loop.checker) {
		while (loop.received < frames && time(NULL) < limit) {
			send_some(&loop);
			receive_some(&loop);
		}
		ixdp_frame_checker_counts(loop.checker, counts);
		ixdp_frame_checker_free(loop.checker);
	}
	ixdp_close(loop.port);
	return loop.checker ? 0 : -ENOMEM;
}
