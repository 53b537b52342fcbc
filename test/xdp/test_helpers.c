/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program may do to a frame: helpers at and beyond their bounds, and what is sent then. */
#include "xdp_rig.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 8192, ROOM = IXDP_HEADROOM, SIZE = IXDP_DATA_SIZE, LEN = 100 };

static struct xdp_rig rig;

static int setup(void **state) {
	(void)state;
	assert_int_equal(ixdp_xdp_workers(1), 0);
	xdp_rig_begin(&rig, BUFFERS);
	xdp_rig_open(&rig, &rig.a, NULL);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	xdp_rig_end(&rig);
	return 0;
}

static ixdp_xdp_prog *prog;

/* One frame of len bytes goes through prog. Returns how many pass; if one does, it is *pkt. */
static int one(unsigned len, struct ixdp_pkt *pkt, void *arg) {
	assert_int_equal(ixdp_xdp_attach(rig.a.port, prog, arg), 0);
	assert_true(xdp_rig_inject(&rig.a, len, 0, 7));
	xdp_rig_run(&rig);
	int n = ixdp_xdp_poll(rig.a.port, 0, 0, pkt, 1);
	xdp_rig_run(&rig);
	return n;
}

enum helper { HEAD, TAIL, META };

struct step {
	enum helper helper;
	int delta, err;
};

struct try {
	const struct step *steps;
	unsigned n;
	uint32_t verdict;
	uint8_t *data, *data_end, *data_meta; /* at the end */
};

static int help(struct ixdp_xdp_buff *xdp, const struct step *step) {
	return step->helper == HEAD   ? ixdp_xdp_adjust_head(xdp, step->delta)
	       : step->helper == TAIL ? ixdp_xdp_adjust_tail(xdp, step->delta)
				      : ixdp_xdp_adjust_meta(xdp, step->delta);
}

/* What fails must change nothing, not even a byte of the buffer. */
static uint32_t take_steps(struct ixdp_xdp_buff *xdp, void *arg) {
	struct try *try = arg;
	static uint8_t before[ROOM + SIZE];
	assert_int_equal(xdp->data - xdp->buffer, ROOM); /* whole again for each frame */
	assert_ptr_equal(xdp->data_meta, xdp->data);
	for (unsigned i = 0; i < try->n; i++) {
		struct ixdp_xdp_buff was = *xdp;
		memcpy(before, xdp->buffer, sizeof(before));
		int err = help(xdp, &try->steps[i]);
		if (err != try->steps[i].err)
			fail_msg("step %u, by %d: %d", i, try->steps[i].delta, err);
		if (!err) continue;
		assert_memory_equal(&was, xdp, sizeof(was));
		assert_memory_equal(before, xdp->buffer, sizeof(before));
	}
	try->data = xdp->data;
	try->data_end = xdp->data_end;
	try->data_meta = xdp->data_meta;
	return try->verdict;
}

/* Takes the steps with a frame of LEN bytes, which must pass, at head from its old beginning. */
static void steps(const struct step *list, unsigned n, int head, int len, int meta) {
	struct try try = {list, n, XDP_PASS, NULL, NULL, NULL};
	struct ixdp_pkt pkt;
	prog = take_steps;
	assert_int_equal(one(LEN, &pkt, &try), 1);
	assert_int_equal(pkt.headroom, ROOM + head);
	assert_int_equal(pkt.len, len);
	assert_ptr_equal(pkt.data, try.data);
	assert_int_equal(try.data_end - try.data, len);
	assert_int_equal(try.data - try.data_meta, meta);
	ixdp_free(rig.pool, &pkt, 1);
}
#define STEPS(head, len, meta, ...)                                                                \
	steps((const struct step[]){__VA_ARGS__},                                                  \
	      sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step), head, len, meta)

/* xdp-tutorial 234 and 374. */
static void head_within_bounds_only(void **state) {
	(void)state;
	STEPS(-ROOM, LEN + ROOM, 0, {HEAD, -ROOM, 0}, {HEAD, -1, -EINVAL});
	STEPS(0, LEN, 0, {HEAD, -ROOM - 1, -EINVAL}, {HEAD, 0, 0});
	STEPS(LEN - 14, 14, 0, {HEAD, LEN - 14, 0}, {HEAD, 1, -EINVAL});
	STEPS(0, LEN, 0, {HEAD, LEN - 13, -EINVAL}, {HEAD, LEN, -EINVAL});
	STEPS(0, LEN, 0, {HEAD, INT_MIN, -EINVAL}, {HEAD, INT_MAX, -EINVAL});
	STEPS(0, LEN, 0, {HEAD, INT_MIN + 1, -EINVAL}, {HEAD, INT_MAX - 1, -EINVAL});
}

