/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums and VLAN tags that the NIC fills in, puts in, looks at and takes off: packet flags. */
#include "elements.h"
#include "nic_packets.h"

#include <errno.h>

enum { MAX_FRAME = 2048, SUMS = IXDP_PKT_IP_CSUM | IXDP_PKT_L4_CSUM };
enum {
	IP_GOOD = IXDP_PKT_IP_CSUM_GOOD,
	IP_BAD = IXDP_PKT_IP_CSUM_BAD,
	L4_GOOD = IXDP_PKT_L4_CSUM_GOOD,
	L4_BAD = IXDP_PKT_L4_CSUM_BAD,
};

static struct rig rig;
static uint8_t sent[MAX_FRAME];
static size_t sent_len;
static unsigned n_sent;

static bool keep(const uint8_t *frame, size_t len, void *arg) {
	(void)arg;
	assert_true(len <= MAX_FRAME);
	memcpy(sent, frame, len);
	sent_len = len;
	n_sent++;
	return true;
}

static void start(unsigned offloads) {
	struct ixdp_config cfg = rig_config(1, 1);

	cfg.offloads = offloads;
	rig_open(&rig, "", &cfg);
	softnic_tap(rig.nic, keep, NULL);
	n_sent = 0;
}

/* What left is the frame, padded. */
static void assert_sent(const uint8_t *frame, size_t len) {
	uint8_t padded[60] = {0};

	assert_int_equal(n_sent, 1);
	assert_int_equal(sent_len, len < 60 ? 60 : len);
	assert_memory_equal(sent, frame, len);
	if (len < 60) assert_memory_equal(sent + len, padded, 60 - len);
	n_sent = 0;
}

static size_t csum_at(const struct packet *p) {
	return p->l4 + (p->protocol == TCP ? 16 : p->protocol == UDP ? 6 : 8);
}

/* The packet with nonsense where its checksums are. */
static void spoil(uint8_t *frame, const struct packet *p) {
	if (p->ip == 4) put16(frame + p->l3 + 10, 0xBAD1);
	memset(frame + csum_at(p), 0xEE, p->protocol == SCTP ? 4 : 2);
}

/* Sends it in so many elements, with all headers in the first. */
static int send_packet(const uint8_t *frame, size_t len, unsigned k, unsigned headers,
		       uint32_t flags, struct ixdp_pkt *pkts) {
	unsigned sizes[IXDP_MAX_ELEMENTS];
	uint32_t random = (uint32_t)len;
	int taken;

	cut(&random, len, headers, k, sizes);
	scatter(&rig, frame, sizes, k, flags, pkts);
	taken = ixdp_tx(rig.port, 0, pkts, k);
	rig_run(&rig);
	return taken;
}

static const struct packet packets[] = {
    {.ip = 4, .protocol = TCP, .payload = 501},
    {.ip = 4, .protocol = TCP, .payload = 0},
    {.ip = 4, .protocol = UDP, .payload = 30},
    {.ip = 4, .protocol = UDP, .payload = 0},
    {.ip = 4, .protocol = SCTP, .payload = 77},
    {.ip = 6, .protocol = TCP, .payload = 8},
    {.ip = 6, .protocol = UDP, .payload = 1400},
    {.ip = 6, .protocol = SCTP, .payload = 4},
    {.ip = 4, .options = 40, .protocol = TCP, .payload = 9},
    {.ip = 4, .options = 4, .protocol = UDP, .payload = 1000},
    {.vlan = 0xE123, .ip = 4, .protocol = TCP, .payload = 7},
    {.vlan = 1, .ip = 6, .protocol = UDP, .payload = 11},
};
enum { PACKETS = sizeof(packets) / sizeof(packets[0]) };

