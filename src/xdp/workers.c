/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers, and how to wait until they have let go of something that they look at without a lock.
 * A worker counts itself in and out with plain stores; who waits makes all running threads take a
 * memory barrier by membarrier(2): a worker that was not seen inside then finds what has changed.
 */
#include "xdp.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/clock.h"

unsigned workers_wait_ms = 10000;

static struct worker { alignas(64) atomic_uint turns; /* odd: inside */ } * workers;
static atomic_uint n_workers;
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

unsigned workers_count(void) { return atomic_load_explicit(&n_workers, memory_order_acquire); }

int ixdp_xdp_workers(unsigned threads) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int err = 0;
	if (threads == 0 || threads > IXDP_MAX_THREADS)
		return ixdp_fail(EINVAL, "%u workers: must be 1 to %d", threads, IXDP_MAX_THREADS);
	pthread_mutex_lock(&lock);
	if (n_workers != 0 && n_workers != threads)
		err = ixdp_fail(EBUSY, "%u workers: the process has said %u", threads, n_workers);
	else if (n_workers != 0)
		; /* said before */
	else if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
		err = ixdp_fail(ENOSYS, "membarrier: %m: XDP needs Linux 4.14");
	else if (!(workers = aligned_alloc(64, threads * sizeof(*workers))))
		err = ixdp_fail(ENOMEM, "%u workers: out of memory", threads);
	else {
		memset(workers, 0, threads * sizeof(*workers));
		port_quiesce = workers_wait;
		n_workers = threads;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static unsigned turns_of(unsigned worker) {
	return atomic_load_explicit(&workers[worker].turns, memory_order_acquire);
}

static void turn(unsigned worker) {
	atomic_store_explicit(&workers[worker].turns, turns_of(worker) + 1, memory_order_release);
}

void worker_enter(unsigned worker) {
#ifdef IXDP_DEBUG
	if (turns_of(worker) % 2 == 1)
		ixdp_log(IXDP_LOG_ERROR, "worker %u: two threads have this number", worker);
#endif
	inside = true;
	turn(worker);
	/* For the compiler; the processor's part is the membarrier of who waits. */
	atomic_signal_fence(memory_order_seq_cst);
}

void worker_leave(unsigned worker) {
	turn(worker);
	inside = false;
}

bool worker_inside(void) { return inside; }

int workers_wait(void) {
	uint64_t deadline = clock_now_ns() + workers_wait_ms * UINT64_C(1000000);
	if (inside) return ixdp_fail(EDEADLK, "an XDP program cannot wait for itself to end");
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
		return ixdp_fail(errno, "membarrier: %m");
	for (unsigned i = 0; i < n_workers; i++) {
		unsigned turns = turns_of(i);
		while (turns % 2 == 1 && turns == turns_of(i)) {
			if (clock_now_ns() > deadline)
				return ixdp_fail(ETIMEDOUT,
						 "worker %u is inside an XDP program for %u ms: "
						 "does it wait for something?",
						 i, workers_wait_ms);
			sched_yield();
		}
	}
	return 0;
}
