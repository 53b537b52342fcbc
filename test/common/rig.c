/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <stdio.h>
#include <string.h>

static void log_line(enum ixdp_log_level level, const char *line, void *arg) {
	(void)level, (void)arg;
	fprintf(stderr, "    log: %s\n", line);
}

int rig_group_setup(void **state) {
	(void)state;
	softnic_set_stepped(true);
	ixdp_log_set(log_line, NULL, IXDP_LOG_WARNING);
	return 0;
}

static bool on_sent(const uint8_t *frame, size_t len, void *arg) {
	struct rig *rig = arg;
	struct ixdp_frame_id id;

	if (rig->hold) return false;
	if (rig->sent < RIG_MAX_SENT) {
		bool good = ixdp_frame_read(frame, len, &id) == IXDP_FRAME_GOOD;

		rig->sent_seq[rig->sent] = good ? id.seq : UINT64_MAX;
		rig->sent_len[rig->sent] = len;
	}
	rig->sent++;
	return true;
}

struct ixdp_config rig_config(unsigned rx_queues, unsigned tx_queues) {
	struct ixdp_config cfg;

	ixdp_config_init(&cfg);
	cfg.rx_queues = rx_queues;
	cfg.tx_queues = tx_queues;
	return cfg;
}

int rig_try_open(struct rig *rig, const char *options, const struct ixdp_config *cfg,
		 unsigned buffers) {
	struct ixdp_config own;
	char name[128];
	int err;

	memset(rig, 0, sizeof(*rig));
	if (cfg)
		own = *cfg;
	else
		ixdp_config_init(&own);

	struct ixdp_pool_config pool = {
	    .buffers = buffers ? buffers : ixdp_pool_needed(&own),
	    .numa_node = -1,
	    .ordinary_pages = true,
	};

	assert_int_equal(ixdp_pool_create(&rig->pool, &pool), 0);
	own.pool = rig->pool;
	snprintf(name, sizeof(name), "soft:rig%s", options);
	err = ixdp_open(&rig->port, name, &own);
	if (err) {
		assert_int_equal(rig_available(rig), pool.buffers);
		assert_int_equal(ixdp_pool_destroy(rig->pool), 0);
		return err;
	}
	rig->nic = softnic_find("rig");
	assert_non_null(rig->nic);
	softnic_tap(rig->nic, on_sent, rig);
	return 0;
}

void rig_open(struct rig *rig, const char *options, const struct ixdp_config *cfg) {
	if (rig_try_open(rig, options, cfg, 0) != 0) fail_msg("open: %s", ixdp_error());
}

void rig_close_dirty(struct rig *rig) {
	struct ixdp_pool_stats pool;

	ixdp_close(rig->port);
	ixdp_pool_get_stats(rig->pool, &pool);
	assert_int_equal(pool.available, pool.buffers);
	assert_int_equal(pool.bad_frees, 0);
	assert_int_equal(ixdp_pool_destroy(rig->pool), 0);
}

void rig_close(struct rig *rig) {
	if (softnic_violations(rig->nic) > 0)
		fail_msg("the NIC found: %s", softnic_last_violation(rig->nic));
	rig_close_dirty(rig);
}

static void frame_write(uint8_t *data, unsigned len, uint64_t seq) {
	struct ixdp_frame_config cfg = {
	    .size = len,
	    .generator = 7,
	    .dst_mac = {0x02, 0, 0, 0, 0, 1},
	    .src_mac = {0x02, 0, 0, 0, 0, 2},
	};

	ixdp_frame_write(&cfg, 0, seq, data);
}

uint64_t rig_inject(struct rig *rig, unsigned len) {
	uint8_t frame[IXDP_FRAME_MAX];

	frame_write(frame, len, rig->next_in);
	assert_true(softnic_inject(rig->nic, frame, len));
	return rig->next_in++;
}

void rig_run(struct rig *rig) {
	/* Some faults delay by a few steps: idle once is not idle for good. */
	for (unsigned idle = 0; idle < 16;)
		idle = softnic_step(rig->nic, 64) ? 0 : idle + 1;
}

uint64_t rig_seq(const struct ixdp_pkt *pkt) {
	struct ixdp_frame_id id;

	assert_int_equal(ixdp_frame_read(pkt->data, pkt->len, &id), IXDP_FRAME_GOOD);
	return id.seq;
}

unsigned rig_receive(struct rig *rig, unsigned queue, unsigned n, unsigned batch, uint64_t *seq) {
	struct ixdp_pkt pkts[256];
	unsigned total = 0;

	while (total < n) {
		unsigned want = n - total < batch ? n - total : batch;
		int got = ixdp_rx(rig->port, queue, pkts, want);

		assert_true(got >= 0 && (unsigned)got <= want);
		if (got == 0) break;
		for (int i = 0; i < got; i++)
			assert_int_equal(rig_seq(&pkts[i]), (*seq)++);
		ixdp_free(rig->pool, pkts, got);
		total += got;
	}
	return total;
}

unsigned rig_make(struct rig *rig, struct ixdp_pkt *pkts, unsigned n, unsigned len, uint64_t seq) {
	unsigned got = ixdp_alloc(rig->pool, pkts, n);

	for (unsigned i = 0; i < got; i++) {
		frame_write(pkts[i].data, len, seq + i);
		pkts[i].len = len;
	}
	return got;
}

unsigned rig_available(const struct rig *rig) {
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(rig->pool, &stats);
	return stats.available;
}

struct ixdp_stats rig_stats(struct rig *rig) {
	struct ixdp_stats stats;

	assert_int_equal(ixdp_stats_get(rig->port, &stats), 0);
	return stats;
}