static void checksums_are_filled_in(void **state) {
	(void)state;
	start(0);
	for (unsigned i = 0; i < PACKETS; i++)
		for (unsigned k = 1; k <= 8; k++) {
			struct packet p = packets[i];
			uint8_t whole[MAX_FRAME], spoilt[MAX_FRAME];
			struct ixdp_pkt pkts[8];
			unsigned headers;

			make_packet(whole, &p);
			memcpy(spoilt, whole, p.len);
			spoil(spoilt, &p);
			headers = p.l4 + transport_header(p.protocol);
			if (p.len < headers + k - 1) continue;
			if (send_packet(spoilt, p.len, k, headers, SUMS, pkts) != (int)k)
				fail_msg("packet %u: %s", i, ixdp_error());
			assert_sent(whole, p.len);
		}
	rig_close(&rig);
}

static void only_what_is_asked_for_is_filled_in(void **state) {
	(void)state;
	start(0);
	for (unsigned i = 0; i < PACKETS; i++) {
		struct packet p = packets[i];
		uint8_t whole[MAX_FRAME], spoilt[MAX_FRAME], expected[MAX_FRAME];
		struct ixdp_pkt pkt;

		make_packet(whole, &p);
		memcpy(spoilt, whole, p.len);
		spoil(spoilt, &p);
		memcpy(expected, spoilt, p.len);
		/* IPv6 has none, so that the flag alone changes nothing. */
		if (p.ip == 4) memcpy(expected + p.l3 + 10, whole + p.l3 + 10, 2);
		assert_int_equal(send_packet(spoilt, p.len, 1, 60, IXDP_PKT_IP_CSUM, &pkt), 1);
		assert_sent(expected, p.len);
		memcpy(expected, spoilt, p.len);
		memcpy(expected + csum_at(&p), whole + csum_at(&p), p.protocol == SCTP ? 4 : 2);
		assert_int_equal(send_packet(spoilt, p.len, 1, 60, IXDP_PKT_L4_CSUM, &pkt), 1);
		assert_sent(expected, p.len);
		assert_int_equal(send_packet(spoilt, p.len, 1, 60, 0, &pkt), 1);
		assert_sent(spoilt, p.len);
	}
	rig_close(&rig);
}

/* RFC 768: a sum of 0 is sent as all ones, as 0 says that there is none. */
static void udp_sum_zero_is_sent_as_ones(void **state) {
	(void)state;
	for (unsigned ip = 4; ip <= 6; ip += 2) {
		struct packet p = {.ip = ip, .protocol = UDP, .payload = 20};
		uint8_t frame[MAX_FRAME];
		struct ixdp_pkt pkt;

		start(0);
		make_packet(frame, &p);
		put16(frame + p.len - 2, 0);
		put16(frame + p.l4 + 6, 0);
		/* The last word makes the whole sum all ones, whose complement is 0. */
		put16(frame + p.len - 2, ~plain_sum(frame + p.l4, p.len - p.l4,
						    pseudo_sum(frame + p.l3, UDP, p.len - p.l4)));
		assert_int_equal(send_packet(frame, p.len, 1, 42, SUMS, &pkt), 1);
		put16(frame + p.l4 + 6, 0xFFFF);
		assert_sent(frame, p.len);
		rig_close(&rig);
	}
}

static void tags_are_put_in(void **state) {
	(void)state;
	start(0);
	for (unsigned sums = 0; sums < 2; sums++)
		for (unsigned k = 1; k < 5; k++) {
			struct packet p = {.ip = 4, .protocol = UDP, .payload = 18};
			struct packet tagged = {
			    .vlan = 0xE123, .ip = 4, .protocol = UDP, .payload = 18};
			uint8_t frame[MAX_FRAME], whole[MAX_FRAME];
			struct ixdp_pkt pkts[4], any = {.flags = sums ? SUMS : 0};

			make_packet(frame, &p);
			if (sums) spoil(frame, &p);
			make_packet(whole, &tagged);
			ixdp_pkt_vlan_set(&any, 0xE123);
			assert_int_equal(ixdp_pkt_vlan(&any), 0xE123);
			/* Parts may be tiny where nothing needs headers. */
			assert_int_equal(
			    send_packet(frame, p.len, k, sums ? 42 : 1, any.flags, pkts), k);
			assert_sent(whole, tagged.len);
		}
	rig_close(&rig);
}

