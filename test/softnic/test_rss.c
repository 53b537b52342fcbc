/* SPDX-License-Identifier: BSD-3-Clause */
/* RSS by the port's API: which queue a frame comes to, and which hash it comes with. */
#include "nic_packets.h"
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/regs.h"

static struct rig rig;

/* Microsoft's, "Verifying the RSS Hash Calculation", as are the four hashes below. */
static const uint8_t microsoft[IXDP_RSS_KEY] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};
enum { TCP_IPV4 = 0x51ccc178, ANY_IPV4 = 0x323e8fc2, TCP_IPV6 = 0x40207d3d, ANY_IPV6 = 0x2cc18cd5 };

#define V4                                                                                         \
	.ip = 4, .src = {66, 9, 149, 187}, .dst = {161, 142, 100, 80}, .sport = 2794, .dport = 1766
/* clang-format off */
#define V6 .ip = 6, .sport = 2794, .dport = 1766, \
	.src = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, [15] = 7}, \
	.dst = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, [15] = 1}
/* clang-format on */

static void arrive(struct packet packet) {
	uint8_t frame[IXDP_FRAME_MAX] = {0};
	size_t len = make_packet(frame, &packet);

	assert_true(softnic_inject(rig.nic, frame, len < 60 ? 60 : len));
	rig_run(&rig);
}

/* The one frame that has come, its buffers freed. Returns its queue. */
static unsigned take(struct ixdp_rx_hash *hash, unsigned *elements) {
	struct ixdp_config cfg;
	struct ixdp_pkt pkts[8];
	struct ixdp_rx_hash hashes[8];
	unsigned queue = UINT32_MAX, frames = 0;

	*elements = 0;
	*hash = (struct ixdp_rx_hash){0};
	ixdp_config_get(rig.port, &cfg);
	for (unsigned q = 0; q < cfg.rx_queues; q++) {
		int got = ixdp_rx_hashed(rig.port, q, pkts, hashes, 8);

		assert_true(got >= 0);
		if (got == 0) continue;
		frames++;
		queue = q;
		*hash = hashes[0];
		*elements = got;
		ixdp_free(rig.pool, pkts, got);
	}
	assert_int_equal(frames, 1);
	return queue;
}

/* Whatever the table says of a hash. */
static unsigned queue_of(struct ixdp_rx_hash hash) {
	struct ixdp_rss rss;

	ixdp_rss_get(rig.port, &rss);
	return hash.type ? rss.table[hash.hash % IXDP_RSS_TABLE] : 0;
}

static void expect(const char *what, struct packet packet, uint32_t type, uint32_t value) {
	struct ixdp_rx_hash hash;
	unsigned queue, elements;

	arrive(packet);
	queue = take(&hash, &elements);
	if (hash.type != type || hash.hash != value)
		fail_msg("%s: type 0x%x, hash 0x%08x", what, hash.type, hash.hash);
	if (queue != queue_of(hash)) fail_msg("%s: in queue %u", what, queue);
}

