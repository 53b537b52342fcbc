/* SPDX-License-Identifier: BSD-3-Clause */
#include "selftest.h"

#include "loop.h"

#include <errno.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum {
	LINK_MS = 5000, /* auto-negotiation takes 3 s */
	FRAMES = 200,	/* of each kind: below 256 */
	SOFTWARE_FRAMES = 1000,
	RX_QUEUES = 4,
	FLOWS = 1000,
	FRAMES_OF_FLOWS = 4 * FLOWS,
	VLAN_TAG = 4,
	TAG = 0x6123, /* priority 3, VLAN 0x123 */
	IP_SUM_AT = ETH_HLEN + 10,
	UDP_SUM_AT = ETH_HLEN + 20 + 6,
	NUMBER_AT = ETH_HLEN + 20 + 8 + 8, /* of a frame in its flow: ixdp/frame.h */
};

struct selftest {
	struct findings *findings;
	const char *device;
	struct loop loop;
	unsigned failed;
	uint64_t sent, received, dropped;
	/* What a check counts: frames that were not as they should be. */
	unsigned bad;
	unsigned per_queue[RX_QUEUES];
	uint8_t queue_of[FLOWS]; /* + 1; 0: none so far */
};

/* registers: what it hangs on, for those who look into it. */
static void conclude(struct selftest *test, bool good, const char *check, const char *registers,
		     const char *text) {
	char fix[200];

	snprintf(fix, sizeof(fix), "send in this line and those with \"report\"; look at %s",
		 registers);
	findings_add(test->findings, good ? FINDING_PASS : FINDING_FAIL, "selftest", check,
		     good ? NULL : fix, "%s", text);
	test->failed += !good;
}

/* All that was sent came back, and as it was sent. */
static bool is_whole(const struct loop_result *result) {
	return result->sent == FRAMES && result->back == FRAMES && result->whole == FRAMES;
}

/* Concludes a check whose frames should all come back whole, and none be bad. */
static void conclude_run(struct selftest *test, struct loop_result result, const char *check,
			 const char *registers, const char *what) {
	char text[200];

	snprintf(text, sizeof(text), "%s: of %u sent %u came back, %u whole, %u not as asked for",
		 what, result.sent, result.back, result.whole, test->bad);
	conclude(test, is_whole(&result) && !test->bad, check, registers, text);
}

static struct loop_result run(struct selftest *test, unsigned size) {
	test->bad = 0;
	test->loop.arg = test;
	test->loop.frame.size = size;
	return loop_run(&test->loop, FRAMES, FRAMES);
}

/* --- link ---------------------------------------------------------------------------------- */

/* The only part that looks at the cable; what the peer sends meanwhile is left alone. */
static bool check_link(struct selftest *test, const struct ixdp_config *config,
		       struct ixdp_link *link) {
	struct ixdp_port *port;
	const int err = ixdp_open(&port, test->device, config);

	if (err) {
		findings_add(test->findings, FINDING_FAIL, "selftest", "open",
			     err == -EBUSY
				 ? "--force takes it all the same; never the NIC through which you "
				   "reach the machine"
				 : "see what it says",
			     "%s", ixdp_error());
		test->failed++;
		return false;
	}
	findings_add(test->findings, FINDING_PASS, "selftest", "open", NULL,
		     "reset and set up as the datasheet says");
	if (ixdp_link_wait(port, LINK_MS, link)) *link = (struct ixdp_link){0};
	if (link->up)
		findings_add(test->findings, FINDING_PASS, "selftest", "link", NULL,
			     "up, %u Mbit/s", link->mbps);
	else
		findings_add(test->findings, FINDING_WARN, "selftest", "link",
			     "cable, module or peer; what follows needs none", "down after %d s",
			     LINK_MS / 1000);
	ixdp_close(port);
	return true;
}

/* --- frames as they are -------------------------------------------------------------------- */

/* False: nothing comes back at all. */
static bool check_sizes(struct selftest *test) {
	static const unsigned sizes[] = {60, 61, 64, 65, 1514, 2048, 2049, 4096, 4097, 9014};
	const unsigned n = sizeof(sizes) / sizeof(sizes[0]);
	struct ixdp_frame_counts counts;
	char text[200];
	bool good = true;
	unsigned i = 0;

	while (good && i < n) {
		const struct loop_result result = run(test, sizes[i++]);

		good = is_whole(&result);
		snprintf(text, sizeof(text), "%u B: of %u sent %u came back, %u whole",
			 sizes[i - 1], result.sent, result.back, result.whole);
	}
	ixdp_frame_checker_counts(test->loop.checker, &counts);
	if (good)
		snprintf(text, sizeof(text),
			 "%u sizes, 60 to 9014 B: %d of each came back whole; %ju out of order", n,
			 FRAMES, (uintmax_t)counts.misordered);
	conclude(test, good && !counts.misordered, "sizes", "rings (RDT, TDT), SRRCTL, MAXFRS",
		 text);
	return test->loop.received > 0;
}