/* A tag in the frame, and another one in front of it. */
static void a_tagged_frame_may_get_another_tag(void **state) {
	struct packet p = {.vlan = 5, .ip = 6, .protocol = TCP, .payload = 18};
	uint8_t frame[MAX_FRAME], whole[MAX_FRAME];
	struct ixdp_pkt pkt, any = {.flags = SUMS};

	(void)state;
	start(0);
	make_packet(frame, &p);
	memcpy(whole, frame, 12);
	memcpy(whole + 12, "\x81\x00\x20\x07", 4);
	memcpy(whole + 16, frame + 12, p.len - 12);
	spoil(frame, &p);
	ixdp_pkt_vlan_set(&any, 0x2007);
	assert_int_equal(send_packet(frame, p.len, 1, 60, any.flags, &pkt), 1);
	assert_sent(whole, p.len + 4);
	rig_close(&rig);
}

/* It is padded by what is not there: an old Ethernet frame, all of whose padding is zeros. */
static void padding_of_zeros_is_no_harm_but_to_sctp(void **state) {
	(void)state;
	start(0);
	for (unsigned i = 0; i < 3; i++) {
		struct packet p = {.ip = 4, .protocol = (unsigned[]){TCP, UDP, SCTP}[i]};
		uint8_t whole[MAX_FRAME] = {0}, spoilt[MAX_FRAME];
		struct ixdp_pkt pkt;

		make_packet(whole, &p);
		memcpy(spoilt, whole, MAX_FRAME);
		spoil(spoilt, &p);
		if (p.protocol == SCTP) {
			assert_int_equal(send_packet(spoilt, 60, 1, 60, SUMS, &pkt), -EINVAL);
			ixdp_free(rig.pool, &pkt, 1);
		} else {
			assert_int_equal(send_packet(spoilt, 60, 1, 60, SUMS, &pkt), 1);
			assert_sent(whole, 60);
		}
	}
	rig_close(&rig);
}

/* What the NIC would fill in wrong is refused, and left as it was. */
static void what_has_no_such_headers_is_refused(void **state) {
	static const struct {
		const char *what;
		struct packet packet;
		uint32_t flags;
		unsigned k, first; /* elements, and bytes of the first */
		unsigned at, byte; /* changed */
	} cases[] = {
	    {"fragment", {.ip = 4, .fragment = true, .protocol = UDP}, SUMS, 1, 60, 0, 0},
	    {"last fragment", {.ip = 4, .protocol = UDP}, SUMS, 1, 60, 21, 1},
	    {"IPv6 fragment", {.ip = 6, .fragment = true, .protocol = UDP}, SUMS, 1, 60, 0, 0},
	    {"extension", {.ip = 6, .options = 8, .protocol = TCP}, SUMS, 1, 60, 0, 0},
	    {"ICMP", {.ip = 4, .protocol = 1}, SUMS, 1, 60, 0, 0},
	    {"no IP", {.ip = 0, .payload = 60}, IXDP_PKT_IP_CSUM, 1, 60, 0, 0},
	    {"no IP for L4", {.ip = 0, .payload = 60}, IXDP_PKT_L4_CSUM, 1, 60, 0, 0},
	    {"two tags", {.vlan = 5, .ip = 4, .protocol = UDP}, SUMS, 1, 60, 16, 0x81},
	    {"short IP header", {.ip = 4, .protocol = UDP}, SUMS, 1, 60, 14, 0x44},
	    {"long IP header", {.ip = 4, .protocol = UDP}, SUMS, 1, 60, 14, 0x4F},
	    {"IP longer than the frame", {.ip = 4, .protocol = UDP}, SUMS, 1, 60, 17, 0xFF},
	    {"IP shorter than TCP", {.ip = 4, .protocol = TCP}, SUMS, 1, 60, 17, 39},
	    {"IPv6 longer", {.ip = 6, .protocol = TCP}, SUMS, 1, 60, 18, 0xFF},
	    {"Ethernet cut", {.ip = 4, .protocol = UDP}, SUMS, 2, 13, 0, 0},
	    {"tag cut", {.vlan = 5, .ip = 4, .protocol = UDP}, SUMS, 2, 17, 0, 0},
	    {"IPv4 cut", {.ip = 4, .protocol = UDP}, IXDP_PKT_IP_CSUM, 2, 33, 0, 0},
	    {"options cut", {.ip = 4, .options = 8, .protocol = UDP}, SUMS, 2, 41, 0, 0},
	    {"IPv6 cut", {.ip = 6, .protocol = UDP}, IXDP_PKT_IP_CSUM, 2, 53, 0, 0},
	    {"UDP cut", {.ip = 4, .protocol = UDP}, SUMS, 2, 41, 0, 0},
	    {"TCP cut", {.ip = 4, .protocol = TCP}, SUMS, 2, 53, 0, 0},
	    {"SCTP cut", {.ip = 6, .protocol = SCTP}, SUMS, 2, 65, 0, 0},
	};

	(void)state;
	start(0);
	unsigned buffers = rig_available(&rig);

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct packet p = cases[i].packet;
		uint8_t frame[MAX_FRAME], after[MAX_FRAME];
		unsigned sizes[2] = {cases[i].first}, k = cases[i].k, elements;
		struct ixdp_pkt pkts[2];

		p.payload += 20;
		make_packet(frame, &p);
		if (cases[i].at) frame[cases[i].at] = (uint8_t)cases[i].byte;
		sizes[k - 1] = k == 1 ? p.len : p.len - sizes[0];
		scatter(&rig, frame, sizes, k, cases[i].flags, pkts);
		if (ixdp_tx(rig.port, 0, pkts, k) != -EINVAL) fail_msg("%s", cases[i].what);
		assert_non_null(strstr(ixdp_error(), "no headers"));
		assert_int_equal(gather(pkts, k, after, &elements), p.len);
		assert_memory_equal(after, frame, p.len);
		ixdp_free(rig.pool, pkts, k);
		assert_int_equal(rig_available(&rig), buffers);
	}
	rig_run(&rig);
	assert_int_equal(n_sent, 0);
	rig_close(&rig);
}