static void hashes_are_those_of_the_published_vectors(void **state) {
	static const struct {
		const char *what;
		struct packet packet;
		unsigned types, type;
		uint32_t hash;
	} cases[] = {
	    {"TCP", {V4, .protocol = TCP}, IXDP_RSS_ALL, IXDP_RSS_TCP_IPV4, TCP_IPV4},
	    {"UDP", {V4, .protocol = UDP}, IXDP_RSS_ALL, IXDP_RSS_UDP_IPV4, TCP_IPV4},
	    {"SCTP", {V4, .protocol = SCTP}, IXDP_RSS_ALL, IXDP_RSS_IPV4, ANY_IPV4},
	    {"TCP, v6", {V6, .protocol = TCP}, IXDP_RSS_ALL, IXDP_RSS_TCP_IPV6, TCP_IPV6},
	    {"UDP, v6", {V6, .protocol = UDP}, IXDP_RSS_ALL, IXDP_RSS_UDP_IPV6, TCP_IPV6},
	    {"SCTP, v6", {V6, .protocol = SCTP}, IXDP_RSS_ALL, IXDP_RSS_IPV6, ANY_IPV6},
	    {"a fragment of TCP",
	     {V4, .protocol = TCP, .fragment = true},
	     IXDP_RSS_ALL,
	     IXDP_RSS_IPV4,
	     ANY_IPV4},
	    {"a fragment of UDP, v6",
	     {V6, .protocol = UDP, .fragment = true},
	     IXDP_RSS_ALL,
	     IXDP_RSS_IPV6,
	     ANY_IPV6},
	    {"not IP", {.payload = 50}, IXDP_RSS_ALL, 0, 0},
	    /* One type alone, and all but one. */
	    {"TCP off",
	     {V4, .protocol = TCP},
	     IXDP_RSS_ALL & ~(unsigned)IXDP_RSS_TCP_IPV4,
	     IXDP_RSS_IPV4,
	     ANY_IPV4},
	    {"UDP off",
	     {V4, .protocol = UDP},
	     IXDP_RSS_ALL & ~(unsigned)IXDP_RSS_UDP_IPV4,
	     IXDP_RSS_IPV4,
	     ANY_IPV4},
	    {"TCP off, v6",
	     {V6, .protocol = TCP},
	     IXDP_RSS_ALL & ~(unsigned)IXDP_RSS_TCP_IPV6,
	     IXDP_RSS_IPV6,
	     ANY_IPV6},
	    {"UDP off, v6",
	     {V6, .protocol = UDP},
	     IXDP_RSS_ALL & ~(unsigned)IXDP_RSS_UDP_IPV6,
	     IXDP_RSS_IPV6,
	     ANY_IPV6},
	    {"only TCP", {V4, .protocol = TCP}, IXDP_RSS_TCP_IPV4, IXDP_RSS_TCP_IPV4, TCP_IPV4},
	    {"only UDP", {V4, .protocol = UDP}, IXDP_RSS_UDP_IPV4, IXDP_RSS_UDP_IPV4, TCP_IPV4},
	    {"only TCP, v6", {V6, .protocol = TCP}, IXDP_RSS_TCP_IPV6, IXDP_RSS_TCP_IPV6, TCP_IPV6},
	    {"only UDP, v6", {V6, .protocol = UDP}, IXDP_RSS_UDP_IPV6, IXDP_RSS_UDP_IPV6, TCP_IPV6},
	    {"only v4", {V4, .protocol = TCP}, IXDP_RSS_IPV4, IXDP_RSS_IPV4, ANY_IPV4},
	    {"only v6", {V6, .protocol = TCP}, IXDP_RSS_IPV6, IXDP_RSS_IPV6, ANY_IPV6},
	    {"only the other", {V6, .protocol = TCP}, IXDP_RSS_IPV4, 0, 0},
	    {"nothing", {V4, .protocol = TCP}, 0, 0, 0},
	};
	struct ixdp_config cfg = rig_config(4, 0);
	struct ixdp_rss rss;

	(void)state;
	rig_open(&rig, "", &cfg);
	ixdp_rss_get(rig.port, &rss);
	memcpy(rss.key, microsoft, sizeof(rss.key));
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rss.types = cases[i].types;
		assert_int_equal(ixdp_rss_set(rig.port, &rss), 0);
		expect(cases[i].what, cases[i].packet, cases[i].type, cases[i].hash);
	}
	rig_close(&rig);
}

static struct ixdp_rss some_rss(unsigned seed, unsigned queues) {
	struct ixdp_rss rss = {.types = IXDP_RSS_TCP_IPV4 | IXDP_RSS_IPV6};

	for (unsigned i = 0; i < IXDP_RSS_KEY; i++)
		rss.key[i] = seed + 37 * i;
	for (unsigned i = 0; i < IXDP_RSS_TABLE; i++)
		rss.table[i] = (seed + i * i) % queues;
	return rss;
}

