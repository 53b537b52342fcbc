/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver on a card that lies: registers hold what the input says, and between two calls of the
 * driver anything is written over its descriptors. Whatever the card does, the driver must end each
 * wait, hand out packets that lie within their buffers, and know where each buffer is.
 *
 * The card is card.c. The input is two: how registers lie, then what happens; card.h has the
 * former.
 */
#include "card.h"
#include "fuzz.h"

#include "driver/port.h"

#include <sanitizer/asan_interface.h>

enum {
	POOL_BUFFERS = 1024,
	MAX_HELD = POOL_BUFFERS + 256, /* room for more than there are */
	MAX_OPS = 400,
	OPEN_READS = 100000, /* all waits, each to its end, in open and on the way back */
	CALL_READS = 3000,   /* two waits for SECRXSTAT.RDY, the longest of a call */
};

static struct ixdp_pool *pool;
static struct ixdp_port *port;
static struct ixdp_config cfg;
static struct ixdp_pkt held[MAX_HELD];
static unsigned n_held;

/* In place of the driver's (linked with --wrap). */
int __wrap_bus_open(struct ixdp_bus **bus, const char *name, bool force);
int __wrap_bus_open(struct ixdp_bus **bus, const char *name, bool force) {
	(void)name, (void)force;
	*bus = card_bus();
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
	struct ixdp_pool_config wanted = {
	    .buffers = POOL_BUFFERS, .numa_node = -1, .ordinary_pages = true};

	(void)argc, (void)argv;
	dma_set_mounts_file("/dev/null"); /* no huge pages */
	MUST(ixdp_pool_create(&pool, &wanted) == 0, "%s", ixdp_error());
	return 0;
}

static void check_pool(unsigned ours) {
	struct ixdp_pool_stats stats;

	ixdp_pool_get_stats(pool, &stats);
	MUST(stats.bad_frees == 0, "%llu", (unsigned long long)stats.bad_frees);
	MUST(stats.available + ours == stats.buffers, "%u of %u buffers are in the pool, %u ours",
	     stats.available, stats.buffers, ours);
}

/* Whole frames, no longer than the port allows, with flags that it has. */
static void check_packets(const struct ixdp_pkt *pkts, unsigned n) {
	unsigned allowed = IXDP_PKT_CONTD;
	size_t len = 0;

	if (cfg.offloads & IXDP_OFFLOAD_VLAN_STRIP) allowed |= 0xFFFF0000 | IXDP_PKT_VLAN;
	if (cfg.offloads & IXDP_OFFLOAD_CSUM)
		allowed |= IXDP_PKT_IP_CSUM_GOOD | IXDP_PKT_IP_CSUM_BAD | IXDP_PKT_L4_CSUM_GOOD |
			   IXDP_PKT_L4_CSUM_BAD;
	for (unsigned i = 0; i < n; i++) {
		const struct ixdp_pkt *pkt = &pkts[i];

		MUST(pkt->len > 0 && pkt->len <= IXDP_DATA_SIZE, "%u bytes", pkt->len);
		MUST(pkt->headroom == IXDP_HEADROOM, "headroom %u", pkt->headroom);
		MUST(!(pkt->flags & ~allowed), "flags 0x%x", pkt->flags);
		MUST(len == 0 || !(pkt->flags & ~(unsigned)IXDP_PKT_CONTD), "0x%x", pkt->flags);
		touch(pkt->data, pkt->len);
		len += pkt->len;
		MUST(len <= IXDP_DATA_SIZE || len <= port->cfg.mtu + ETHERNET_MAX, "%zu bytes",
		     len);
		if (!(pkt->flags & IXDP_PKT_CONTD)) len = 0;
	}
	MUST(len == 0, "a frame without its end");
}

static void receive(struct input *in, bool hashed) {
	unsigned queue = input_u8(in) % 4, n = input_u8(in);
	unsigned longest = (port->cfg.mtu + ETHERNET_MAX + IXDP_DATA_SIZE - 1) / IXDP_DATA_SIZE;
	struct ixdp_pkt *pkts = &held[n_held];
	struct ixdp_rx_hash hashes[256];
	int got;

	if (n > MAX_HELD - n_held) n = MAX_HELD - n_held;
	got = hashed ? ixdp_rx_hashed(port, queue, pkts, hashes, n) : ixdp_rx(port, queue, pkts, n);
	if (queue >= cfg.rx_queues || !port->running || (n > 0 && n < longest)) {
		must_explain(got);
		return;
	}
	MUST(got >= 0 && (unsigned)got <= n, "%d of %u", got, n);
	check_packets(pkts, got);
	for (int i = 0; hashed && i < got; i++) {
		MUST(!(hashes[i].type & ~(unsigned)IXDP_RSS_ALL), "type 0x%x", hashes[i].type);
		while (pkts[i].flags & IXDP_PKT_CONTD)
			i++;
	}
	n_held += got;
}

