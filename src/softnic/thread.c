/* SPDX-License-Identifier: BSD-3-Clause */
/* The open NICs, their clock, and the hardware thread that lets all of them work. */
#include "../base/clock.h"
#include "nic.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum {
	/*
	 * Frames in each direction for one NIC in one round: so many that taking the lock costs
	 * nothing, so few (some 20 us) that a register access need not wait for long.
	 */
	FRAMES_PER_ROUND = 128,
	/* Idle, the thread first gives way so many times, then sleeps. */
	IDLE_YIELDS = 200,
	IDLE_SLEEP_NS = 50000,
	/* A stepped delay, however long, is cut into so many steps. */
	STEPS_PER_DELAY = 100,
	STEPS_FRAMES = 256,
};

static struct {
	struct nic_lock lock; /* of the list */
	pthread_mutex_t life; /* held during open and close */
	struct softnic *first;
	pthread_t thread;
	bool running;	   /* under life */
	bool stop;	   /* atomic */
	bool stepped;	   /* atomic */
	uint64_t model_ns; /* atomic; not 0, so that what lies before the first NIC has a time */
} nics = {
    .lock = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER},
    .life = PTHREAD_MUTEX_INITIALIZER,
    .model_ns = 1000000000,
};

int nic_lock_init(struct nic_lock *lock) {
	int err = pthread_mutex_init(&lock->turnstile, NULL);

	return err ? err : pthread_mutex_init(&lock->mutex, NULL);
}

void nic_lock_take(struct nic_lock *lock) {
	pthread_mutex_lock(&lock->turnstile);
	pthread_mutex_lock(&lock->mutex);
	pthread_mutex_unlock(&lock->turnstile);
}

void nic_lock_give(struct nic_lock *lock) { pthread_mutex_unlock(&lock->mutex); }

void softnic_set_stepped(bool on) { __atomic_store_n(&nics.stepped, on, __ATOMIC_RELAXED); }

static bool stepped(void) { return __atomic_load_n(&nics.stepped, __ATOMIC_RELAXED); }

void softnic_advance_ns(uint64_t ns) { __atomic_fetch_add(&nics.model_ns, ns, __ATOMIC_RELAXED); }

uint64_t softnic_now_ns(struct softnic *nic) {
	(void)nic;
	return stepped() ? __atomic_load_n(&nics.model_ns, __ATOMIC_RELAXED) : clock_now_ns();
}

static unsigned step(struct softnic *nic, unsigned frames) {
	uint64_t now = softnic_now_ns(nic);
	unsigned moved;

	nic_lock_take(&nic->lock);
	nic->steps++;
	nic_late_run(nic, false);
	moved = nic_rx_run(nic, frames, now);
	nic_flow_run(nic, now);
	moved += nic_tx_run(nic, frames, now);
	if (nic_fault(nic, FAULT_GONE_AFTER)) nic_fault_count(nic, moved);
	nic_lock_give(&nic->lock);
	return moved;
}

unsigned softnic_step(struct softnic *nic, unsigned frames) {
	if (stepped()) softnic_advance_ns(1000);
	return step(nic, frames);
}

void softnic_delay_us(struct softnic *nic, unsigned us) {
	unsigned steps = us < STEPS_PER_DELAY ? us : STEPS_PER_DELAY;
	uint64_t ns = (uint64_t)us * 1000;

	if (!stepped()) {
		clock_sleep_us(us);
		return;
	}
	for (unsigned i = 0; i < steps; i++) {
		softnic_advance_ns(ns * (i + 1) / steps - ns * i / steps);
		step(nic, STEPS_FRAMES);
	}
}

static void *hardware(void *arg) {
	const struct timespec nap = {0, IDLE_SLEEP_NS};
	unsigned idle = 0;

	/* Without this the kernel may double the nap. */
	prctl(PR_SET_TIMERSLACK, 1000);
	while (!__atomic_load_n(&nics.stop, __ATOMIC_RELAXED)) {
		unsigned moved = 0;

		nic_lock_take(&nics.lock);
		for (struct softnic *nic = nics.first; nic; nic = nic->next)
			moved += step(nic, FRAMES_PER_ROUND);
		nic_lock_give(&nics.lock);

		if (moved > 0) {
			idle = 0;
		} else if (idle < IDLE_YIELDS) {
			idle++;
			sched_yield();
		} else {
			nanosleep(&nap, NULL);
		}
	}
	return arg;
}

/* Signals are for the application's threads. */
static int start_thread(void) {
	sigset_t all, before;
	int err;

	__atomic_store_n(&nics.stop, false, __ATOMIC_RELAXED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&nics.thread, NULL, hardware, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) return ixdp_fail(err, "cannot start the software NIC's thread: %s", strerror(err));
	pthread_setname_np(nics.thread, "ixdp-softnic");
	nics.running = true;
	return 0;
}

void nic_life_begin(void) { pthread_mutex_lock(&nics.life); }

void nic_life_end(void) { pthread_mutex_unlock(&nics.life); }

int nic_attach(struct softnic *nic) {
	if (!nics.running && !stepped()) {
		int err = start_thread();

		if (err) return err;
	}
	nic_lock_take(&nics.lock);
	nic->next = nics.first;
	nics.first = nic;
	nic_lock_give(&nics.lock);
	return 0;
}

void nic_detach(struct softnic *nic) {
	struct softnic **at = &nics.first;
	bool last;

	nic_lock_take(&nics.lock);
	while (*at != nic)
		at = &(*at)->next;
	*at = nic->next;
	last = !nics.first;
	nic_lock_give(&nics.lock);
	if (last && nics.running) {
		__atomic_store_n(&nics.stop, true, __ATOMIC_RELAXED);
		pthread_join(nics.thread, NULL);
		nics.running = false;
	}
}

struct softnic *softnic_find(const char *name) {
	struct softnic *nic;

	nic_lock_take(&nics.lock);
	for (nic = nics.first; nic; nic = nic->next)
		if (strcmp(nic->name, name) == 0) break;
	nic_lock_give(&nics.lock);
	return nic;
}
