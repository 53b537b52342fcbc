/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test frames: what ixdp-pktgen and the software NIC's generator send, and how a receiver finds out
 * that one was lost, misordered or corrupted on the way. And rates, as users write them.
 *
 * A test frame is Ethernet, IPv4, UDP, then 16 bytes, big endian: u32 magic, u16 generator,
 * u16 flow, u64 sequence number (counted per flow from 0), then a pattern that follows from these
 * up to the end. Lengths and checksums are right at every size.
 */
#pragma once

#include "packet.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	IXDP_FRAME_MIN = 60,	  /* bytes without FCS */
	IXDP_FRAME_MAX = 9014,	  /* bytes without FCS: an MTU of 9,000 */
	IXDP_FRAME_OVERHEAD = 24, /* preamble, SFD, FCS, gap: what a frame adds on the wire (L1) */
	IXDP_FRAME_MAX_FLOWS = 65536,
};

/* What a generator sends: one template, varied by flow and sequence number. */
struct ixdp_frame_config {
	uint16_t size;	    /* bytes without FCS, IXDP_FRAME_MIN to IXDP_FRAME_MAX */
	uint16_t generator; /* tells generators apart: ixdp_frame_generator() */
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
};

/*
 * A number for a new generator, different from the 65,535 before it in this process. Any thread.
 */
IXDP_API uint16_t ixdp_frame_generator(void);

/*
 * Writes the frame of a flow and sequence number into data, which has room for cfg->size bytes.
 * Flows differ in source address and port. Returns its length, cfg->size.
 */
IXDP_API uint16_t ixdp_frame_write(const struct ixdp_frame_config *cfg, uint16_t flow, uint64_t seq,
				   uint8_t *data);

enum ixdp_frame_verdict {
	IXDP_FRAME_GOOD,
	IXDP_FRAME_FOREIGN, /* not a test frame: no magic */
	IXDP_FRAME_CORRUPT, /* magic there, but length, checksum or pattern wrong */
};

struct ixdp_frame_id {
	uint16_t generator;
	uint16_t flow;
	uint64_t seq;
};

/* Reads a frame of len bytes; id is filled when it is good. MAC addresses are not looked at. */
IXDP_API enum ixdp_frame_verdict ixdp_frame_read(const uint8_t *data, size_t len,
						 struct ixdp_frame_id *id);

/*
 * Follows the sequence numbers of flows and generators, whatever arrives:
 * - A frame up to 63 numbers behind the latest of its flow is late (and fills its gap) or repeated.
 *   One further behind counts as misordered, and its gap stays.
 * - A jump of 2^32 numbers or more, ahead or back, is a flow that starts anew: nothing is lost.
 * - Beyond some 2^20 flows of all generators together, further ones are not followed.
 */
struct ixdp_frame_checker;

struct ixdp_frame_counts {
	uint64_t frames;     /* everything seen */
	uint64_t bytes;	     /* of these, without FCS */
	uint64_t good;	     /* test frames that are whole, late and repeated ones included */
	uint64_t foreign;    /* not test frames */
	uint64_t corrupt;    /* damaged test frames */
	uint64_t lost;	     /* gaps that nothing has filled so far; a corrupt frame leaves one */
	uint64_t misordered; /* came after a later one of their flow */
	uint64_t duplicated; /* came again, within the window */
};

/* Makes a checker, owned by the caller; NULL when memory is out. One thread at a time uses it. */
IXDP_API struct ixdp_frame_checker *ixdp_frame_checker_new(void);
IXDP_API void ixdp_frame_checker_free(struct ixdp_frame_checker *checker);

/* Looks at one frame. Allocates when it meets a generator for the first time. */
IXDP_API void ixdp_frame_check(struct ixdp_frame_checker *checker, const uint8_t *data, size_t len);

/* Counts so far. */
IXDP_API void ixdp_frame_checker_counts(const struct ixdp_frame_checker *checker,
					struct ixdp_frame_counts *counts);

/*
 * How many distinct good frames of one generator were seen: what tells how many of its last frames
 * never came.
 */
IXDP_API uint64_t ixdp_frame_checker_seen(const struct ixdp_frame_checker *checker,
					  uint16_t generator);

/*
 * A rate as users write it: "200kpps", "2.5Gbit" (L1: preamble, gap and FCS count), "33%" of the
 * line's 10 Gbit/s; k, M, G are decimal.
 */
enum ixdp_rate_unit { IXDP_RATE_PPS, IXDP_RATE_BIT, IXDP_RATE_PERCENT };

struct ixdp_rate {
	double value;
	enum ixdp_rate_unit unit;
};

/* Reads a rate. Returns 0, or -EINVAL with ixdp_error() saying what a rate looks like. */
IXDP_API int ixdp_rate_parse(const char *text, struct ixdp_rate *rate);

/*
 * The rate in packets per second for frames of size bytes without FCS. Returns 0; -ERANGE when that
 * is more than a 10 Gbit/s line carries (pps is then the line's rate, and ixdp_error() names both).
 */
IXDP_API int ixdp_rate_pps(const struct ixdp_rate *rate, unsigned size, double *pps);

/*
 * When to send: how many frames are due by now. A pacer never lets more than burst frames
 * accumulate, so that a stall is not followed by a flood.
 */
struct ixdp_pacer {
	double pps;
	uint64_t start_ns; /* first call */
	uint64_t sent;	   /* frames since start_ns: handed out, or forgotten in a stall */
	unsigned burst;
	bool started;
};

IXDP_API void ixdp_pacer_init(struct ixdp_pacer *pacer, double pps, unsigned burst);

/* Frames due at now_ns, at most max. The caller sends them, and tells with ixdp_pacer_sent(). */
IXDP_API unsigned ixdp_pacer_due(struct ixdp_pacer *pacer, uint64_t now_ns, unsigned max);
IXDP_API void ixdp_pacer_sent(struct ixdp_pacer *pacer, unsigned frames);

#ifdef __cplusplus
}
#endif