/* The beginning of an IP packet, for checksums; often not quite. */
static void write_headers(struct ixdp_pkt *pkt, struct input *in) {
	static const uint8_t protocols[] = {6, 17, 132, 1};
	unsigned how = input_u8(in), tag = how & 1 ? 4 : 0;
	uint8_t *ip = pkt->data + 14 + tag;

	memset(pkt->data, 0, 80);
	if (tag) memcpy(pkt->data + 12, "\x81\x00", 2);
	memcpy(ip - 2, how & 2 ? "\x08\x00" : "\x86\xDD", 2);
	ip[0] = how & 2 ? 0x45 : 0x60;
	ip[how & 2 ? 3 : 5] = input_u8(in);
	ip[how & 2 ? 9 : 6] = protocols[how >> 2 & 3];
	pkt->data[input_u8(in) % 80] ^= input_u8(in);
}

/* A frame's bytes end where it says: what lies behind may be another's. */
static void poison_behind(const struct ixdp_pkt *pkts, unsigned n, bool poison) {
	for (unsigned i = 0; i < n; i++) {
		size_t used = pkts[i].headroom + pkts[i].len;
		uint8_t *end = ixdp_pkt_buffer(&pkts[i]) + used;

		if (used > IXDP_HEADROOM + IXDP_DATA_SIZE) continue;
		if (poison)
			ASAN_POISON_MEMORY_REGION(end, IXDP_BUFFER_STRIDE - used);
		else
			ASAN_UNPOISON_MEMORY_REGION(end, IXDP_BUFFER_STRIDE - used);
	}
}

/* Sends what is held, as it is or with lengths and flags that may be wrong. */
static void send(struct input *in) {
	unsigned queue = input_u8(in) % 4, n = input_u8(in) % 65, how = input_u8(in);
	int taken;

	if (n > n_held) n = n_held;
	struct ixdp_pkt *pkts = &held[n_held - n];

	for (unsigned i = 0; i < n; i++) {
		if (how & 1)
			pkts[i].len = input_u16(in) % (how & 4 ? IXDP_DATA_SIZE : 0x10000);
		else if (!(how & 4))
			pkts[i].len = 60;
		if (how & 2)
			pkts[i].flags = input_u8(in);
		else if (!(how & 4))
			pkts[i].flags = 0;
		if (how & 8) write_headers(&pkts[i], in);
	}
	poison_behind(pkts, n, true);
	taken = ixdp_tx(port, queue, pkts, n);
	poison_behind(pkts, n, false);
	if (taken < 0) {
		must_explain(taken);
		return;
	}
	MUST(queue < cfg.tx_queues && (unsigned)taken <= n, "%d of %u", taken, n);
	MUST(taken == 0 || !(pkts[taken - 1].flags & IXDP_PKT_CONTD), "sent half a frame");
	memmove(pkts, pkts + taken, (n - taken) * sizeof(*pkts));
	n_held -= taken;
}

static void clean(struct input *in) {
	unsigned queue = input_u8(in) % 4;
	int cleaned = ixdp_tx_clean(port, queue);

	if (queue >= cfg.tx_queues)
		must_explain(cleaned);
	else
		MUST(cleaned >= 0 && (unsigned)cleaned < cfg.tx_ring, "%d", cleaned);
}

static void hold(struct input *in) {
	unsigned n = input_u16(in) % MAX_HELD;

	n_held += ixdp_alloc(pool, &held[n_held], n < MAX_HELD - n_held ? n : MAX_HELD - n_held);
}

static void let_go(struct input *in) {
	unsigned n = input_u16(in) % MAX_HELD;

	n = n < n_held ? n : n_held;
	n_held -= n;
	ixdp_free(pool, &held[n_held], n);
}

