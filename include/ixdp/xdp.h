/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XDP: a program that looks at each received frame and decides what becomes of it, as the kernel
 * runs them, but a C function in this process. Any number of threads share the transmit queues.
 *
 *	ixdp_xdp_workers(130);				once, how many threads there will be
 *	ixdp_xdp_open(&port, "soft:a,peer=gen", NULL);
 *	ixdp_xdp_attach(port, prog, arg);
 *	for (;;)					in each thread: worker 0 to 129
 *		n = ixdp_xdp_poll(port, worker % rx_queues, worker, pkts, 64);
 */
#pragma once

#include "port.h"

#include <errno.h>
#include <linux/bpf.h> /* enum xdp_action: the verdicts */
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	IXDP_XDP_MIN_FRAME = 14,  /* bytes: helpers leave an Ethernet header at least */
	IXDP_XDP_MAX_META = 32,	  /* bytes of metadata in front of a frame */
	IXDP_XDP_MAX_QUEUES = 64, /* XDP TX queues of a port */
};

/* A frame as a program sees it. It may change its bytes; the pointers, by the helpers only. */
struct ixdp_xdp_buff {
	uint8_t *data;	    /* first byte of the frame */
	uint8_t *data_end;  /* behind its last */
	uint8_t *data_meta; /* metadata lies from here to data; the two are equal without any */
	uint8_t *buffer;    /* start of its packet buffer: the headroom's */
	struct ixdp_port *port, *target; /* that received it; that it is redirected to */
	unsigned queue, worker;
};

/*
 * Returns a verdict: XDP_PASS (to the caller of ixdp_xdp_poll()), XDP_DROP, XDP_TX (back out of its
 * port), XDP_REDIRECT (see ixdp_xdp_redirect()), XDP_ABORTED; any other number counts as the
 * latter. arg: as given to ixdp_xdp_attach(). Runs in several threads at once.
 */
typedef uint32_t ixdp_xdp_prog(struct ixdp_xdp_buff *xdp, void *arg);

/*
 * Helpers for programs. They return 0, or -EINVAL when the frame would leave its buffer or get
 * shorter than 14 bytes; it is as it was then.
 */

/* Moves the frame's beginning by delta bytes: takes up headroom when negative. Metadata moves too.
 */
static inline int ixdp_xdp_adjust_head(struct ixdp_xdp_buff *xdp, int delta) {
	long meta = xdp->data - xdp->data_meta;
	if (delta < xdp->buffer + meta - xdp->data ||
	    delta > xdp->data_end - xdp->data - IXDP_XDP_MIN_FRAME)
		return -EINVAL;
	if (meta) memmove(xdp->data_meta + delta, xdp->data_meta, (size_t)meta);
	xdp->data += delta;
	xdp->data_meta += delta;
	return 0;
}

/* Moves the frame's end by delta bytes, at most to the buffer's; bytes that it gains are zero. */
static inline int ixdp_xdp_adjust_tail(struct ixdp_xdp_buff *xdp, int delta) {
	uint8_t *limit = xdp->buffer + IXDP_HEADROOM + IXDP_DATA_SIZE;
	if (delta > limit - xdp->data_end || delta < xdp->data + IXDP_XDP_MIN_FRAME - xdp->data_end)
		return -EINVAL;
	if (delta > 0) memset(xdp->data_end, 0, (size_t)delta);
	xdp->data_end += delta;
	return 0;
}

/* Moves the beginning of metadata; its size must be a multiple of 4, at most 32 bytes. */
static inline int ixdp_xdp_adjust_meta(struct ixdp_xdp_buff *xdp, int delta) {
	long meta = xdp->data - xdp->data_meta - (long)delta;
	if (meta < 0 || meta > IXDP_XDP_MAX_META || meta % 4 || meta > xdp->data - xdp->buffer)
		return -EINVAL;
	xdp->data_meta += delta;
	return 0;
}

/* The verdict that sends the frame out of another port, or its own. */
static inline uint32_t ixdp_xdp_redirect(struct ixdp_xdp_buff *xdp, struct ixdp_port *target) {
	xdp->target = target;
	return XDP_REDIRECT;
}

/*
 * Says how many workers the process has: threads that receive and send by the calls below, each
 * with an index of its own from 0 on. Once, before any port is opened for XDP. Returns 0; -EINVAL
 * (none); -EBUSY (said before, another number); -ENOSYS (no membarrier(2)).
 */
IXDP_API int ixdp_xdp_workers(unsigned threads);