/* It is so in the API and in the registers. */
static void assert_rss(const struct ixdp_rss *rss, uint32_t mrqc) {
	struct ixdp_rss is;

	ixdp_rss_get(rig.port, &is);
	assert_memory_equal(is.key, rss->key, IXDP_RSS_KEY);
	assert_memory_equal(is.table, rss->table, IXDP_RSS_TABLE);
	assert_int_equal(is.types, rss->types);
	for (unsigned i = 0; i < IXDP_RSS_KEY; i++)
		assert_int_equal(softnic_peek(rig.nic, REG_N(RSSRK, i / 4)) >> i % 4 * 8 & 0xFF,
				 rss->key[i]);
	for (unsigned i = 0; i < IXDP_RSS_TABLE; i++)
		assert_int_equal(softnic_peek(rig.nic, REG_N(RETA, i / 4)) >> i % 4 * 8 & 0xFF,
				 rss->table[i]);
	assert_int_equal(softnic_peek(rig.nic, REG_MRQC), mrqc);
	assert_true(softnic_peek(rig.nic, REG_RXCSUM) & RXCSUM_PCSD);
}

enum { SOME = FIELD(MRQC_MRQE, MRQC_MRQE_RSS) | MRQC_TCP_IPV4 | MRQC_IPV6 };

static void what_is_set_is_read_back_and_stays(void **state) {
	struct ixdp_config cfg = rig_config(4, 1);
	struct ixdp_rss rss = {.types = IXDP_RSS_ALL};

	(void)state;
	/* The defaults: the usual key, all types, all queues in turn. */
	rig_open(&rig, "", &cfg);
	memcpy(rss.key, microsoft, sizeof(microsoft));
	for (unsigned i = 0; i < IXDP_RSS_TABLE; i++)
		rss.table[i] = i % 4;
	assert_rss(&rss, FIELD(MRQC_MRQE, MRQC_MRQE_RSS) | MRQC_TCP_IPV4 | MRQC_IPV4 |
			     MRQC_TCP_IPV6 | MRQC_IPV6 | MRQC_UDP_IPV4 | MRQC_UDP_IPV6);
	/* Of a port that runs. */
	rss = some_rss(3, 4);
	assert_int_equal(ixdp_rss_set(rig.port, &rss), 0);
	assert_rss(&rss, SOME);
	/* The reset makes the NIC forget; and a port that is stopped can be told, too. */
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(softnic_peek(rig.nic, REG_MRQC), 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_rss(&rss, SOME);
	assert_int_equal(ixdp_stop(rig.port), 0);
	rss = some_rss(11, 4);
	assert_int_equal(ixdp_rss_set(rig.port, &rss), 0);
	assert_int_equal(softnic_peek(rig.nic, REG_MRQC), 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_rss(&rss, SOME);
	rig_close(&rig);
	/* From the beginning. */
	cfg.rss = &rss;
	rig_open(&rig, "", &cfg);
	assert_rss(&rss, SOME);
	ixdp_config_get(rig.port, &cfg);
	assert_null(cfg.rss);
	rig_close(&rig);
}

static void what_is_refused_changes_nothing(void **state) {
	struct ixdp_config cfg = rig_config(4, 0);
	struct ixdp_rss good = some_rss(5, 4), bad = some_rss(6, 4);

	(void)state;
	cfg.rss = &good;
	rig_open(&rig, "", &cfg);
	bad.table[77] = 4;
	assert_int_equal(ixdp_rss_set(rig.port, &bad), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "entry 77 is RX queue 4, the port has 4"));
	assert_rss(&good, SOME);
	bad.table[77] = 0;
	bad.types = IXDP_RSS_ALL | 1;
	assert_int_equal(ixdp_rss_set(rig.port, &bad), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "types 0x1af"));
	assert_rss(&good, SOME);
	rig_close(&rig);
	/* Before anything is touched. */
	cfg.rss = &bad;
	assert_int_equal(rig_try_open(&rig, "", &cfg, 0), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "soft:rig"));
}

