/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers that look without a lock, and who waits for them: the memory barrier that makes it right
 * must come when what they look at has changed, and may fail. Here syscall(2) is the test's own.
 */
#include "xdp/xdp.h"
#include "xdp_rig.h"

#include <linux/membarrier.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BUFFERS = 8192 };

static struct xdp_rig rig;

static int fail_with; /* errno of the next membarrier(2); 0: it works */
static unsigned barriers;
static struct program *attached; /* what was so at the latest */
static bool was_open, did_send;
static struct ixdp_port *b;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's name is reserved */
long syscall(long number, ...) {
	va_list args;
	long a[6], result;
	va_start(args, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_membarrier) {
		if (fail_with) {
			errno = fail_with;
			fail_with = 0;
			return -1;
		}
		barriers += a[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
		if (rig.a.port && rig.a.port->xdp) attached = rig.a.port->xdp->program;
		was_open = port_is_open(b);
		did_send = b && port_sends(b);
	}
#if defined(__x86_64__)
	register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a[0], x1 __asm__("x1") = a[1],
			 x2 __asm__("x2") = a[2], x3 __asm__("x3") = a[3], x4 __asm__("x4") = a[4],
			 x5 __asm__("x5") = a[5];
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	result = x0;
#endif
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

static int setup(void **state) {
	(void)state;
	assert_int_equal(ixdp_xdp_workers(2), 0);
	xdp_rig_begin(&rig, BUFFERS);
	xdp_rig_open(&rig, &rig.a, NULL);
	xdp_rig_open(&rig, &rig.b, NULL);
	b = rig.b.port;
	barriers = 0;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	b = NULL;
	xdp_rig_end(&rig);
	return 0;
}

/* Runs first. A kernel without it must not look like one with it later. */
static void kernel_without_barrier_is_refused(void **state) {
	struct ixdp_port *port;
	(void)state;
	fail_with = ENOSYS;
	assert_int_equal(ixdp_xdp_workers(2), -ENOSYS);
	assert_non_null(strstr(ixdp_error(), "membarrier"));
	assert_int_equal(ixdp_xdp_open(&port, "soft:a", NULL), -EINVAL);
	assert_int_equal(ixdp_xdp_workers(2), 0);
}

static uint32_t drop(struct ixdp_xdp_buff *xdp, void *arg) {
	(void)xdp, (void)arg;
	return XDP_DROP;
}

static void barrier_comes_after_the_change(void **state) {
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		barriers = 0;
		assert_int_equal(ixdp_xdp_attach(rig.a.port, i % 2 ? NULL : drop, &rig), 0);
		assert_int_equal(barriers, 1);
		assert_int_equal(attached != NULL, i % 2 == 0);
		assert_ptr_equal(attached, rig.a.port->xdp->program);
	}
	barriers = 0;
	assert_int_equal(ixdp_stop(rig.b.port), 0);
	assert_int_equal(barriers, 1);
	assert_false(did_send);
	assert_true(was_open);
	assert_int_equal(ixdp_start(rig.b.port), 0);
	barriers = 0;
	xdp_rig_close(&rig.b);
	assert_int_equal(barriers, 1);
	assert_false(was_open);
}

/* It may: the kernel needs memory for it. Then the caller must not free anything. */
static void barrier_that_fails_is_told(void **state) {
	(void)state;
	fail_with = ENOMEM;
	assert_int_equal(ixdp_xdp_attach(rig.a.port, drop, NULL), -ENOMEM);
	assert_ptr_equal(rig.a.port->xdp->program->fn, drop);
	/* First for those of the old one; which fails, and so changes nothing. */
	fail_with = ENOMEM;
	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), -ENOMEM);
	assert_non_null(rig.a.port->xdp->program);
	barriers = 0;
	assert_int_equal(ixdp_xdp_attach(rig.a.port, NULL, NULL), 0);
	assert_int_equal(barriers, 2);
	assert_null(rig.a.port->xdp->program);
	fail_with = ENOMEM;
	assert_int_equal(ixdp_stop(rig.b.port), -EIO);
	xdp_rig_errors = 0;
	assert_int_equal(ixdp_xdp_xmit(rig.b.port, 0, NULL, 0, 0), 0);
}

/* A debug build finds them as they meet. */
static void two_threads_with_one_number_are_found(void **state) {
	(void)state;
	worker_enter(1);
	assert_int_equal(xdp_rig_errors, 0);
	worker_enter(1);
#ifdef IXDP_DEBUG
	assert_int_equal(xdp_rig_errors, 1);
#endif
	worker_leave(1);
	worker_leave(1);
	xdp_rig_errors = 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	    cmocka_unit_test(kernel_without_barrier_is_refused),
	    TEST(barrier_comes_after_the_change),
	    TEST(barrier_that_fails_is_told),
	    TEST(two_threads_with_one_number_are_found),
	};
	return cmocka_run_group_tests(tests, xdp_rig_setup_stepped, NULL);
}