/* BNG-router 10: growth where there is no room must be refused. */
static void tail_within_bounds_only(void **state) {
	(void)state;
	STEPS(0, 14, 0, {TAIL, -(LEN - 14), 0}, {TAIL, -1, -EINVAL});
	STEPS(0, LEN, 0, {TAIL, -(LEN - 13), -EINVAL}, {TAIL, -LEN, -EINVAL});
	STEPS(0, SIZE, 0, {TAIL, SIZE - LEN, 0}, {TAIL, 1, -EINVAL});
	STEPS(0, LEN, 0, {TAIL, SIZE - LEN + 1, -EINVAL}, {TAIL, 0, 0});
	STEPS(0, LEN, 0, {TAIL, INT_MIN, -EINVAL}, {TAIL, INT_MAX, -EINVAL});
	/* What the head gives up is room for neither. */
	STEPS(LEN - 14, 14, 0, {HEAD, LEN - 14, 0}, {TAIL, SIZE - LEN + 1, -EINVAL});
	STEPS(-ROOM, ROOM + SIZE, 0, {HEAD, -ROOM, 0}, {TAIL, SIZE - LEN, 0}, {TAIL, 1, -EINVAL});
}

static void metadata_within_bounds_only(void **state) {
	(void)state;
	STEPS(0, LEN, 32, {META, -32, 0}, {META, -4, -EINVAL}, {META, 36, -EINVAL});
	STEPS(0, LEN, 0, {META, -36, -EINVAL}, {META, -2, -EINVAL}, {META, 4, -EINVAL});
	STEPS(0, LEN, 0, {META, INT_MIN, -EINVAL}, {META, INT_MAX, -EINVAL}, {META, 0, 0});
	STEPS(0, LEN, 4, {META, -8, 0}, {META, 4, 0}, {META, 1, -EINVAL});
	/* Without headroom for it. */
	STEPS(-ROOM + 4, LEN + ROOM - 4, 4, {HEAD, -ROOM + 4, 0}, {META, -8, -EINVAL},
	      {META, -4, 0}, {META, -4, -EINVAL}, {HEAD, -1, -EINVAL});
	/* It takes headroom that the head then cannot have. */
	STEPS(-ROOM + 32, LEN + ROOM - 32, 32, {META, -32, 0}, {HEAD, -ROOM + 31, -EINVAL},
	      {HEAD, -ROOM + 32, 0});
}

static uint32_t move_with_metadata(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)arg;
	assert_int_equal(ixdp_xdp_adjust_meta(xdp, -8), 0);
	memcpy(xdp->data_meta, "metadata", 8);
	assert_int_equal(ixdp_xdp_adjust_head(xdp, -3), 0);
	assert_memory_equal(xdp->data_meta, "metadata", 8);
	assert_int_equal(ixdp_xdp_adjust_head(xdp, 20), 0);
	assert_memory_equal(xdp->data_meta, "metadata", 8);
	assert_ptr_equal(xdp->data_meta + 8, xdp->data);
	return XDP_PASS;
}

static void metadata_moves_with_the_head(void **state) {
	struct ixdp_pkt pkt;
	(void)state;
	prog = move_with_metadata;
	assert_int_equal(one(LEN, &pkt, NULL), 1);
	assert_int_equal(pkt.len, LEN - 17);
	ixdp_free(rig.pool, &pkt, 1);
}

static uint32_t fill_buffer(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)arg;
	memset(xdp->data_end, 0xEE, xdp->buffer + ROOM + SIZE - xdp->data_end);
	return XDP_DROP;
}

/* ebpf-docs 159: grown bytes must not show what lay there. All buffers have been written to. */
static void grown_bytes_are_zero(void **state) {
	struct ixdp_pkt *pkts = calloc(BUFFERS, sizeof(*pkts)), pkt;
	const struct step grow = {TAIL, SIZE - LEN, 0};
	struct try try = {&grow, 1, XDP_PASS, NULL, NULL, NULL};
	(void)state;
	int n = ixdp_alloc(rig.pool, pkts, BUFFERS);
	for (int i = 0; i < n; i++)
		memset(ixdp_pkt_buffer(&pkts[i]), 0xEE, ROOM + SIZE);
	ixdp_free(rig.pool, pkts, n);
	free(pkts);
	prog = fill_buffer;
	for (unsigned i = 0; i < 600; i++) /* the RX ring's too, which none of those was */
		assert_int_equal(one(LEN, &pkt, NULL), 0);
	prog = take_steps;
	assert_int_equal(one(LEN, &pkt, &try), 1);
	assert_int_equal(pkt.len, SIZE);
	for (unsigned i = LEN; i < SIZE; i++)
		assert_int_equal(pkt.data[i], 0);
	ixdp_free(rig.pool, &pkt, 1);
}

/* What is sent is the frame that the program left, by its new beginning and length. */
static uint32_t encapsulate(struct ixdp_xdp_buff *xdp, void *arg) {
	static const uint8_t outer[20] = "outer header, 20 b.";
	assert_int_equal(ixdp_xdp_adjust_head(xdp, -20), 0);
	memcpy(xdp->data, outer, sizeof(outer));
	assert_int_equal(ixdp_xdp_adjust_tail(xdp, -10), 0);
	return arg ? ixdp_xdp_redirect(xdp, arg) : XDP_TX;
}

