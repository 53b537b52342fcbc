/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of wires share: wires without a NIC, and test frames on them. */
#pragma once

#include "softnic/wire.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static const uint8_t mac[6] = {0x02, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE};

static inline int try_open(struct wire **wire, const char *text) {
	struct softnic_name name;
	int err = softnic_name_parse(&name, text);

	if (err) return err;
	err = wire_open(wire, NULL, &name, mac);
	softnic_name_free(&name);
	return err;
}

static inline struct wire *plug(const char *text) {
	struct wire *wire = NULL;

	if (try_open(&wire, text)) fail_msg("%s: %s", text, ixdp_error());
	return wire;
}

static inline void unplug(struct wire *wire) { wire->ops->close(wire); }

static inline const uint8_t *peek(struct wire *wire, uint64_t now, size_t *len) {
	bool bad_crc = true;
	const uint8_t *frame = wire->ops->peek(wire, now, len, &bad_crc);

	if (frame) assert_false(bad_crc);
	return frame;
}

/* The next frame, taken: its id. False: there is none. */
static inline bool take(struct wire *wire, uint64_t now, struct ixdp_frame_id *id) {
	size_t len;
	const uint8_t *frame = peek(wire, now, &len);

	*id = (struct ixdp_frame_id){0};
	if (!frame) return false;
	assert_int_equal(ixdp_frame_read(frame, len, id), IXDP_FRAME_GOOD);
	wire->ops->pop(wire);
	return true;
}

/* Up to n frames from one wire are what the port of the other sends. Returns how many. */
static inline unsigned carry(struct wire *from, struct wire *to, unsigned n) {
	unsigned done = 0;
	size_t len;

	for (; done < n; done++) {
		const uint8_t *frame = peek(from, 0, &len);

		if (!frame) break;
		if (to && !to->ops->send(to, frame, len, 0)) break;
		from->ops->pop(from);
	}
	return done;
}

static inline void send_test_frame(struct wire *wire, uint16_t generator, uint64_t seq) {
	struct ixdp_frame_config cfg = {.size = 60, .generator = generator};
	uint8_t frame[60];

	ixdp_frame_write(&cfg, 0, seq, frame);
	assert_true(wire->ops->send(wire, frame, 60, 0));
}

static inline struct ixdp_wire_stats stats_of(struct wire *wire) {
	struct ixdp_wire_stats stats;

	memset(&stats, 0xFF, sizeof(stats)); /* nothing may be left as it was */
	wire->ops->stats(wire, &stats);
	assert_false(stats.drained);
	return stats;
}

static inline void expect_refused(const char *text, int err, const char *error) {
	struct wire *wire;

	assert_int_equal(try_open(&wire, text), -err);
	assert_string_equal(ixdp_error(), error);
}

/* --- generator ---------------------------------------------------------------------------------
 */
