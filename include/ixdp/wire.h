/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire of a software port: what sends into it and what becomes of the frames that it sends.
 * A card's wire is out of sight: these calls return -ENOTSUP there.
 */
#pragma once

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ixdp_wire_stats {
	bool source;	/* the wire sends frames by itself: a generator or a capture file */
	bool finite;	/* the source ends: a generator with count=, a capture file */
	bool exhausted; /* a source that has sent all it will, or was stopped */
	bool drained;	/* nothing is under way: source exhausted, packet buffer of the NIC and TX
			   rings empty */
	bool checks;	/* the wire looks at what it receives: lost, misordered, corrupt count */

	uint64_t to_port_packets;   /* frames that the wire handed to the NIC */
	uint64_t to_port_bytes;	    /* without FCS, as all bytes here */
	uint64_t from_port_packets; /* frames that the NIC handed to the wire */
	uint64_t from_port_bytes;

	/* Of test frames (frame.h) that the wire received. */
	uint64_t lost; /* with the last ones of a generator of this process once it is exhausted */
	uint64_t misordered;
	uint64_t corrupt;
	uint64_t foreign; /* frames that are not test frames */
};

/* Counters of the wire since open. Any thread. Returns 0 or -ENOTSUP. */
IXDP_API int ixdp_wire_stats_get(struct ixdp_port *port, struct ixdp_wire_stats *stats);

/* Stops the wire's source: it sends no further frame, unless it is a generator
 * with stop=off. Any thread. Returns 0 or -ENOTSUP. */
IXDP_API int ixdp_wire_stop(struct ixdp_port *port);

#ifdef __cplusplus
}
#endif
