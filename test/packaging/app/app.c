/* SPDX-License-Identifier: BSD-3-Clause */
/* An application, in C and in C++: opens a port, sends frames, looks at what comes back. */
#include <ixdp/ixdp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FRAMES = 64, LIMIT = 10 /* s */ };

/* Names that the library uses inside mean something else here. */
void pool_take(void) { abort(); }

void dma_alloc(void) { abort(); }

static int failed(const char *what) {
	fprintf(stderr, "%s: %s\n", what, ixdp_error());
	return 1;
}

static int send_frames(struct ixdp_port *port) {
	struct ixdp_frame_config frame = {0};
	struct ixdp_pkt pkts[FRAMES];

	if (ixdp_alloc(ixdp_port_pool(port), pkts, FRAMES) != FRAMES) return failed("alloc");
	frame.size = IXDP_FRAME_MIN;
	frame.generator = ixdp_frame_generator();
	ixdp_mac_get(port, frame.dst_mac);
	for (unsigned i = 0; i < FRAMES; i++)
		pkts[i].len = ixdp_frame_write(&frame, 0, i, pkts[i].data);
	return ixdp_tx(port, 0, pkts, FRAMES) == FRAMES ? 0 : failed("tx");
}

static int receive_frames(struct ixdp_port *port, struct ixdp_frame_checker *checker) {
	const time_t end = time(NULL) + LIMIT;
	struct ixdp_frame_counts counts;
	struct ixdp_pkt pkts[FRAMES];
	struct ixdp_wire_stats wire;

	do {
		int n = ixdp_rx(port, 0, pkts, FRAMES);

		if (n < 0) return failed("rx");
		for (int i = 0; i < n; i++)
			ixdp_frame_check(checker, pkts[i].data, pkts[i].len);
		ixdp_free(ixdp_port_pool(port), pkts, n);
		ixdp_frame_checker_counts(checker, &counts);
	} while (counts.frames < FRAMES && time(NULL) < end);
	if (ixdp_wire_stats_get(port, &wire) || wire.from_port_packets != FRAMES)
		return failed("wire");
	printf("%s: %d of %d frames came back\n", ixdp_version(), (int)counts.good, FRAMES);
	return counts.good != FRAMES;
}

int main(void) {
	struct ixdp_frame_checker *checker = ixdp_frame_checker_new();
	struct ixdp_port *port;
	struct ixdp_link link;
	int status;

	if (!checker) return failed("checker");
	if (ixdp_open(&port, "soft:a,peer=loop", NULL)) return failed("open");
	if (ixdp_link_wait(port, LIMIT * 1000, &link)) return failed("link");
	status = send_frames(port) || receive_frames(port, checker);
	ixdp_close(port);
	ixdp_frame_checker_free(checker);
	return status;
}
