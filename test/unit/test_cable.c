/* SPDX-License-Identifier: BSD-3-Clause */
/* The cable between two ports. */
#include "wire_rig.h"

static void expect_connected(struct wire *a, struct wire *b) {
	struct ixdp_frame_id id;

	send_test_frame(a, 50000, 42);
	send_test_frame(b, 50001, 43);
	assert_true(take(b, 0, &id));
	assert_int_equal(id.generator, 50000);
	assert_int_equal(id.seq, 42);
	assert_false(take(b, 0, &id));
	assert_true(take(a, 0, &id));
	assert_int_equal(id.generator, 50001);
	assert_int_equal(id.seq, 43);
	assert_false(take(a, 0, &id));
}

static void a_cable_connects_in_either_order(void **state) {
	static const char *const pairs[][2] = {
	    {"a,peer=b", "b"}, {"b", "a,peer=b"}, {"a,peer=b", "b,peer=a"}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct wire *first = plug(pairs[i][0]);
		struct wire *second = plug(pairs[i][1]);

		assert_false(first->waits);
		assert_false(stats_of(first).checks);
		expect_connected(first, second);
		assert_int_equal(stats_of(first).from_port_packets, 1);
		assert_int_equal(stats_of(first).to_port_packets, 1);
		assert_int_equal(stats_of(first).to_port_bytes, 60);
		unplug(i % 2 ? first : second);
		unplug(i % 2 ? second : first);
	}
}

static void while_the_other_end_is_not_open_a_cable_is_a_sink(void **state) {
	struct wire *a = plug("a,peer=b");
	struct ixdp_wire_stats stats;
	struct wire *b;
	size_t len;

	(void)state;
	send_test_frame(a, 50000, 0);
	send_test_frame(a, 50000, 2);
	stats = stats_of(a);
	assert_true(stats.checks);
	assert_int_equal(stats.lost, 1);

	b = plug("b");
	assert_null(peek(b, 0, &len)); /* nothing from before it was there */
	expect_connected(a, b);
	unplug(b);

	/* What the other end took, this one has not lost: it goes on from here. */
	send_test_frame(a, 50000, 100);
	send_test_frame(a, 50000, 101);
	send_test_frame(a, 50000, 103);
	assert_int_equal(stats_of(a).lost, 2);
	unplug(a);
}

static void the_port_that_stays_becomes_a_sink_and_connects_again(void **state) {
	struct wire *a = plug("a,peer=b");
	struct wire *b = plug("b");
	struct wire *c;

	(void)state;
	unplug(a);
	send_test_frame(b, 50000, 0);
	assert_true(stats_of(b).checks);
	a = plug("a,peer=b");
	expect_connected(a, b);
	unplug(a);
	c = plug("c,peer=b"); /* b has not chosen, so another may */
	expect_connected(c, b);
	unplug(b);
	b = plug("b,peer=c");
	expect_connected(c, b);
	unplug(b);
	unplug(c);
}

static void what_is_under_way_arrives_though_the_sender_has_gone(void **state) {
	struct wire *a = plug("a,peer=b");
	struct wire *b = plug("b");
	struct ixdp_frame_id id;

	(void)state;
	send_test_frame(a, 50000, 9);
	unplug(a);
	assert_true(take(b, 0, &id));
	assert_int_equal(id.seq, 9);
	unplug(b);
}

static void frames_that_do_not_fit_are_missed_at_the_receiver(void **state) {
	struct wire *a = plug("a,peer=b");
	struct wire *b = plug("b");
	struct ixdp_frame_id id;
	uint64_t arrived = 0;
	uint64_t missed;

	(void)state;
	for (uint64_t seq = 0; seq < 20000; seq++)
		send_test_frame(a, 50000, seq);
	while (take(b, 0, &id))
		assert_int_equal(id.seq, arrived++);
	missed = b->ops->missed(b);
	assert_true(arrived > 0 && missed > 0);
	assert_int_equal(arrived + missed, 20000);
	assert_int_equal(b->ops->missed(b), 0);
	assert_int_equal(a->ops->missed(a), 0);
	assert_int_equal(stats_of(b).to_port_packets, arrived);
	unplug(a);
	unplug(b);
}

