/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port on a stepped software NIC, with the test at the other end of its wire: frames go in by
 * rig_inject(), what the NIC sends is kept. Frames are test frames, told apart by sequence number.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ixdp/ixdp.h>

#include "softnic/softnic.h"

enum { RIG_MAX_SENT = 65536 };

struct rig {
	struct ixdp_port *port;
	struct softnic *nic;
	struct ixdp_pool *pool;
	uint64_t next_in;		 /* sequence number of the next injected frame */
	uint64_t sent;			 /* frames that the NIC put on the wire */
	uint64_t sent_seq[RIG_MAX_SENT]; /* of the first of these; UINT64_MAX: not a test frame */
	uint16_t sent_len[RIG_MAX_SENT];
	bool hold; /* the wire takes nothing */
};

/* Defaults, but for the numbers of queues. */
struct ixdp_config rig_config(unsigned rx_queues, unsigned tx_queues);

/*
 * Opens a port "soft:rig" + options (",key=value..." or ""), with an own pool of `buffers` (0: the
 * smallest that the port accepts). cfg NULL: defaults. Returns ixdp_open()'s result.
 */
int rig_try_open(struct rig *rig, const char *options, const struct ixdp_config *cfg,
		 unsigned buffers);

/* The same, and it must work. */
void rig_open(struct rig *rig, const char *options, const struct ixdp_config *cfg);

/* Closes; all buffers must be back in the pool, and the NIC must have found nothing amiss. */
void rig_close(struct rig *rig);

/* After a test that provoked violations on purpose: closes without asking for them. */
void rig_close_dirty(struct rig *rig);

/* A frame of len bytes arrives. Returns its sequence number. */
uint64_t rig_inject(struct rig *rig, unsigned len);

/* Lets the NIC work until nothing moves any more. */
void rig_run(struct rig *rig);

/* Receives up to n packets in batches, checks that their numbers go on from *seq, frees them. */
unsigned rig_receive(struct rig *rig, unsigned queue, unsigned n, unsigned batch, uint64_t *seq);

/* Allocates and fills n test frames of len bytes with sequence numbers from seq on. */
unsigned rig_make(struct rig *rig, struct ixdp_pkt *pkts, unsigned n, unsigned len, uint64_t seq);

/* Sequence number of a received packet, which must be a whole test frame. */
uint64_t rig_seq(const struct ixdp_pkt *pkt);

/* Buffers in the pool now. */
unsigned rig_available(const struct rig *rig);

struct ixdp_stats rig_stats(struct rig *rig);

/* A CMocka setup for groups: NICs of this process are stepped; log lines go to stderr. */
int rig_group_setup(void **state);
