/* SPDX-License-Identifier: BSD-3-Clause */
/* What ixdp-xdp and ixdp-fwd --threads report of a port, and what must be true of it. */
#pragma once

#include "program.h"

/* A member of an object that is an array; the sum of a counter over its elements. */
struct json_object *xdp_array(struct json_object *object, const char *name);
int64_t xdp_sum(struct json_object *object, const char *name, const char *counter);

/* The frames of all RX queues that got a verdict. */
int64_t xdp_verdict(struct json_object *object, const char *name);

/*
 * What the wire has delivered has got a verdict each, nothing being lost on the way; what XDP TX
 * queues took the wire has received, whole.
 */
void xdp_assert_identity(struct json_object *final);

/* Each worker has sent frames of port `from`, and all went out of its own queue of port `to`. */
void xdp_assert_workers_sent(struct json_object *from, struct json_object *to, unsigned threads,
			     unsigned queues);

/* Exactly those queues lock to which several workers come, once for each batch, so large at most.
 */
void xdp_assert_shared(struct json_object *final, unsigned threads, unsigned queues,
		       unsigned batch);
