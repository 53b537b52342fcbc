/* SPDX-License-Identifier: BSD-3-Clause */
/* The hardware thread: it comes with the first NIC, works by itself, lets others in, and goes. */
#include "nic_rig.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

/*
 * Threads of this process that bear the hardware thread's name; naps (may be NULL): how often the
 * latest of them has gone to sleep.
 */
static unsigned hardware_threads(unsigned long *naps) {
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300], line[128] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		if (!file) /* a thread that has just ended */
			continue;
		if (fgets(line, sizeof(line), file) && strcmp(line, "Name:\tixdp-softnic\n") == 0) {
			n++;
			while (naps && fgets(line, sizeof(line), file))
				sscanf(line, "voluntary_ctxt_switches: %lu", naps);
		}
		fclose(file);
	}
	closedir(dir);
	return n;
}

/* The kernel shows a thread for a moment after it was joined. */
static void assert_hardware_threads(unsigned n) {
	const struct timespec nap = {0, 1000000};

	for (unsigned i = 0; i < 10000 && hardware_threads(NULL) != n; i++)
		nanosleep(&nap, NULL);
	assert_int_equal(hardware_threads(NULL), n);
}

static void one_thread_from_first_open_to_last_close(void **state) {
	struct softnic *a, *b;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(softnic_open(&a, "a"), 0);
		assert_hardware_threads(1);
		assert_int_equal(softnic_open(&b, "b"), 0);
		assert_hardware_threads(1);
		softnic_close(a);
		assert_hardware_threads(1);
		softnic_close(b);
		assert_hardware_threads(0);
	}
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(softnic_open(&a, "a"), 0);
		softnic_close(a);
	}
	/* None was left behind that missed its end. */
	assert_int_equal(softnic_open(&a, "a"), 0);
	assert_hardware_threads(1);
	softnic_close(a);
	assert_hardware_threads(0);
}

static void open_running(const char *name) {
	memset(&rig, 0, sizeof(rig));
	rig.mem = aligned_alloc(4096, sizeof(*rig.mem));
	assert_non_null(rig.mem);
	memset(rig.mem, 0, sizeof(*rig.mem));
	if (softnic_open(&rig.nic, name) != 0) fail_msg("%s", ixdp_error());
	assert_int_equal(softnic_dma_map(rig.nic, rig.mem, sizeof(*rig.mem), IOVA), 0);
	softnic_bus_master(rig.nic, true);
}

/* As a driver would, with nothing but memory: a frame goes out, comes back and is written. */
static void frames_move_by_doorbells_alone(void **state) {
	enum { FRAMES = 5000 };
	unsigned sent = 0, received = 0, tx = 0, rx = 0;

	(void)state;
	open_running("r,peer=loop");
	rx_start(0, 2, SRRCTL_DESCTYPE_ADVANCED, false);
	tx_start(0);
	rx_give(0, 0, RING - 1);
	while (received < FRAMES) {
		if (sent < FRAMES && sent - received < RING / 2) {
			make_frame(rig.mem->tx_data[0][tx], 100, sent++);
			tx_frame(0, tx, 100);
			tx = (tx + 1) % RING;
			ring_doorbell(REG_TDT, tx);
		}
		if (rx_status(0, rx) & RXD_DD) {
			assert_int_equal(rx_len(0, rx), 100);
			assert_frame(rig.mem->rx_data[0][rx], 100, received++);
			rx_give(0, (rx + RING - 1) % RING, rx);
			rx = (rx + 1) % RING;
		} else {
			sched_yield();
		}
	}
	assert_int_equal(rd(REG_GPTC), FRAMES);
	assert_int_equal(rd(REG_QPRC), FRAMES);
	rig_close_clean();
}

static void *read_registers(void *arg) {
	unsigned *reads = arg;

	for (unsigned i = 0; i < 2000; i++, (*reads)++)
		rd(i % 2 ? REG_LINKS : REG_STATUS);
	return NULL;
}

/* While the NIC has more work than it can do, several threads still get at its registers. */
static void a_busy_nic_answers(void **state) {
	pthread_t readers[2];
	unsigned reads[2] = {0};

	(void)state;
	open_running("r,peer=gen,drop=on");
	rx_start(0, 2, SRRCTL_DESCTYPE_ADVANCED, true);
	while (softnic_peek(rig.nic, REG_TPR) == 0)
		sched_yield();
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_registers, &reads[i]), 0);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(readers[i], NULL);
		assert_int_equal(reads[i], 2000);
	}
	rig_close_clean();
}

/* With nothing to do it naps, instead of burning a core, and still sees a doorbell. */
static void an_idle_nic_sleeps_and_wakes(void **state) {
	const struct timespec pause = {0, 1000000};
	unsigned long naps = 0, before = 0;

	(void)state;
	open_running("r,peer=loop");
	rx_start(0, 2, SRRCTL_DESCTYPE_ADVANCED, false);
	tx_start(0);
	rx_give(0, 0, RING - 1);
	hardware_threads(&before);
	for (unsigned i = 0; i < 10000 && naps < before + 100; i++) {
		nanosleep(&pause, NULL);
		hardware_threads(&naps);
	}
	assert_true(naps >= before + 100);
	make_frame(rig.mem->tx_data[0][0], 60, 1);
	tx_frame(0, 0, 60);
	ring_doorbell(REG_TDT, 1);
	while (!(rx_status(0, 0) & RXD_DD))
		sched_yield();
	assert_frame(rig.mem->rx_data[0][0], 60, 1);
	rig_close_clean();
}

/* Once unmapping returns, the memory is the caller's again: nobody writes there. */
static void unmapping_waits_for_dma(void **state) {
	(void)state;
	open_running("r,peer=gen,drop=on,strict=off");
	rx_start(0, 2, SRRCTL_DESCTYPE_ADVANCED, true);
	for (unsigned round = 0; round < 50; round++) {
		rx_give(0, 0, RING - 1);
		while (!(rx_status(0, 0) & RXD_DD)) /* and the next ones are under way */
			sched_yield();
		softnic_dma_unmap(rig.nic, IOVA, sizeof(*rig.mem));
		memset(rig.mem, 0xAA, sizeof(rig.mem->rx));
		for (unsigned i = 0; i < RING; i++)
			assert_int_equal(rig.mem->rx[0][i].qw1, UINT64_C(0xAAAAAAAAAAAAAAAA));
		wr(REG_RXDCTL, 0);
		wr(REG_RDH, 0);
		wr(REG_RDT, 0);
		assert_int_equal(softnic_dma_map(rig.nic, rig.mem, sizeof(*rig.mem), IOVA), 0);
		rx_enable(0);
	}
	rig_close();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_thread_from_first_open_to_last_close),
	    cmocka_unit_test(frames_move_by_doorbells_alone),
	    cmocka_unit_test(a_busy_nic_answers),
	    cmocka_unit_test(an_idle_nic_sleeps_and_wakes),
	    cmocka_unit_test(unmapping_waits_for_dma),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
