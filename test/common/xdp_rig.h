/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up to three ports for XDP that share a pool, with the test at the other end of their wires.
 * Frames have a code, for programs to decide by, and a tag, to be told apart by.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <ixdp/ixdp.h>
#include <ixdp/xdp.h>

#include "softnic/softnic.h"

enum { XDP_RIG_SENT = 4096, XDP_RIG_BYTES = 80 };

struct xdp_end {
	struct ixdp_port *port;
	struct softnic *nic;
	bool hold;	       /* the wire takes nothing */
	_Atomic uint64_t sent; /* frames that the NIC put on the wire */
	struct {
		uint16_t len;
		uint8_t data[XDP_RIG_BYTES]; /* its first bytes */
	} frames[XDP_RIG_SENT];		     /* the first of them */
};

struct xdp_rig {
	struct ixdp_pool *pool;
	unsigned buffers;
	struct xdp_end a, b, c; /* ports "a", "b", "c" */
};

/* A pool, and no port yet. */
void xdp_rig_begin(struct xdp_rig *rig, unsigned buffers);

/* Closes what is open; all buffers must be back, the NICs must have found nothing amiss. */
void xdp_rig_end(struct xdp_rig *rig);

/* Opens an end for XDP. cfg NULL: defaults. Its pool is the rig's. */
void xdp_rig_open(struct xdp_rig *rig, struct xdp_end *end, const struct ixdp_config *cfg);

/* The same by ixdp_open(). */
void xdp_rig_open_plain(struct xdp_rig *rig, struct xdp_end *end, const struct ixdp_config *cfg);

void xdp_rig_close(struct xdp_end *end);

/* A frame of len bytes with code and tag. */
void xdp_rig_frame(uint8_t *data, unsigned len, uint32_t code, uint32_t tag);
uint32_t xdp_rig_code(const uint8_t *data);
uint32_t xdp_rig_tag(const uint8_t *data);

/* It arrives at an end. False: no room in the NIC. */
bool xdp_rig_inject(struct xdp_end *end, unsigned len, uint32_t code, uint32_t tag);

/* Takes a buffer from the pool and makes a frame of it. */
struct ixdp_pkt xdp_rig_make(struct xdp_rig *rig, unsigned len, uint32_t code, uint32_t tag);

/* Stepped NICs: lets all open ends work until nothing moves any more. */
void xdp_rig_run(struct xdp_rig *rig);

struct ixdp_xdp_stats xdp_rig_stats(const struct xdp_end *end, unsigned rx_queue);
struct ixdp_xdp_queue_stats xdp_rig_queue_stats(const struct xdp_end *end, unsigned xdp_queue);

/* Sum of all members: frames that have been counted. */
uint64_t xdp_rig_counted(const struct ixdp_xdp_stats *stats);

/* Seconds that only grow: for limits far above what a test takes. */
time_t xdp_rig_now_s(void);

unsigned xdp_rig_available(const struct xdp_rig *rig);

/* Log lines since the last call, by level, and the latest. */
extern atomic_uint xdp_rig_warnings, xdp_rig_errors;
extern char xdp_rig_line[512];

/* CMocka setups of a group: log lines are counted and go to stderr; NICs are stepped. */
int xdp_rig_setup(void **state);
int xdp_rig_setup_stepped(void **state);
