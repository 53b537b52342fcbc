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
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/clock.h"

enum { WAIT_NS = 1000000000, WAITS = 10 };

static struct worker { alignas(64) atomic_uint turns; /* odd: inside */ } * workers;
static unsigned n_workers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these two being set */
static _Thread_local bool inside;

unsigned workers_count(void) { return __atomic_load_n(&n_workers, __ATOMIC_ACQUIRE); }

int ixdp_xdp_workers(unsigned threads) {
	int err = 0;
	if (threads == 0) return ixdp_fail(EINVAL, "no workers: there must be one at least");
	pthread_mutex_lock(&lock);
	if (n_workers != 0 && n_workers != threads)
		err = ixdp_fail(EBUSY, "%u workers: the process has said %u before", threads,
				n_workers);
	else if (!workers &&
		 syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
		err = ixdp_fail(ENOSYS, "membarrier: %m: XDP needs Linux 4.14");
	else if (!workers && !(workers = aligned_alloc(64, threads * sizeof(*workers))))
		err = ixdp_fail(ENOMEM, "%u workers: out of memory", threads);
	if (!err && n_workers == 0) {
		memset(workers, 0, threads * sizeof(*workers));
		port_quiesce = workers_wait;
		__atomic_store_n(&n_workers, threads, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void turn(unsigned worker) {
	unsigned turns = atomic_load_explicit(&workers[worker].turns, memory_order_relaxed);
	atomic_store_explicit(&workers[worker].turns, turns + 1, memory_order_release);
}

void worker_enter(unsigned worker) {
#ifdef IXDP_DEBUG
	if (workers[worker].turns % 2 == 1)
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
	uint64_t deadline = clock_now_ns() + WAITS * (uint64_t)WAIT_NS;
	unsigned n = workers_count();
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	for (unsigned i = 0; i < n; i++) {
		unsigned turns = atomic_load_explicit(&workers[i].turns, memory_order_acquire);
		while (turns % 2 == 1 &&
		       turns == atomic_load_explicit(&workers[i].turns, memory_order_acquire)) {
			if (clock_now_ns() > deadline)
				return ixdp_fail(ETIMEDOUT,
						 "worker %u is inside an XDP program "
						 "for 10 s: does it wait for something?",
						 i);
			sched_yield();
		}
	}
	return 0;
}