/* Receives the frame, which must have these flags; forwards it, and it must not change. */
static void arrives_with(const uint8_t *frame, size_t len, uint32_t flags, const char *what) {
	struct ixdp_pkt pkt;

	assert_true(softnic_inject(rig.nic, frame, len));
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, &pkt, 1), 1);
	if (pkt.flags != flags) fail_msg("%s: flags 0x%x, not 0x%x", what, pkt.flags, flags);
	assert_int_equal(pkt.len, len - (flags & IXDP_PKT_VLAN ? 4 : 0));
	if (ixdp_tx(rig.port, 0, &pkt, 1) != 1) fail_msg("%s: %s", what, ixdp_error());
	rig_run(&rig);
	assert_sent(frame, len);
}

static void checksums_are_looked_at_and_forwarded(void **state) {
	(void)state;
	start(IXDP_OFFLOAD_CSUM);
	for (unsigned i = 0; i < PACKETS; i++) {
		struct packet p = packets[i];
		uint8_t frame[MAX_FRAME] = {0};
		uint32_t ip_good = p.ip == 4 ? IP_GOOD : 0, ip_bad = p.ip == 4 ? IP_BAD : 0;
		size_t len;

		make_packet(frame, &p);
		len = p.len < 60 ? 60 : p.len;
		arrives_with(frame, len, ip_good | L4_GOOD, "good");
		frame[csum_at(&p)] ^= 0x10;
		/* Of UDP the NIC cannot tell a wrong sum from none. */
		arrives_with(frame, len, ip_good | (p.protocol == UDP ? 0 : L4_BAD), "bad L4");
		frame[csum_at(&p)] ^= 0x10;
		if (p.ip == 4) frame[p.l3 + 11] ^= 1;
		arrives_with(frame, len, ip_bad | L4_GOOD, "bad IP");
	}
	rig_close(&rig);
}

