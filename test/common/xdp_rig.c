/* SPDX-License-Identifier: BSD-3-Clause */
#include "xdp_rig.h"

#include <stdio.h>
#include <string.h>

enum { CODE_AT = 16, TAG_AT = 20 };

atomic_uint xdp_rig_warnings, xdp_rig_errors;
char xdp_rig_line[512];

static void log_line(enum ixdp_log_level level, const char *line, void *arg) {
	(void)arg;
	fprintf(stderr, "    log: %s\n", line);
	atomic_fetch_add(level == IXDP_LOG_ERROR ? &xdp_rig_errors : &xdp_rig_warnings, 1);
	if (level != IXDP_LOG_ERROR) snprintf(xdp_rig_line, sizeof(xdp_rig_line), "%s", line);
}

int xdp_rig_setup(void **state) {
	(void)state;
	ixdp_log_set(log_line, NULL, IXDP_LOG_WARNING);
	return 0;
}

int xdp_rig_setup_stepped(void **state) {
	softnic_set_stepped(true);
	return xdp_rig_setup(state);
}

void xdp_rig_begin(struct xdp_rig *rig, unsigned buffers) {
	struct ixdp_pool_config cfg = {.buffers = buffers, .numa_node = -1, .ordinary_pages = true};
	memset(rig, 0, sizeof(*rig));
	rig->buffers = buffers;
	assert_int_equal(ixdp_pool_create(&rig->pool, &cfg), 0);
}

void xdp_rig_close(struct xdp_end *end) {
	if (!end->port) return;
	if (softnic_violations(end->nic) > 0)
		fail_msg("the NIC found: %s", softnic_last_violation(end->nic));
	ixdp_close(end->port);
	end->port = NULL;
}

void xdp_rig_end(struct xdp_rig *rig) {
	struct ixdp_pool_stats pool;
	xdp_rig_close(&rig->a);
	xdp_rig_close(&rig->b);
	xdp_rig_close(&rig->c);
	ixdp_pool_get_stats(rig->pool, &pool);
	assert_int_equal(pool.available, pool.buffers);
	assert_int_equal(pool.bad_frees, 0);
	assert_int_equal(ixdp_pool_destroy(rig->pool), 0);
	assert_int_equal(xdp_rig_errors, 0);
}

static bool on_sent(const uint8_t *frame, size_t len, void *arg) {
	struct xdp_end *end = arg;
	uint64_t n = end->sent;
	if (end->hold) return false;
	if (n < XDP_RIG_SENT) {
		end->frames[n].len = len;
		memcpy(end->frames[n].data, frame, len < XDP_RIG_BYTES ? len : XDP_RIG_BYTES);
	}
	end->sent = n + 1;
	return true;
}

typedef int open_fn(struct ixdp_port **, const char *, const struct ixdp_config *);

static void open_end(struct xdp_rig *rig, struct xdp_end *end, const struct ixdp_config *cfg,
		     open_fn *open) {
	static const char *const names[] = {"soft:a", "soft:b", "soft:c"};
	const char *name = names[end - &rig->a];
	struct ixdp_config own;
	ixdp_config_init(&own);
	if (cfg) own = *cfg;
	own.pool = rig->pool;
	if (open(&end->port, name, &own) != 0) fail_msg("open: %s", ixdp_error());
	end->nic = softnic_find(name + 5);
	end->sent = 0;
	softnic_tap(end->nic, on_sent, end);
}

void xdp_rig_open(struct xdp_rig *rig, struct xdp_end *end, const struct ixdp_config *cfg) {
	open_end(rig, end, cfg, ixdp_xdp_open);
}

void xdp_rig_open_plain(struct xdp_rig *rig, struct xdp_end *end, const struct ixdp_config *cfg) {
	open_end(rig, end, cfg, ixdp_open);
}

void xdp_rig_frame(uint8_t *data, unsigned len, uint32_t code, uint32_t tag) {
	static const uint8_t header[CODE_AT] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5};
	memset(data, 0xA5, len);
	memcpy(data, header, sizeof(header));
	memcpy(data + CODE_AT, &code, sizeof(code));
	memcpy(data + TAG_AT, &tag, sizeof(tag));
}

static uint32_t word(const uint8_t *data) {
	uint32_t value;
	memcpy(&value, data, sizeof(value));
	return value;
}

uint32_t xdp_rig_code(const uint8_t *data) { return word(data + CODE_AT); }
uint32_t xdp_rig_tag(const uint8_t *data) { return word(data + TAG_AT); }

bool xdp_rig_inject(struct xdp_end *end, unsigned len, uint32_t code, uint32_t tag) {
	uint8_t frame[IXDP_FRAME_MAX];
	xdp_rig_frame(frame, len, code, tag);
	return softnic_inject(end->nic, frame, len);
}

struct ixdp_pkt xdp_rig_make(struct xdp_rig *rig, unsigned len, uint32_t code, uint32_t tag) {
	struct ixdp_pkt pkt;
	assert_int_equal(ixdp_alloc(rig->pool, &pkt, 1), 1);
	xdp_rig_frame(pkt.data, len, code, tag);
	pkt.len = len;
	return pkt;
}

void xdp_rig_run(struct xdp_rig *rig) {
	struct xdp_end *ends[] = {&rig->a, &rig->b, &rig->c};
	for (unsigned idle = 0; idle < 16;) {
		unsigned moved = 0;
		for (unsigned i = 0; i < 3; i++)
			if (ends[i]->port) moved += softnic_step(ends[i]->nic, 64);
		idle = moved ? 0 : idle + 1;
	}
}

struct ixdp_xdp_stats xdp_rig_stats(const struct xdp_end *end, unsigned rx_queue) {
	struct ixdp_xdp_stats stats;
	assert_int_equal(ixdp_xdp_stats_get(end->port, rx_queue, &stats), 0);
	return stats;
}

struct ixdp_xdp_queue_stats xdp_rig_queue_stats(const struct xdp_end *end, unsigned xdp_queue) {
	struct ixdp_xdp_queue_stats stats;
	assert_int_equal(ixdp_xdp_queue_stats_get(end->port, xdp_queue, &stats), 0);
	return stats;
}

uint64_t xdp_rig_counted(const struct ixdp_xdp_stats *stats) {
	uint64_t sum = 0;
#define S(name, what) sum += stats->name;
	IXDP_XDP_STATS(S)
#undef S
	return sum;
}

time_t xdp_rig_now_s(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

unsigned xdp_rig_available(const struct xdp_rig *rig) {
	struct ixdp_pool_stats stats;
	ixdp_pool_get_stats(rig->pool, &stats);
	return stats.available;
}