static bool look_at_queue(void *arg, unsigned queue, const struct ixdp_pkt *pkt, uint8_t *data,
			  unsigned len) {
	struct selftest *test = arg;
	struct ixdp_frame_id id;

	(void)pkt;
	ixdp_frame_check(test->loop.checker, data, len);
	test->per_queue[queue]++;
	if (ixdp_frame_read(data, len, &id) != IXDP_FRAME_GOOD || id.flow >= FLOWS) return true;
	if (!test->queue_of[id.flow]) test->queue_of[id.flow] = queue + 1;
	test->bad += test->queue_of[id.flow] != queue + 1;
	return true;
}

/* Half of a fair share is far below what chance does to 1,000 flows. */
static void check_rss(struct selftest *test) {
	struct loop *loop = &test->loop;
	char text[200];
	bool even = true;

	test->bad = 0;
	loop->frame.size = IXDP_FRAME_MIN;
	loop->flows = FLOWS;
	loop->look = look_at_queue;
	const struct loop_result result = loop_run(loop, FRAMES_OF_FLOWS, FRAMES_OF_FLOWS);

	loop->flows = 1;
	loop->look = NULL;
	for (unsigned queue = 0; queue < RX_QUEUES; queue++)
		even &= test->per_queue[queue] >= FRAMES_OF_FLOWS / RX_QUEUES / 2;
	snprintf(text, sizeof(text),
		 "%d flows, %u frames: %u whole; on %d queues %u, %u, %u, %u; %u left their flow's "
		 "queue",
		 FLOWS, result.sent, result.whole, RX_QUEUES, test->per_queue[0],
		 test->per_queue[1], test->per_queue[2], test->per_queue[3], test->bad);
	conclude(test, even && !test->bad && result.whole == FRAMES_OF_FLOWS, "rss",
		 "MRQC, RETA, RSSRK", text);
}

/* --- what the NIC does to frames ----------------------------------------------------------- */

static void ask_for_tag(void *arg, unsigned k, struct ixdp_pkt *pkt) {
	(void)arg, (void)k;
	ixdp_pkt_vlan_set(pkt, TAG);
}

/* The tag must be in the frame: without it that is as it was sent. */
static bool look_for_tag(void *arg, unsigned queue, const struct ixdp_pkt *pkt, uint8_t *data,
			 unsigned len) {
	static const uint8_t tag[VLAN_TAG] = {0x81, 0x00, TAG >> 8, TAG & 0xFF};
	struct selftest *test = arg;
	const unsigned at = 2 * ETH_ALEN;

	(void)queue, (void)pkt;
	if (memcmp(data + at, tag, VLAN_TAG) != 0) {
		test->bad++;
		return true;
	}
	memmove(data + at, data + at + VLAN_TAG, len - at - VLAN_TAG);
	ixdp_frame_check(test->loop.checker, data, len - VLAN_TAG);
	return true;
}

/* The tag must be beside the frame. */
static bool look_beside(void *arg, unsigned queue, const struct ixdp_pkt *pkt, uint8_t *data,
			unsigned len) {
	struct selftest *test = arg;

	(void)queue;
	test->bad += !(pkt->flags & IXDP_PKT_VLAN) || ixdp_pkt_vlan(pkt) != TAG;
	ixdp_frame_check(test->loop.checker, data, len);
	return true;
}

static void check_vlan(struct selftest *test, bool strip) {
	test->loop.alter = ask_for_tag;
	test->loop.look = strip ? look_beside : look_for_tag;
	conclude_run(test, run(test, 1514), strip ? "vlan-strip" : "vlan-insert",
		     strip ? "RXDCTL.VME, VLNCTRL" : "VLE in descriptors, TX contexts",
		     strip ? "tags taken off" : "tags put in, as the frames' bytes show");
	test->loop.alter = NULL;
	test->loop.look = NULL;
}

static void ask_for_checksums(void *arg, unsigned k, struct ixdp_pkt *pkt) {
	(void)arg, (void)k;
	memset(pkt->data + IP_SUM_AT, 0, 2);
	memset(pkt->data + UDP_SUM_AT, 0, 2);
	pkt->flags |= IXDP_PKT_IP_CSUM | IXDP_PKT_L4_CSUM;
}

/* The checker computes them: without them no frame is whole. */
static void check_checksums_sent(struct selftest *test) {
	test->loop.alter = ask_for_checksums;
	conclude_run(test, run(test, IXDP_FRAME_MAX), "checksum-insert",
		     "IXSM and TXSM in descriptors, TX contexts",
		     "IPv4 and UDP checksums filled in, and right");
	test->loop.alter = NULL;
}