static void what_is_not_known_has_no_flag(void **state) {
	struct packet udp = {.ip = 4, .protocol = UDP, .payload = 40};
	struct packet fragment = {.ip = 4, .fragment = true, .protocol = UDP, .payload = 40};
	struct packet icmp = {.ip = 4, .protocol = 1, .payload = 40};
	struct packet none = {.payload = 50};
	uint8_t frame[MAX_FRAME];

	(void)state;
	start(IXDP_OFFLOAD_CSUM);
	make_packet(frame, &udp);
	put16(frame + udp.l4 + 6, 0);
	arrives_with(frame, udp.len, IP_GOOD, "UDP without checksum");
	make_packet(frame, &fragment);
	arrives_with(frame, fragment.len, IP_GOOD, "fragment");
	/* Specification update 66: this may be said of a good one. */
	frame[fragment.l3 + 11] ^= 1;
	arrives_with(frame, fragment.len, 0, "fragment with a wrong IP checksum");
	make_packet(frame, &icmp);
	arrives_with(frame, icmp.len, IP_GOOD, "ICMP");
	make_packet(frame, &none);
	arrives_with(frame, none.len, 0, "no IP");
	rig_close(&rig);
}

static void tags_are_taken_off_and_put_in_again(void **state) {
	static const unsigned offloads[] = {IXDP_OFFLOAD_VLAN_STRIP, 0,
					    IXDP_OFFLOAD_VLAN_STRIP | IXDP_OFFLOAD_CSUM};
	static const unsigned tags[] = {1, 0x0FFF, 0xE123, 0xFFFF};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		uint32_t sums = offloads[i] & IXDP_OFFLOAD_CSUM ? IP_GOOD | L4_GOOD : 0;

		start(offloads[i]);
		for (unsigned t = 0; t < 4; t++) {
			struct packet p = {
			    .vlan = tags[t], .ip = 4, .protocol = TCP, .payload = 40};
			uint8_t frame[MAX_FRAME];
			struct ixdp_pkt tag = {0};

			make_packet(frame, &p);
			if (offloads[i]) ixdp_pkt_vlan_set(&tag, tags[t]);
			arrives_with(frame, p.len, tag.flags | sums, "tagged");
			p.vlan = 0;
			make_packet(frame, &p);
			arrives_with(frame, p.len, sums, "without a tag");
		}
		rig_close(&rig);
	}
}

/* Of a frame in several elements it is the first that has them, although the NIC says it last. */
static void flags_stand_in_the_first_element(void **state) {
	struct packet p = {.vlan = 7, .ip = 4, .protocol = TCP, .payload = 5000};
	struct ixdp_config cfg = rig_config(1, 0);
	static uint8_t frame[6000], after[3 * IXDP_DATA_SIZE];
	struct ixdp_pkt pkts[8], tag = {0};
	unsigned elements;

	(void)state;
	cfg.mtu = 9000;
	cfg.offloads = IXDP_OFFLOAD_VLAN_STRIP | IXDP_OFFLOAD_CSUM;
	rig_open(&rig, "", &cfg);
	make_packet(frame, &p);
	softnic_inject(rig.nic, frame, p.len);
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 8), 3);
	ixdp_pkt_vlan_set(&tag, 7);
	assert_int_equal(pkts[0].flags, tag.flags | IXDP_PKT_CONTD | IP_GOOD | L4_GOOD);
	assert_int_equal(gather(pkts, 3, after, &elements), p.len - 4);
	assert_memory_equal(after, frame, 12);
	assert_memory_equal(after + 12, frame + 16, p.len - 16);
	ixdp_free(rig.pool, pkts, 3);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(checksums_are_filled_in),
	    cmocka_unit_test(only_what_is_asked_for_is_filled_in),
	    cmocka_unit_test(udp_sum_zero_is_sent_as_ones),
	    cmocka_unit_test(tags_are_put_in),
	    cmocka_unit_test(a_tagged_frame_may_get_another_tag),
	    cmocka_unit_test(padding_of_zeros_is_no_harm_but_to_sctp),
	    cmocka_unit_test(what_has_no_such_headers_is_refused),
	    cmocka_unit_test(checksums_are_looked_at_and_forwarded),
	    cmocka_unit_test(what_is_not_known_has_no_flag),
	    cmocka_unit_test(tags_are_taken_off_and_put_in_again),
	    cmocka_unit_test(flags_stand_in_the_first_element),
	};

	return cmocka_run_group_tests_name("offload", tests, rig_group_setup, NULL);
}