static void ask_link(struct input *in) {
	struct ixdp_link link = {0};
	int err = ixdp_link_wait(port, input_u8(in), &link);

	if (err)
		must_explain(err);
	else
		MUST(link.up && (link.mbps == 0 || link.mbps == 100 || link.mbps == 1000 ||
				 link.mbps == 10000),
		     "%u Mbit/s", link.mbps);
}

static void control(struct input *in) {
	uint8_t mac[6];
	int err;

	if (input_u8(in) & 1) {
		err = ixdp_promiscuous_set(port, input_u8(in) & 1);
	} else {
		memset(mac, input_u8(in), sizeof(mac));
		err = ixdp_mac_set(port, mac);
		ixdp_mac_get(port, mac);
		MUST(!(mac[0] & 1), "a multicast address is ours");
	}
	if (err) must_explain(err);
}

/* A port that cannot be stopped goes on; one that cannot be started stays stopped. */
static void stop_or_start(struct input *in) {
	unsigned how = input_u8(in);
	int err;

	card_allow_reads(OPEN_READS);
	if (how % 4 == 0)
		err = ixdp_stop(port);
	else if (how % 4 == 1)
		err = ixdp_start(port);
	else if (how % 4 == 2)
		err = ixdp_mtu_set(port, input_u16(in) % 10000);
	else
		err = ixdp_pause_set(port, how >> 2);
	if (err) must_explain(err);
}

static void read_stats(void) {
	struct ixdp_stats stats;
	int err = ixdp_stats_get(port, &stats);

	if (err) must_explain(err);
}

/* One call of the driver, or one deed of the card. */
static void one_op(struct input *in) {
	card_allow_reads(CALL_READS);
	switch (input_u8(in) % 15) {
	case 0:
	case 1:
		receive(in, false);
		break;
	case 2:
		send(in);
		break;
	case 3:
		clean(in);
		break;
	case 4:
		hold(in);
		break;
	case 5:
		let_go(in);
		break;
	case 6:
		ask_link(in);
		break;
	case 7:
		control(in);
		break;
	case 8:
		read_stats();
		break;
	case 9:
		card_receive(in, false);
		break;
	case 10:
		card_scribble(in);
		break;
	case 11:
		card_set_register(in);
		break;
	case 12:
		receive(in, true);
		break;
	case 13:
		card_receive(in, true);
		break;
	default:
		stop_or_start(in);
	}
	card_check();
}

static void configure(struct input *in) {
	unsigned bits = input_u8(in);

	ixdp_config_init(&cfg);
	cfg.rx_queues = bits % 4;
	cfg.tx_queues = bits / 4 % 3;
	cfg.rx_ring = bits & 0x10 ? 128 : IXDP_MIN_RING;
	cfg.tx_ring = bits & 0x20 ? 128 : IXDP_MIN_RING;
	cfg.promiscuous = bits & 0x40;
	if (bits & 0x80) {
		cfg.offloads = input_u8(in) % 4;
		cfg.mtu = IXDP_MIN_MTU + input_u16(in) % (IXDP_MAX_MTU - IXDP_MIN_MTU + 1);
	}
	cfg.pool = pool;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
	struct input in = {data, len};
	int err;

	configure(&in);
	/* Some buffers are elsewhere, so that there may be too few for the rings. */
	n_held = ixdp_alloc(pool, held, input_u8(&in) * 2);
	/* Each ring has the place of the larger kind. */
	card_begin(&in, (cfg.rx_queues + cfg.tx_queues) *
			    (cfg.rx_ring > cfg.tx_ring ? cfg.rx_ring : cfg.tx_ring) *
			    sizeof(struct desc));
	card_allow_reads(OPEN_READS);
	ixdp_pool_create(&(struct ixdp_pool *){0}, &(struct ixdp_pool_config){0});
	err = ixdp_open(&port, "card", &cfg);
	if (err) {
		must_explain(err);
		MUST(strncmp(ixdp_error(), "pool of 0", 9) != 0, "an error without its own text");
	} else {
		for (unsigned ops = 0; in.len > 0 && ops < MAX_OPS; ops++)
			one_op(&in);
		card_allow_reads(OPEN_READS);
		ixdp_close(port);
	}
	card_end();
	check_pool(n_held);
	ixdp_free(pool, held, n_held);
	check_pool(0);
	return 0;
}