/* What frame k of the next check is: as it should be, or one of its checksums is wrong. */
enum kind { KIND_GOOD, KIND_BAD_IP, KIND_BAD_UDP, KINDS };

static void damage(void *arg, unsigned k, struct ixdp_pkt *pkt) {
	(void)arg;
	if (k % KINDS == KIND_BAD_IP) pkt->data[IP_SUM_AT] ^= 0xFF;
	if (k % KINDS == KIND_BAD_UDP) pkt->data[UDP_SUM_AT] ^= 0xFF;
}

/* The last byte of a frame's number says which one it is, whatever became of those before it. */
static bool look_at_verdict(void *arg, unsigned queue, const struct ixdp_pkt *pkt, uint8_t *data,
			    unsigned len) {
	static const uint32_t expected[KINDS] = {
	    [KIND_GOOD] = IXDP_PKT_IP_CSUM_GOOD | IXDP_PKT_L4_CSUM_GOOD,
	    [KIND_BAD_IP] = IXDP_PKT_IP_CSUM_BAD,
	    [KIND_BAD_UDP] = IXDP_PKT_IP_CSUM_GOOD,
	};
	static const uint32_t never[KINDS] = {
	    [KIND_GOOD] = IXDP_PKT_IP_CSUM_BAD | IXDP_PKT_L4_CSUM_BAD,
	    [KIND_BAD_IP] = IXDP_PKT_IP_CSUM_GOOD,
	    [KIND_BAD_UDP] = IXDP_PKT_IP_CSUM_BAD | IXDP_PKT_L4_CSUM_GOOD,
	};
	struct selftest *test = arg;
	const enum kind kind = data[NUMBER_AT + 7] % KINDS;

	(void)queue;
	test->bad += (pkt->flags & expected[kind]) != expected[kind] || pkt->flags & never[kind];
	/* Mended, it is as the checker wants it. */
	damage(NULL, kind, &(struct ixdp_pkt){.data = data});
	ixdp_frame_check(test->loop.checker, data, len);
	return true;
}

static void check_checksums_received(struct selftest *test) {
	test->loop.alter = damage;
	test->loop.look = look_at_verdict;
	conclude_run(test, run(test, 1514), "checksum-look", "RXCSUM, IPE and L4E in descriptors",
		     "right and wrong checksums told apart");
	test->loop.alter = NULL;
	test->loop.look = NULL;
}

/* --- filter -------------------------------------------------------------------------------- */

/* Every other frame is for somebody else, the last one for us. */
static void address(void *arg, unsigned k, struct ixdp_pkt *pkt) {
	(void)arg;
	if (k % 2 == 0) pkt->data[5] ^= 0xFF;
}

static bool look_at_address(void *arg, unsigned queue, const struct ixdp_pkt *pkt, uint8_t *data,
			    unsigned len) {
	struct selftest *test = arg;
	const bool ours = !memcmp(data, test->loop.frame.dst_mac, ETH_ALEN);

	(void)queue, (void)pkt, (void)len;
	test->bad += !ours;
	return ours;
}

static void check_filter(struct selftest *test) {
	char text[200];

	test->bad = 0;
	if (ixdp_promiscuous_set(test->loop.port, false)) {
		conclude(test, false, "filter", "FCTRL, SECRXCTRL", ixdp_error());
		return;
	}
	test->loop.alter = address;
	test->loop.look = look_at_address;
	test->loop.frame.size = IXDP_FRAME_MIN;
	const struct loop_result result = loop_run(&test->loop, FRAMES, FRAMES / 2);

	test->loop.alter = NULL;
	test->loop.look = NULL;
	snprintf(text, sizeof(text),
		 "not promiscuous: of %d for us %u came, of %d for another address %u", FRAMES / 2,
		 result.back, FRAMES / 2, test->bad);
	conclude(test, result.back == FRAMES / 2 && !test->bad, "filter", "FCTRL, RAL, RAH", text);
}

/* --- statistics ---------------------------------------------------------------------------- */