static uint32_t decapsulate(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)arg;
	assert_int_equal(ixdp_xdp_adjust_head(xdp, 16), 0);
	assert_int_equal(ixdp_xdp_adjust_tail(xdp, 5), 0);
	return XDP_TX;
}

static void changed_frame_is_sent_as_it_is(void **state) {
	struct ixdp_pkt pkt;
	uint8_t frame[LEN];
	(void)state;
	xdp_rig_frame(frame, LEN, 0, 7);
	xdp_rig_open(&rig, &rig.b, NULL);
	prog = encapsulate;
	assert_int_equal(one(LEN, &pkt, NULL), 0);
	assert_int_equal(one(LEN, &pkt, rig.b.port), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct xdp_end *end = i ? &rig.b : &rig.a;
		assert_int_equal(end->sent, 1);
		assert_int_equal(end->frames[0].len, LEN + 10);
		assert_memory_equal(end->frames[0].data, "outer header, 20 b.", 20);
		assert_memory_equal(end->frames[0].data + 20, frame, XDP_RIG_BYTES - 20);
	}
	prog = decapsulate;
	assert_int_equal(one(70, &pkt, NULL), 0);
	assert_int_equal(rig.a.sent, 2);
	assert_int_equal(rig.a.frames[1].len, 70 - 16 + 5 < 60 ? 60 : 70 - 16 + 5);
	assert_memory_equal(rig.a.frames[1].data, frame + 16, 70 - 16);
	for (unsigned i = 70 - 16; i < 70 - 16 + 5; i++)
		assert_int_equal(rig.a.frames[1].data[i], 0);
}

/* The longest that a buffer can hold, from its first byte to its last. */
static uint32_t fill_all(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)arg;
	assert_int_equal(ixdp_xdp_adjust_head(xdp, -ROOM), 0);
	assert_int_equal(ixdp_xdp_adjust_tail(xdp, SIZE - LEN), 0);
	return XDP_TX;
}

static void whole_buffer_can_be_sent(void **state) {
	struct ixdp_pkt pkt;
	(void)state;
	prog = fill_all;
	assert_int_equal(one(LEN, &pkt, NULL), 0);
	assert_int_equal(rig.a.sent, 1);
	assert_int_equal(rig.a.frames[0].len, ROOM + SIZE);
}

/* The NIC pads, but takes no frame of less than 17 bytes; the padding must be zero. */
static uint32_t cut(struct ixdp_xdp_buff *xdp, void *arg) {
	unsigned len = *(unsigned *)arg;
	assert_int_equal(ixdp_xdp_adjust_tail(xdp, (int)len - LEN), 0);
	return XDP_TX;
}

static void shortest_frames_are_padded(void **state) {
	struct ixdp_pkt pkt;
	uint8_t frame[LEN], zero[60] = {0};
	(void)state;
	xdp_rig_frame(frame, LEN, 0, 7);
	prog = cut;
	for (unsigned len = 14; len <= 18; len++) {
		assert_int_equal(one(LEN, &pkt, &len), 0);
		unsigned i = len - 14;
		assert_int_equal(rig.a.sent, i + 1);
		assert_int_equal(rig.a.frames[i].len, 60);
		assert_memory_equal(rig.a.frames[i].data, frame, len);
		assert_memory_equal(rig.a.frames[i].data + len, zero, 60 - len);
	}
	assert_int_equal(xdp_rig_stats(&rig.a, 0).tx, 5);
}

/* 14 bytes at the end of the buffer: there is no room to pad. */
static uint32_t cut_at_the_end(struct ixdp_xdp_buff *xdp, void *arg) {
	assert_int_equal(ixdp_xdp_adjust_tail(xdp, SIZE - LEN), 0);
	assert_int_equal(ixdp_xdp_adjust_head(xdp, SIZE - 14), 0);
	return arg ? XDP_TX : XDP_PASS;
}

static void frame_that_cannot_be_padded_is_aborted(void **state) {
	struct ixdp_pkt pkt;
	(void)state;
	prog = cut_at_the_end;
	assert_int_equal(one(LEN, &pkt, &rig), 0);
	assert_int_equal(xdp_rig_stats(&rig.a, 0).aborted, 1);
	assert_int_equal(rig.a.sent, 0);
	assert_int_equal(one(LEN, &pkt, NULL), 1);
	assert_int_equal(pkt.len, 14);
	ixdp_free(rig.pool, &pkt, 1);
}

int main(void) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    TEST(head_within_bounds_only),
	    TEST(tail_within_bounds_only),
	    TEST(metadata_within_bounds_only),
	    TEST(metadata_moves_with_the_head),
	    TEST(grown_bytes_are_zero),
	    TEST(changed_frame_is_sent_as_it_is),
	    TEST(whole_buffer_can_be_sent),
	    TEST(shortest_frames_are_padded),
	    TEST(frame_that_cannot_be_padded_is_aborted),
	};
	return cmocka_run_group_tests(tests, xdp_rig_setup_stepped, NULL);
}