/* DPDK: the NIC does not support that RSS comes on while it receives, section 7.1.2.8. */
static void on_access(struct softnic *nic, bool write, uint32_t reg, uint32_t value, void *arg) {
	unsigned *writes = arg;

	(void)value;
	if (!write ||
	    (reg != REG_MRQC && reg != REG_RXCSUM && (reg < REG_RSSRK || reg > REG_N(RSSRK, 9)) &&
	     (reg < REG_RETA || reg > REG_N(RETA, 31))))
		return;
	if (softnic_peek(nic, REG_RXCTRL) & RXCTRL_RXEN)
		fail_msg("register 0x%05x is written while the NIC receives", reg);
	++*writes;
}

static void rss_is_set_before_anything_is_received(void **state) {
	struct ixdp_config cfg = rig_config(2, 1);
	struct ixdp_rss rss = some_rss(1, 2);
	unsigned writes = 0;
	struct softnic_hooks hooks = {.access = on_access, .arg = &writes};

	(void)state;
	rig_open(&rig, "", &cfg);
	softnic_set_hooks(rig.nic, &hooks);
	assert_int_equal(ixdp_rss_set(rig.port, &rss), 0);
	assert_int_equal(writes, 10 + 32 + 2);
	assert_true(softnic_peek(rig.nic, REG_RXCTRL) & RXCTRL_RXEN);
	/* Starting is what opening does. */
	assert_int_equal(ixdp_stop(rig.port), 0);
	assert_int_equal(ixdp_start(rig.port), 0);
	assert_int_equal(writes, 2 * (10 + 32 + 2));
	assert_true(softnic_peek(rig.nic, REG_RXCTRL) & RXCTRL_RXEN);
	rig_close(&rig);
}

enum { FLOWS = 1000, ROUNDS = 4 };

/* Flow n: any addresses and ports. */
static struct packet flow(unsigned n) {
	uint64_t x = (n + 1) * UINT64_C(0x9E3779B97F4A7C15);
	struct packet packet = {.ip = n % 3 ? 4 : 6, .protocol = n % 2 ? TCP : UDP};

	memcpy(packet.src, &x, 8);
	memcpy(packet.dst, (uint8_t[]){10, n % 251, 0, 1}, 4);
	packet.sport = x >> 20;
	packet.dport = 53 + n % 7;
	packet.payload = 4;
	return packet;
}

/* Which flow a packet is of, by its number behind the transport header. */
static unsigned flow_of(const struct ixdp_pkt *pkt) {
	bool v6 = get16(pkt->data + 12) == 0x86DD, udp = pkt->data[v6 ? 20 : 23] == UDP;
	unsigned n = get16(pkt->data + (v6 ? 54 : 34) + (udp ? 8 : 20));

	assert_true(n < FLOWS);
	return n;
}

static void spread(unsigned queues) {
	struct ixdp_config cfg = rig_config(queues, 0);
	unsigned home[FLOWS], flows[IXDP_MAX_RX_QUEUES] = {0}, total = 0;

	memset(home, 0xFF, sizeof(home));
	rig_open(&rig, "", &cfg);
	for (unsigned i = 0; i < ROUNDS * FLOWS; i++) {
		struct packet packet = flow(i % FLOWS);
		uint8_t frame[256] = {0};
		size_t len = make_packet(frame, &packet);
		struct ixdp_pkt pkts[64];

		put16(frame + len - 4, i % FLOWS);
		assert_true(softnic_inject(rig.nic, frame, len < 60 ? 60 : len));
		if (i % 32 != 31) continue;
		rig_run(&rig);
		for (unsigned q = 0; q < queues; q++) {
			int got = ixdp_rx(rig.port, q, pkts, 64);

			for (int k = 0; k < got; k++) {
				unsigned n = flow_of(&pkts[k]);

				if (home[n] == UINT32_MAX) flows[q]++, home[n] = q;
				assert_int_equal(home[n], q);
			}
			ixdp_free(rig.pool, pkts, got);
			total += got;
		}
	}
	assert_int_equal(total, ROUNDS * FLOWS);
	assert_int_equal(rig_stats(&rig).rx_dropped, 0);
	for (unsigned q = 0; q < queues; q++) {
		if (queues <= 4)
			printf("    %u queues: %u of %u flows on queue %u\n", queues, flows[q],
			       FLOWS, q);
		if (queues <= 4)
			assert_in_range(flows[q] * queues, FLOWS * 85 / 100, FLOWS * 115 / 100);
		else
			assert_true(flows[q] > 0);
	}
	rig_close(&rig);
}