/*
 * Opens a port, as ixdp_open(), for XDP: with XDP TX queues behind its cfg->tx_queues plain ones.
 * cfg->xdp_queues: how many, 1 to IXDP_XDP_MAX_QUEUES; 0: as many as there are workers, within 64
 * TX queues in all. Worker w sends on queue w modulo their number; only those that several send on
 * lock. cfg->tx_queues may be 0. -EINVAL: workers have not been declared, or as ixdp_open().
 */
IXDP_API int ixdp_xdp_open(struct ixdp_port **port, const char *name,
			   const struct ixdp_config *cfg);

/*
 * Attaches a program, in the place of one that may be there; NULL: none, frames then pass. Frames
 * may flow meanwhile: each is seen by one of the two. When it returns no thread is inside the old
 * one any more, and what its arg points to may be freed. Any thread that is not inside a program.
 * Returns 0; -EINVAL: the port is not open for XDP; -EMSGSIZE: frames of its MTU do not fit one
 * buffer; -EDEADLK: called from a program; then nothing has changed. -ETIMEDOUT, -ENOMEM: the new
 * one is attached, but a worker may still be inside the old one, for 10 s; a further call, say the
 * same again, first waits for that, and changes nothing if it fails to.
 */
IXDP_API int ixdp_xdp_attach(struct ixdp_port *port, ixdp_xdp_prog *prog, void *arg);

/*
 * Receives up to n frames, and runs the program over them. Never waits.
 * pkts: n elements, to be filled with the frames that pass, in order; their buffers are the
 * caller's. One worker at a time polls a queue: where there are more workers than RX queues, others
 * get 0 meanwhile; elsewhere no two workers may poll the same one. Returns how many elements
 * passed; -EINVAL: no such queue or worker, or not open for XDP; -ENETDOWN: stopped.
 */
IXDP_API int ixdp_xdp_poll(struct ixdp_port *port, unsigned queue, unsigned worker,
			   struct ixdp_pkt *pkts, unsigned n);

enum { IXDP_XMIT_FLUSH = 1 }; /* publish at once: ixdp always does */

/*
 * Sends frames on the worker's XDP TX queue of the port, as ixdp_tx() does.
 * flags: 0 or IXDP_XMIT_FLUSH. Returns how many elements were taken; the rest stays the caller's.
 * Errors take nothing: -ENETDOWN: the port is stopped, or was without link when last looked at;
 * -ENXIO: it has no XDP TX queue; -EINVAL: unknown flags, no such worker, or a frame at fault.
 */
IXDP_API int ixdp_xdp_xmit(struct ixdp_port *port, unsigned worker, const struct ixdp_pkt *pkts,
			   unsigned n, unsigned flags);

/*
 * What became of the frames that an RX queue delivered to its program: each is counted once.
 * S(name, what it counts).
 */
#define IXDP_XDP_STATS(S)                                                                          \
	S(pass, "passed to the caller")                                                            \
	S(drop, "dropped by the program")                                                          \
	S(aborted, "dropped: aborted, or an unknown verdict")                                      \
	S(tx, "sent back out of the port")                                                         \
	S(tx_full, "dropped: to be sent back, but the ring was full")                              \
	S(redirect, "sent out of another port")                                                    \
	S(redirect_self, "redirected to its own port, and sent")                                   \
	S(redirect_full, "dropped: redirected, but the target's ring was full")                    \
	S(redirect_closed, "dropped: redirected to a port that is not open")                       \
	S(redirect_down, "dropped: redirected to a port that is stopped or without link")          \
	S(redirect_unprepared, "dropped: redirected to a port without XDP TX queues")

struct ixdp_xdp_stats {
#define S(name, what) uint64_t name;
	IXDP_XDP_STATS(S)
#undef S
};

/* Of an XDP TX queue. */
struct ixdp_xdp_queue_stats {
	uint64_t packets;   /* frames taken to be sent */
	uint64_t locked;    /* acquisitions of its lock */
	uint64_t contended; /* of these, not at the first try */
	uint64_t yields;    /* of the processor while waiting for it */
	bool shared;	    /* several workers send on it: only then it locks */
};

/* Any thread. Returns 0; -EINVAL: no such queue. */
IXDP_API int ixdp_xdp_stats_get(const struct ixdp_port *port, unsigned rx_queue,
				struct ixdp_xdp_stats *stats);
IXDP_API int ixdp_xdp_queue_stats_get(const struct ixdp_port *port, unsigned xdp_queue,
				      struct ixdp_xdp_queue_stats *stats);

/* How many XDP TX queues a port has; 0: it is not open for XDP. */
IXDP_API unsigned ixdp_xdp_queues(const struct ixdp_port *port);

#ifdef __cplusplus
}
#endif
