/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A soak: random traffic, random users, and faults that strike while frames move, by a seed and
 * without time, so that whatever it finds happens again. What must hold:
 *
 * - every buffer is in the pool, in a ring, or the caller's;
 * - every frame that the wire handed to the NIC is received once, or counted once under a reason;
 * - frames of a flow stay in order, whole, and unchanged while the caller or a TX ring has them;
 * - every packet taken for sending leaves once, in order, or was in a ring that was closed.
 *
 * IXDP_SOAK_SEED and IXDP_SOAK_PACKETS choose another run.
 */
#include "rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/port.h"

enum {
	PACKETS = 200000,
	SEED = 82599,
	QUEUES = 2,
	RING = 128,
	FLOWS = 16, /* a flow's queue, in both directions, is its number modulo QUEUES */
	MAX_BATCH = 64,
	MAX_HELD = 256,
	GENERATOR_IN = 1,
	GENERATOR_OUT = 2,
	OVERSIZE = 2000, /* above any frame of the default MTU */
	MAX_TAKEN = 4096,
};

/* Set at random, several together; what they need behind the colon is random too. */
static const struct {
	const char *name;
	unsigned arg; /* 1 to this; 0: none */
} faults[] = {
    {"torn", 0},    {"dd-late", 40}, {"len-zero", 50},	{"bad-crc", 50},
    {"tx-stop", 0}, {"rx-stop", 0},  {"link-flap", 20}, {"link-down", 0},
};
enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

/* With which a port is closed, and which the driver must not mind. */
static const char *const closing_faults[] = {
    "none", "none", "disable-never", "disable-late:3", "master-stuck", "reset-stuck", "all-ones",
};
enum { CLOSING_FAULTS = sizeof(closing_faults) / sizeof(closing_faults[0]) };

/* And opened; ok: it opens all the same. */
static const struct {
	const char *fault;
	bool ok;
} opening_faults[] = {
    {"none", true},	   {"enable-late:5", true}, {"master-stuck", true}, {"eeprom-stuck", false},
    {"dmai-stuck", false}, {"enable-never", false}, {"secrx-stuck", false}, {"wrong-mac", false},
};
enum { OPENING_FAULTS = sizeof(opening_faults) / sizeof(opening_faults[0]) };

struct id {
	uint16_t generator, flow;
	uint64_t seq;
};

static struct soak {
	uint64_t seed, random;
	struct ixdp_pool *pool;
	struct ixdp_port *port;
	struct softnic *nic;
	uint64_t round;
	bool wire_holds;
	bool damages; /* bad-crc is at work */

	/* Frames by what became of them; counted: by ports that were closed since. */
	uint64_t injected, received, counted, closed_in, sent, taken, closed_out;
	struct ixdp_stats totals;
	uint64_t in_seq[FLOWS], out_seq[FLOWS]; /* of the next frame made */
	uint64_t got_seq[FLOWS];		/* received next at the earliest */

	struct {
		struct id ids[MAX_TAKEN]; /* taken, not on the wire so far */
		unsigned begin, end;
	} tx[QUEUES];

	struct {
		struct ixdp_pkt pkt;
		uint64_t until; /* the round */
	} held[MAX_HELD];
	unsigned n_held;
	struct ixdp_pkt hog[4096]; /* all that there was, so that rings run dry */
	unsigned n_hog;
	uint64_t hog_until;

	uint64_t struck[FAULTS], opened, refused, dried;
} soak;

/* xorshift64*; below(n): 0 to n - 1. */
static uint64_t next_random(void) {
	soak.random ^= soak.random >> 12;
	soak.random ^= soak.random << 25;
	soak.random ^= soak.random >> 27;
	return soak.random * UINT64_C(0x2545F4914F6CDD1D) >> 16;
}

static unsigned below(unsigned n) { return next_random() % n; }
static bool one_in(unsigned n) { return below(n) == 0; }