static void a_port_is_in_one_cable_only(void **state) {
	struct wire *a = plug("a,peer=b");
	struct wire *b;

	(void)state;
	expect_refused("a", EBUSY, "soft:a: a port of this name is open: choose another");
	expect_refused("c,peer=b", EBUSY, "soft:c: peer=b: port a is cabled to that port");
	expect_refused("c,peer=a", EBUSY, "soft:c: peer=a: that port is cabled to port b");
	expect_refused("b,peer=c", EBUSY,
		       "soft:b: port a is cabled to it: leave peer= out or name that port");
	expect_refused("b,peer=gen", EBUSY,
		       "soft:b: port a is cabled to it: leave peer= out or name that port");
	expect_refused("b,peer=loop", EBUSY,
		       "soft:b: port a is cabled to it: leave peer= out or name that port");
	b = plug("b");
	expect_refused("c,peer=b", EBUSY, "soft:c: peer=b: port a is cabled to that port");
	expect_connected(a, b);
	unplug(a);
	unplug(b);

	b = plug("b,peer=gen");
	expect_refused("a,peer=b", EBUSY, "soft:a: peer=b: that port has a wire of another kind");
	unplug(b);
	a = plug("a,peer=b");
	unplug(a);
}

/* --- threads
 * --------------------------------------------------------------------------------------- */

enum { THREAD_FRAMES = 20000 };

struct sender {
	struct wire *gen;
	struct wire *a;
	bool finished;
};

static void *send_all(void *arg) {
	struct sender *sender = arg;
	uintptr_t done = carry(sender->gen, sender->a, THREAD_FRAMES);

	stats_of(sender->gen);
	__atomic_store_n(&sender->finished, true, __ATOMIC_RELEASE);
	return (void *)done;
}

/* Two NICs are two locks: one end sends while the other receives, looks, goes and comes back. */
static void the_ends_of_a_cable_may_be_on_two_threads(void **state) {
	struct sender sender = {plug("g,peer=gen,count=20000"), plug("a,peer=b"), false};
	struct ixdp_frame_id id;
	uint64_t arrived = 0;
	uint64_t missed = 0;
	pthread_t thread;
	void *sent;
	bool last = false;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, send_all, &sender), 0);
	while (!last) {
		struct wire *b = plug("b");

		last = __atomic_load_n(&sender.finished, __ATOMIC_ACQUIRE);
		for (unsigned i = 0; i < 1000 && take(b, 0, &id); i++)
			arrived++;
		missed += b->ops->missed(b);
		stats_of(b);
		unplug(b);
	}
	assert_int_equal(pthread_join(thread, &sent), 0);
	assert_int_equal((uintptr_t)sent, THREAD_FRAMES);
	assert_int_equal(stats_of(sender.a).from_port_packets, THREAD_FRAMES);
	assert_true(arrived + missed <= THREAD_FRAMES);
	unplug(sender.a);
	unplug(sender.gen);
}

static void *send_all_and_say_so(void *arg) {
	struct sender *sender = arg;

	carry(sender->gen, sender->a, THREAD_FRAMES);
	__atomic_store_n(&sender->finished, true, __ATOMIC_RELEASE);
	return NULL;
}

/* No lock is taken on the way of a frame: the queue alone keeps sender and receiver apart. */
static void frames_are_whole_on_the_other_thread(void **state) {
	struct sender sender = {plug("g,peer=gen,count=20000,size=700"), plug("a,peer=b"), false};
	struct wire *b = plug("b");
	struct ixdp_frame_id id;
	uint64_t arrived = 0;
	pthread_t thread;
	bool last = false;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, send_all_and_say_so, &sender), 0);
	while (!last) {
		last = __atomic_load_n(&sender.finished, __ATOMIC_RELAXED);
		while (take(b, 0, &id))
			arrived++;
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	while (take(b, 0, &id))
		arrived++;
	assert_int_equal(arrived + b->ops->missed(b), THREAD_FRAMES);
	unplug(b);
	unplug(sender.a);
	unplug(sender.gen);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_cable_connects_in_either_order),
	    cmocka_unit_test(while_the_other_end_is_not_open_a_cable_is_a_sink),
	    cmocka_unit_test(the_port_that_stays_becomes_a_sink_and_connects_again),
	    cmocka_unit_test(what_is_under_way_arrives_though_the_sender_has_gone),
	    cmocka_unit_test(frames_that_do_not_fit_are_missed_at_the_receiver),
	    cmocka_unit_test(a_port_is_in_one_cable_only),
	    cmocka_unit_test(the_ends_of_a_cable_may_be_on_two_threads),
	    cmocka_unit_test(frames_are_whole_on_the_other_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