/* What the program counted, the NIC must have counted, too: frames sent, bytes, and no drop. */
static void check_statistics(struct selftest *test) {
	const struct loop *loop = &test->loop;
	struct ixdp_stats stats;
	char text[400];

	if (ixdp_stats_get(loop->port, &stats)) {
		conclude(test, false, "statistics", "STATUS", ixdp_error());
		return;
	}
	const bool good = loop->sent == stats.tx_packets && loop->sent_bytes == stats.tx_bytes &&
			  loop->received == loop->sent && stats.rx_packets == loop->received &&
			  stats.rx_bytes == loop->received_bytes && !stats.rx_dropped;

	snprintf(text, sizeof(text),
		 "sent %ju (%ju B), the NIC counts %ju (%ju B); received %ju (%ju B), counted %ju "
		 "(%ju B); dropped %ju: missed %ju, no descriptor %ju, CRC %ju, oversize %ju, "
		 "length 0 %ju, damaged %ju",
		 (uintmax_t)loop->sent, (uintmax_t)loop->sent_bytes, (uintmax_t)stats.tx_packets,
		 (uintmax_t)stats.tx_bytes, (uintmax_t)loop->received,
		 (uintmax_t)loop->received_bytes, (uintmax_t)stats.rx_packets,
		 (uintmax_t)stats.rx_bytes, (uintmax_t)stats.rx_dropped, (uintmax_t)stats.rx_missed,
		 (uintmax_t)stats.rx_no_desc, (uintmax_t)stats.rx_crc, (uintmax_t)stats.rx_oversize,
		 (uintmax_t)stats.rx_len_zero, (uintmax_t)stats.rx_errors);
	test->dropped += stats.rx_dropped;
	conclude(test, good, "statistics", "GPTC, GOTC, MPC, QPRDC", text);
}

/* ------------------------------------------------------------------------------------------- */

static bool open_loop(struct selftest *test, const struct ixdp_config *config) {
	if (!loop_open(&test->loop, test->device, config)) return true;
	findings_add(test->findings, FINDING_FAIL, "selftest", "loopback", "see what it says", "%s",
		     ixdp_error());
	test->failed++;
	return false;
}

static void close_loop(struct selftest *test) {
	test->sent += test->loop.sent;
	test->received += test->loop.received;
	loop_close(&test->loop);
}

/* The checks, as far as it makes sense to go on. */
static void run_checks(struct selftest *test, struct ixdp_config *config) {
	if (!open_loop(test, config)) return;
	const bool any = check_sizes(test);

	if (any) {
		check_rss(test);
		check_vlan(test, false);
		check_checksums_sent(test);
	}
	check_statistics(test);
	if (any) check_filter(test);
	close_loop(test);
	if (!any) return;

	config->offloads = IXDP_OFFLOAD_VLAN_STRIP | IXDP_OFFLOAD_CSUM;
	if (!open_loop(test, config)) return;
	check_vlan(test, true);
	check_checksums_received(test);
	close_loop(test);
}

void selftest_run(struct findings *findings, const char *device, const char *what, bool force) {
	static struct selftest test;
	struct ixdp_link link = {0};
	struct ixdp_config config;
	struct utsname system = {0};

	test = (struct selftest){.findings = findings, .device = device};
	ixdp_config_init(&config);
	config.force = force;
	config.mtu = IXDP_MAX_MTU;
	config.rx_queues = RX_QUEUES;
	if (check_link(&test, &config, &link)) {
		config.loopback = true;
		run_checks(&test, &config);
	}

	uname(&system);
	findings_add(findings, FINDING_INFO, "report", "version", NULL, "ixdp %s on %s %s %s",
		     ixdp_version(), system.sysname, system.release, system.machine);
	findings_add(findings, FINDING_INFO, "report", "device", NULL, "%s, %s", device, what);
	findings_add(findings, FINDING_INFO, "report", "link", NULL, "%s, %u Mbit/s",
		     link.up ? "up" : "down", link.mbps);
	findings_add(findings, FINDING_INFO, "report", "counts", NULL,
		     "%u checks failed; frames sent %ju, received %ju, dropped %ju", test.failed,
		     (uintmax_t)test.sent, (uintmax_t)test.received, (uintmax_t)test.dropped);
}

void selftest_software(struct findings *findings, enum finding_status status) {
	struct ixdp_frame_counts counts;
	struct loop_result result;
	struct ixdp_config config;
	struct loop loop;

	ixdp_config_init(&config);
	if (loop_open(&loop, "soft:doctor,peer=loop", &config)) {
		findings_add(findings, status, "software", "soft:doctor", "see what it says",
			     "cannot be used: %s", ixdp_error());
		return;
	}
	result = loop_run(&loop, SOFTWARE_FRAMES, SOFTWARE_FRAMES);
	ixdp_frame_checker_counts(loop.checker, &counts);
	loop_close(&loop);
	const bool good = result.whole == SOFTWARE_FRAMES && counts.frames == SOFTWARE_FRAMES &&
			  !counts.misordered;

	findings_add(findings, good ? FINDING_PASS : status, "software", "soft:doctor",
		     good ? NULL : "a defect of ixdp: please report it",
		     "of %d frames sent around %ju came back whole; lost %ju, misordered %ju, "
		     "repeated %ju",
		     SOFTWARE_FRAMES, (uintmax_t)counts.good, (uintmax_t)counts.lost,
		     (uintmax_t)counts.misordered, (uintmax_t)counts.duplicated);
}