static void flows_are_spread_evenly_and_stay_where_they_are(void **state) {
	(void)state;
	spread(4);
	spread(1);
	spread(16);
}

static void a_new_table_moves_flows_at_once(void **state) {
	struct ixdp_config cfg = rig_config(3, 0);
	struct ixdp_rx_hash hash;
	struct ixdp_rss rss;
	unsigned elements;

	(void)state;
	rig_open(&rig, "", &cfg);
	ixdp_rss_get(rig.port, &rss);
	for (unsigned q = 0; q < 3; q++) {
		memset(rss.table, q, sizeof(rss.table));
		assert_int_equal(ixdp_rss_set(rig.port, &rss), 0);
		for (unsigned n = 0; n < 50; n++) {
			arrive(flow(n));
			assert_int_equal(take(&hash, &elements), q);
			assert_int_not_equal(hash.type, 0);
		}
	}
	rig_close(&rig);
}

/* Every entry of the table by itself: it alone leads to another queue than the rest. */
static void each_entry_of_the_table_is_its_own(void **state) {
	struct ixdp_config cfg = rig_config(2, 0);
	struct ixdp_rx_hash hash;
	struct ixdp_rss rss;
	bool seen[IXDP_RSS_TABLE] = {false};
	unsigned elements, entries = 0;

	(void)state;
	rig_open(&rig, "", &cfg);
	for (unsigned n = 0; entries < IXDP_RSS_TABLE; n++) {
		arrive(flow(n));
		take(&hash, &elements);
		unsigned entry = hash.hash % IXDP_RSS_TABLE;

		if (seen[entry]) continue;
		seen[entry] = true;
		entries++;
		ixdp_rss_get(rig.port, &rss);
		memset(rss.table, 0, sizeof(rss.table));
		rss.table[entry] = 1;
		assert_int_equal(ixdp_rss_set(rig.port, &rss), 0);
		arrive(flow(n));
		assert_int_equal(take(&hash, &elements), 1);
	}
	rig_close(&rig);
}

static void jumbo_frames_have_one_hash(void **state) {
	struct ixdp_config cfg = rig_config(4, 0);
	struct packet packet = {V4, .protocol = TCP, .payload = 8900};
	struct ixdp_rx_hash hash;
	unsigned elements;

	(void)state;
	cfg.mtu = 9000;
	rig_open(&rig, "", &cfg);
	arrive(packet);
	assert_int_equal(take(&hash, &elements), TCP_IPV4 % IXDP_RSS_TABLE % 4);
	assert_int_equal(elements, 5);
	assert_int_equal(hash.hash, TCP_IPV4);
	assert_int_equal(hash.type, IXDP_RSS_TCP_IPV4);
	packet.payload = 0;
	arrive(packet);
	take(&hash, &elements);
	assert_int_equal(elements, 1);
	assert_int_equal(hash.hash, TCP_IPV4);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hashes_are_those_of_the_published_vectors),
	    cmocka_unit_test(what_is_set_is_read_back_and_stays),
	    cmocka_unit_test(what_is_refused_changes_nothing),
	    cmocka_unit_test(rss_is_set_before_anything_is_received),
	    cmocka_unit_test(flows_are_spread_evenly_and_stay_where_they_are),
	    cmocka_unit_test(a_new_table_moves_flows_at_once),
	    cmocka_unit_test(each_entry_of_the_table_is_its_own),
	    cmocka_unit_test(jumbo_frames_have_one_hash),
	};

	return cmocka_run_group_tests_name("rss", tests, rig_group_setup, NULL);
}
