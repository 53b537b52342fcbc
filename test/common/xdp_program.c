/* SPDX-License-Identifier: BSD-3-Clause */
#include "xdp_program.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct json_object *xdp_array(struct json_object *object, const char *name) {
	struct json_object *value;

	assert_true(json_object_object_get_ex(object, name, &value));
	assert_true(json_object_is_type(value, json_type_array));
	return value;
}

int64_t xdp_sum(struct json_object *object, const char *name, const char *counter) {
	struct json_object *all = xdp_array(object, name);
	int64_t n = 0;

	for (size_t i = 0; i < json_object_array_length(all); i++)
		n += json_int(json_object_array_get_idx(all, i), counter);
	return n;
}

int64_t xdp_verdict(struct json_object *object, const char *name) {
	return xdp_sum(object, "verdicts", name);
}

static int64_t all_verdicts(struct json_object *object) {
	return xdp_verdict(object, "pass") + xdp_verdict(object, "drop") +
	       xdp_verdict(object, "aborted") + xdp_verdict(object, "tx") +
	       xdp_verdict(object, "tx_full") + xdp_verdict(object, "redirect") +
	       xdp_verdict(object, "redirect_err");
}

void xdp_assert_identity(struct json_object *final) {
	assert_int_equal(json_int(final, "rx_dropped"), 0);
	assert_int_equal(json_int(final, "rx_packets"), json_int(final, "wire_tx_packets"));
	assert_int_equal(all_verdicts(final), json_int(final, "rx_packets"));
	assert_int_equal(xdp_sum(final, "xdp_tx", "packets"), json_int(final, "wire_rx_packets"));
	assert_int_equal(json_int(final, "tx_packets"), json_int(final, "wire_rx_packets"));
	assert_int_equal(json_int(final, "corrupt") + json_int(final, "foreign"), 0);
	for (size_t q = 0; q < json_object_array_length(xdp_array(final, "verdicts")); q++)
		assert_int_equal(
		    json_int(json_object_array_get_idx(xdp_array(final, "verdicts"), q), "queue"),
		    q);
}

void xdp_assert_workers_sent(struct json_object *from, struct json_object *to, unsigned threads,
			     unsigned queues) {
	struct json_object *workers = xdp_array(from, "worker_sends"),
			   *xdp_tx = xdp_array(to, "xdp_tx");
	const int64_t refused = xdp_verdict(from, "tx_full") + xdp_verdict(from, "redirect_err");
	int64_t wanted[64] = {0}, missing = 0, sends = 0;

	assert_int_equal(json_object_array_length(workers), threads);
	assert_int_equal(json_object_array_length(xdp_tx), queues);
	for (unsigned w = 0; w < threads; w++) {
		const int64_t n = json_object_get_int64(json_object_array_get_idx(workers, w));

		assert_true(n > 0);
		wanted[w % queues] += n;
		sends += n;
	}
	assert_int_equal(sends, xdp_verdict(from, "tx") + xdp_verdict(from, "redirect") + refused);
	for (unsigned q = 0; q < queues; q++) {
		const int64_t packets = json_int(json_object_array_get_idx(xdp_tx, q), "packets");

		assert_true(packets <= wanted[q]);
		missing += wanted[q] - packets;
	}
	assert_int_equal(missing, refused);
}

void xdp_assert_shared(struct json_object *final, unsigned threads, unsigned queues,
		       unsigned batch) {
	struct json_object *xdp_tx = xdp_array(final, "xdp_tx"), *shared;

	for (unsigned q = 0; q < queues; q++) {
		struct json_object *queue = json_object_array_get_idx(xdp_tx, q);
		const int64_t locked = json_int(queue, "locked");

		assert_int_equal(json_int(queue, "queue"), q);
		assert_true(json_object_object_get_ex(queue, "shared", &shared));
		assert_int_equal(json_object_get_boolean(shared), q + queues < threads);
		if (q + queues < threads)
			assert_true(locked * batch >= json_int(queue, "packets") && locked > 0);
		else
			assert_int_equal(locked, 0);
		assert_true(json_int(queue, "contended") <= locked);
		if (!json_int(queue, "contended")) assert_int_equal(json_int(queue, "yields"), 0);
	}
}