#define must(what)                                                                                 \
	do {                                                                                       \
		if (!(what))                                                                       \
			fail_msg("seed %" PRIu64 ", round %" PRIu64 ": not true: %s", soak.seed,   \
				 soak.round, #what);                                               \
	} while (0)

/* --- where buffers are -------------------------------------------------------------------- */

static unsigned in_rings(void) {
	unsigned n = 0;

	for (unsigned q = 0; soak.port && q < QUEUES; q++) {
		const struct rx_ring *rx = &soak.port->rx[q];
		const struct tx_ring *tx = &soak.port->tx[q];

		n += rx->refill + rx->mask + 1 - rx->next;
		n += tx->next - tx->clean;
	}
	return n;
}

static void check_buffers(void) {
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(soak.pool, &stats);
	must(stats.available + in_rings() + soak.n_held + soak.n_hog == stats.buffers);
	must(stats.bad_frees == 0);
}

/* --- the caller --------------------------------------------------------------------------- */

static struct id read_id(const uint8_t *data, size_t len) {
	struct ixdp_frame_id id = {0};

	must(ixdp_frame_read(data, len, &id) == IXDP_FRAME_GOOD);
	must(id.flow < FLOWS);
	return (struct id){id.generator, id.flow, id.seq};
}

static void hold(const struct ixdp_pkt *pkt, unsigned rounds) {
	soak.held[soak.n_held].pkt = *pkt;
	soak.held[soak.n_held++].until = soak.round + below(rounds);
}

/* Sends one batch, whose frames are of one queue's flows. What is not taken is the caller's. */
static void send_batch(unsigned queue, const struct ixdp_pkt *pkts, unsigned n) {
	const int result = ixdp_tx(soak.port, queue, pkts, n);

	must(result >= 0 && (unsigned)result <= n);
	for (int i = 0; i < result; i++) {
		must(soak.tx[queue].end - soak.tx[queue].begin < MAX_TAKEN);
		soak.tx[queue].ids[soak.tx[queue].end++ % MAX_TAKEN] =
		    read_id(pkts[i].data, pkts[i].len);
	}
	soak.taken += result;
	ixdp_free(soak.pool, pkts + result, n - result);
}

/* Frees, sends or keeps what it got. */
static void use(const struct ixdp_pkt *pkt) {
	const struct id id = read_id(pkt->data, pkt->len);

	if (soak.n_held < MAX_HELD && one_in(4))
		hold(pkt, one_in(8) ? 2000 : 50);
	else if (soak.port && one_in(2))
		send_batch(id.flow % QUEUES, pkt, 1);
	else
		ixdp_free(soak.pool, pkt, 1);
}

static unsigned receive(unsigned queue, unsigned batch) {
	struct ixdp_pkt pkts[MAX_BATCH];
	const int n = ixdp_rx(soak.port, queue, pkts, batch);

	must(n >= 0 && (unsigned)n <= batch);
	for (int i = 0; i < n; i++) {
		const struct id id = read_id(pkts[i].data, pkts[i].len);

		must(id.generator == GENERATOR_IN && id.flow % QUEUES == queue);
		/* Later than all before: in order, and none twice. */
		must(id.seq >= soak.got_seq[id.flow] && id.seq < soak.in_seq[id.flow]);
		soak.got_seq[id.flow] = id.seq + 1;
		/* Nothing else may be done within the NIC's own step, see on_torn(). */
		if (soak.n_held < MAX_HELD)
			hold(&pkts[i], one_in(8) ? 2000 : 4);
		else
			ixdp_free(soak.pool, &pkts[i], 1);
	}
	soak.received += n;
	return n;
}

/* The held packets whose time has come. */
static void release(bool all) {
	for (unsigned i = 0; i < soak.n_held;) {
		if (!all && soak.held[i].until > soak.round) {
			i++;
			continue;
		}
		const struct ixdp_pkt pkt = soak.held[i].pkt;

		soak.held[i] = soak.held[--soak.n_held];
		if (all)
			ixdp_free(soak.pool, &pkt, 1);
		else
			use(&pkt);
	}
	if (soak.n_hog && (all || soak.round >= soak.hog_until)) {
		ixdp_free(soak.pool, soak.hog, soak.n_hog);
		soak.n_hog = 0;
	}
}

static unsigned any_size(void) { return IXDP_FRAME_MIN + below(1514 - IXDP_FRAME_MIN + 1); }

static void send_new(void) {
	const unsigned flow = below(FLOWS);
	struct ixdp_frame_config frame = {.generator = GENERATOR_OUT, .dst_mac = {2}};
	struct ixdp_pkt pkts[MAX_BATCH];
	const unsigned n = ixdp_alloc(soak.pool, pkts, below(MAX_BATCH + 1));

	for (unsigned i = 0; i < n; i++) {
		frame.size = any_size();
		pkts[i].len = ixdp_frame_write(&frame, flow, soak.out_seq[flow]++, pkts[i].data);
	}
	send_batch(flow % QUEUES, pkts, n);
}

static void dry_out(void) {
	if (soak.n_hog) return;
	soak.n_hog = ixdp_alloc(soak.pool, soak.hog, sizeof(soak.hog) / sizeof(soak.hog[0]));
	soak.hog_until = soak.round + below(200);
	soak.dried++;
}

/* --- the wire ----------------------------------------------------------------------------- */

static bool on_sent(const uint8_t *data, size_t len, void *arg) {
	const struct id id = read_id(data, len);
	const unsigned queue = id.flow % QUEUES;
	const struct id *due = &soak.tx[queue].ids[soak.tx[queue].begin % MAX_TAKEN];

	(void)arg;
	if (soak.wire_holds) return false;
	must(soak.tx[queue].begin != soak.tx[queue].end);
	must(id.generator == due->generator && id.flow == due->flow && id.seq == due->seq);
	soak.tx[queue].begin++;
	soak.sent++;
	return true;
}

static unsigned queue_of(const uint8_t *data, size_t len, void *arg) {
	struct ixdp_frame_id id = {0};

	(void)arg;
	ixdp_frame_read(data, len, &id);
	return id.flow % QUEUES;
}

/* Somebody receives while a descriptor is half written. */
static void on_torn(struct softnic *nic, unsigned queue, unsigned index, void *arg) {
	(void)nic, (void)index, (void)arg;
	if (one_in(4)) receive(queue, 1 + below(MAX_BATCH));
}

static void inject(void) {
	struct ixdp_frame_config frame = {.generator = GENERATOR_IN, .dst_mac = {2}};
	uint8_t data[IXDP_FRAME_MAX];
	struct ixdp_link link;

	/* Without link nothing comes. */
	must(ixdp_link_get(soak.port, &link) == 0);
	for (unsigned n = link.up ? below(MAX_BATCH) : 0; n > 0; n--) {
		/* One thing at a time: of wrong size and damaged is a reason of its own. */
		const unsigned flow = below(FLOWS), kind = soak.damages ? 100 : below(100);

		frame.size = kind == 0 ? OVERSIZE : any_size();
		ixdp_frame_write(&frame, flow, soak.in_seq[flow]++, data);
		soak.injected++;
		if (kind == 1)
			softnic_inject_bad_crc(soak.nic, data, frame.size);
		else
			softnic_inject(soak.nic, data, kind == 2 ? 40 : frame.size);
	}
}

/* --- faults ------------------------------------------------------------------------------- */

static void end_faults(void) {
	must(softnic_fault(soak.nic, "none") == 0);
	soak.damages = false;
}

static void set_faults(void) {
	end_faults();
	for (unsigned i = 0; i < FAULTS; i++) {
		char text[40];

		if (!one_in(5)) continue;
		snprintf(text, sizeof(text), faults[i].arg ? "%s:%u" : "%s", faults[i].name,
			 1 + below(faults[i].arg ? faults[i].arg : 1));
		must(softnic_fault(soak.nic, text) == 0);
		soak.struck[i]++;
		soak.damages |= !strcmp(faults[i].name, "bad-crc");
	}
}

static void open_port(void) {
	static const struct softnic_hooks hooks = {.torn = on_torn};
	struct ixdp_config cfg = rig_config(QUEUES, QUEUES);
	const unsigned n = below(OPENING_FAULTS);
	struct ixdp_pool_stats pool;
	char name[80];

	cfg.pool = soak.pool;
	cfg.rx_ring = cfg.tx_ring = RING;
	snprintf(name, sizeof(name), "soft:soak,fault=%s", opening_faults[n].fault);
	ixdp_pool_get_stats(soak.pool, &pool);
	/* Without buffers for its rings it is refused, too. */
	if (ixdp_open(&soak.port, name, &cfg)) {
		must(!opening_faults[n].ok || pool.available < QUEUES * RING);
		soak.port = NULL;
		soak.refused++;
		check_buffers();
		release(true);
		must(ixdp_open(&soak.port, "soft:soak", &cfg) == 0);
	}
	soak.opened++;
	soak.nic = softnic_find("soak");
	softnic_tap(soak.nic, on_sent, NULL);
	softnic_steer(soak.nic, queue_of, NULL);
	softnic_set_hooks(soak.nic, &hooks);
	end_faults();
}

static void add_totals(struct ixdp_stats *totals, const struct ixdp_stats *stats) {
	const uint64_t *from = (const uint64_t *)stats;
	uint64_t *to = (uint64_t *)totals;

	for (unsigned i = 0; i < sizeof(*totals) / sizeof(*to); i++)
		to[i] += from[i];
}

/* In whatever state: what is in the NIC and in rings then is lost, and only that. */
static void close_port(void) {
	struct ixdp_stats stats;
	uint64_t under_way, to_send = 0;

	must(softnic_violations(soak.nic) == 0);
	must(ixdp_stats_get(soak.port, &stats) == 0);
	add_totals(&soak.totals, &stats);
	under_way = soak.injected - soak.received - soak.totals.rx_dropped - soak.closed_in;
	/* No more than fits there. */
	must(under_way <= QUEUES * RING + 512 * 1024 / IXDP_FRAME_MIN);
	soak.closed_in += under_way;
	for (unsigned q = 0; q < QUEUES; q++)
		to_send += soak.tx[q].end - soak.tx[q].begin;
	must(stats.tx_taken - stats.tx_packets == to_send);

	softnic_set_hooks(soak.nic, NULL);
	must(softnic_fault(soak.nic, closing_faults[below(CLOSING_FAULTS)]) == 0);
	const uint64_t before = soak.sent;

	ixdp_close(soak.port);
	/* A queue that is switched off may have sent some more. */
	soak.closed_out += to_send - (soak.sent - before);
	for (unsigned q = 0; q < QUEUES; q++)
		soak.tx[q].begin = soak.tx[q].end;
	soak.port = NULL;
	soak.nic = NULL;
	check_buffers();
}

/* --- the balance -------------------------------------------------------------------------- */

static unsigned receive_all(void) {
	unsigned n = 0;

	for (unsigned q = 0; q < QUEUES; q++)
		n += receive(q, MAX_BATCH);
	release(true);
	return n;
}

/* Without faults everything runs empty; then the books must balance to the last frame. */
static void settle(void) {
	struct ixdp_stats stats, all = soak.totals;

	end_faults();
	soak.wire_holds = false;
	release(true);
	for (unsigned idle = 0; idle < 4;)
		idle = softnic_step(soak.nic, 64) + receive_all() ? 0 : idle + 1;
	for (unsigned q = 0; q < QUEUES; q++) {
		ixdp_tx_clean(soak.port, q);
		must(soak.tx[q].begin == soak.tx[q].end);
	}
	must(ixdp_stats_get(soak.port, &stats) == 0);
	must(stats.tx_packets == stats.tx_taken);
	add_totals(&all, &stats);
	must(all.rx_packets == soak.received);
	must(soak.injected == soak.received + all.rx_dropped + soak.closed_in);
	must(all.tx_taken == soak.taken && soak.taken == soak.sent + soak.closed_out);
	check_buffers();
}

static void go_round(void) {
	soak.round++;
	/* At times more than the NIC's packet buffer holds. */
	for (unsigned bursts = one_in(300) ? 40 : 1; bursts > 0; bursts--)
		inject();
	if (one_in(8)) soak.wire_holds = !soak.wire_holds;
	for (unsigned steps = below(4); steps > 0; steps--)
		softnic_step(soak.nic, 1 + below(MAX_BATCH));
	for (unsigned q = 0; q < QUEUES; q++)
		if (!one_in(4)) receive(q, 1 + below(MAX_BATCH));
	release(false);
	if (one_in(2)) send_new();
	if (one_in(16)) ixdp_tx_clean(soak.port, below(QUEUES));
	if (one_in(300)) dry_out();
	if (one_in(50)) softnic_advance_ns(below(20) * UINT64_C(1000000)); /* links flap in ms */
	if (one_in(60)) set_faults();
	if (one_in(16)) check_buffers();
	if (one_in(150)) settle();
	if (!one_in(300)) return;
	if (one_in(2)) settle();
	close_port();
	open_port();
}

static void print_summary(void) {
	const struct ixdp_stats *t = &soak.totals;

	printf("soak: seed %" PRIu64 ": %" PRIu64 " packets arrived: %" PRIu64 " received, %" PRIu64
	       " dropped (missed %" PRIu64 ", no descriptor %" PRIu64 ", crc %" PRIu64
	       ", undersize %" PRIu64 ", oversize %" PRIu64 ", length 0 %" PRIu64 "), %" PRIu64
	       " in closed rings; %" PRIu64 " taken: %" PRIu64 " sent, %" PRIu64
	       " in closed rings; faults:",
	       soak.seed, soak.injected, soak.received, t->rx_dropped, t->rx_missed, t->rx_no_desc,
	       t->rx_crc, t->rx_undersize, t->rx_oversize, t->rx_len_zero, soak.closed_in,
	       soak.taken, soak.sent, soak.closed_out);
	for (unsigned i = 0; i < FAULTS; i++)
		printf(" %s %" PRIu64 ",", faults[i].name, soak.struck[i]);
	printf(" empty pool %" PRIu64 ", port opened %" PRIu64 " (refused %" PRIu64
	       "): every buffer and frame accounted for\n",
	       soak.dried, soak.opened, soak.refused);
}

static uint64_t number(const char *name, uint64_t otherwise) {
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void everything_is_accounted_for_whatever_strikes(void **state) {
	const uint64_t packets = number("IXDP_SOAK_PACKETS", PACKETS);
	struct ixdp_config cfg = rig_config(QUEUES, QUEUES);

	(void)state;
	soak.seed = number("IXDP_SOAK_SEED", SEED);
	soak.random = soak.seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
	ixdp_log_set(NULL, NULL, IXDP_LOG_ERROR); /* of what is provoked on purpose */
	cfg.rx_ring = cfg.tx_ring = RING;

	const struct ixdp_pool_config pool = {
	    .buffers = ixdp_pool_needed(&cfg), .numa_node = -1, .ordinary_pages = true};

	must(ixdp_pool_create(&soak.pool, &pool) == 0);
	open_port();
	while (soak.injected < packets)
		go_round();
	settle();
	close_port();
	must(ixdp_pool_destroy(soak.pool) == 0);
	print_summary();
	/* It has been somewhere. */
	assert_true(soak.totals.rx_len_zero > 0 && soak.totals.rx_no_desc > 0 && soak.sent > 0);
	assert_true(soak.totals.rx_missed > 0 && soak.totals.rx_nobuf > 0 && soak.opened > 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(everything_is_accounted_for_whatever_strikes),
	};

	return cmocka_run_group_tests_name("soak", tests, rig_group_setup, NULL);
}
