/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kinds of wires share: the register of plugged-in ports, the checking sink, and a queue
 * of frames.
 *
 * Locks, in the order in which they are taken: the NIC's; the register's (wire_plug.c) or the one
 * of sources and sinks (wire_sink.c), never both; a cable end's. A wire never takes a NIC's lock.
 */
#pragma once

#include "wire.h"

#include <ixdp/frame.h>

/* The longest frame without FCS that a wire plays: an MTU of 9,000 and a VLAN tag. */
enum { WIRE_FRAME_MAX = 9018 };

/* The wire that a port name asks for. */
struct wire_request {
	const struct softnic_name *name;
	const char *peer;    /* first part of peer=; NULL without */
	const char *args[2]; /* its other parts; NULL without */
	const uint8_t *mac;
};

int wire_gen_open(struct wire **wire, const struct wire_request *request);
int wire_loop_open(struct wire **wire, const struct wire_request *request);
int wire_pcap_open(struct wire **wire, const struct wire_request *request);
int wire_cable_open(struct wire **wire, const struct wire_request *request);

/* The number of an option, min to max; unset leaves it. 0, or -EINVAL with ixdp_error(). */
int wire_option_number(const struct wire_request *request, const char *key, uint64_t min,
		       uint64_t max, uint64_t *number);

/* What rate= says, for frames of size bytes. 0, -EINVAL, or -ERANGE above the line's. */
int wire_option_rate(const struct wire_request *request, unsigned size, struct ixdp_rate *rate,
		     double *pps);

/* Whether a port may be called that (name.c): 0, or -EINVAL with ixdp_error(). */
int softnic_port_word(const char *word);

/* --- the register of ports: who is plugged in where (wire_plug.c) ---------------------------- */

struct cable;

/* A port's entry, embedded in its wire. */
struct wire_plug {
	char name[IXDP_NAME_MAX];
	char peer[IXDP_NAME_MAX]; /* the port that it says it is cabled to; "" if it does not say */
	struct cable *cable;	  /* NULL: a wire that no other port can be the end of */
	struct wire_plug *next;
};

/*
 * Enters a port whose name, peer and cable are filled in, and connects it with the other end of its
 * cable if that is there. -EBUSY with ixdp_error() when the name is taken, or either end is plugged
 * in elsewhere.
 */
int wire_plug_in(struct wire_plug *plug);

/* Takes it out; the other end becomes a sink again. Nobody uses the cable end afterwards. */
void wire_plug_out(struct wire_plug *plug);

/* For the register, under its lock: from now on a cable end sends to the other; both send nowhere.
 */
void wire_cable_connect(struct cable *cable, struct cable *other);
void wire_cable_disconnect(struct cable *cable);

/* --- a sink that checks, and generators that it knows (wire_sink.c) -------------------------- */

struct wire_sink {
	struct ixdp_frame_checker *checker;
	struct wire_sink *next;
};

/* A generator of this process. Numbers are atomic: the NIC's thread writes, any thread reads. */
struct wire_source {
	uint16_t generator;
	bool done;		/* it hands out no more */
	uint64_t handed;	/* frames handed out */
	uint64_t accounted;	/* by sinks that have gone */
	struct wire_sink *home; /* where losses count if no sink ever sees a frame of it */
	struct wire_source *next;
};

int wire_sink_open(struct wire_sink *sink); /* 0 or -ENOMEM */
void wire_sink_close(struct wire_sink *sink);
void wire_source_add(struct wire_source *source);
void wire_source_remove(struct wire_source *source);

/* Fills lost, misordered, corrupt, foreign. */
void wire_sink_stats(const struct wire_sink *sink, struct ixdp_wire_stats *stats);

/* --- frames on their way (wire_queue.c) --------------------------------------------------------
 */

/*
 * A bounded queue of frames, copied in and looked at in place. One thread at a time puts, one
 * takes; they need no lock between them.
 */
struct wire_queue {
	uint8_t *ring;
	uint64_t head; /* bytes taken out so far */
	uint64_t tail; /* bytes put in so far */
};

int wire_queue_open(struct wire_queue *queue); /* 0 or -ENOMEM with ixdp_error() */
void wire_queue_close(struct wire_queue *queue);

/* Puts a frame in. False: it is full. */
bool wire_queue_put(struct wire_queue *queue, const uint8_t *frame, size_t len);

/* The oldest frame, which stays until wire_queue_pop(); NULL when there is none. */
const uint8_t *wire_queue_front(struct wire_queue *queue, size_t *len);
void wire_queue_pop(struct wire_queue *queue);

/* --- counting -------------------------------------------------------------------------------- */

static inline void wire_count_to_port(struct ixdp_wire_stats *totals, size_t len) {
	totals->to_port_packets++;
	totals->to_port_bytes += len;
}

static inline void wire_count_from_port(struct ixdp_wire_stats *totals, size_t len) {
	totals->from_port_packets++;
	totals->from_port_bytes += len;
}
