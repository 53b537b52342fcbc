/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test frames. Writing one is the generator's hot path: the checksums are sums of numbers that are
 * known anyway, so that no byte is read back.
 */
#include <ixdp/frame.h>

#include <endian.h>
#include <string.h>

enum {
	ETHERTYPE_IPV4 = 0x0800,
	IP_VERSION_IHL = 0x45, /* version 4, 5 words of header */
	IP_DONT_FRAGMENT = 0x4000,
	IP_TTL = 64,
	IP_PROTOCOL_UDP = 17,
	PORT_DISCARD = 9,
	PORT_FIRST = 1024,
};

#define MAGIC UINT32_C(0x49584450) /* "IXDP" */

/* 198.18.0.0/15 is set aside for benchmarks of network devices (RFC 2544, appendix C.2.2). */
#define IP_SOURCE_FIRST UINT32_C(0xC6120001) /* 198.18.0.1 */
#define IP_DESTINATION UINT32_C(0xC613FFFE)  /* 198.19.255.254 */

#define PATTERN_STEP UINT64_C(0x9E3779B97F4A7C15) /* odd: 2^64 words without a repetition */

/* All of a test frame but its pattern, big endian, as it lies in a buffer at any address. */
struct headers {
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	uint16_t ethertype;

	uint8_t version_ihl;
	uint8_t tos;
	uint16_t ip_len;
	uint16_t ip_id;
	uint16_t fragment;
	uint8_t ttl;
	uint8_t protocol;
	uint16_t ip_sum;
	uint32_t source;
	uint32_t destination;

	uint16_t src_port;
	uint16_t dst_port;
	uint16_t udp_len;
	uint16_t udp_sum;

	uint32_t magic;
	uint16_t generator;
	uint16_t flow;
	uint64_t seq;
} __attribute__((packed, may_alias));

enum {
	IP_OFFSET = offsetof(struct headers, version_ihl),
	ADDRESS_OFFSET = offsetof(struct headers, source),
	UDP_OFFSET = offsetof(struct headers, src_port),
	MAGIC_OFFSET = offsetof(struct headers, magic),
};

uint16_t ixdp_frame_generator(void) {
	static uint16_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/* The two 16-bit words of a number, and the four. */
static uint32_t words32(uint32_t n) { return (n >> 16) + (n & 0xFFFF); }

static uint32_t words64(uint64_t n) { return words32(n >> 32) + words32(n & 0xFFFFFFFF); }

/* One's complement sum of 16-bit words (RFC 1071), from a sum of up to 65,535 words of 32 bits. */
static uint16_t fold(uint64_t sum) {
	sum = (sum >> 32) + (sum & 0xFFFFFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	return (uint16_t)sum;
}

/* Sum of the bytes as they lie in memory, 4 at a time: byte order does not matter until fold(). */
static uint64_t sum_bytes(const uint8_t *data, size_t len) {
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i += 4) {
		uint32_t word;

		memcpy(&word, data + i, sizeof(word));
		sum += word;
	}
	return sum;
}

/* First word of a frame's pattern, from which the others follow in steps. */
static uint64_t pattern_first(uint16_t generator, uint16_t flow, uint64_t seq) {
	uint64_t mixed = (seq ^ (uint64_t)generator << 48 ^ (uint64_t)flow << 32) * PATTERN_STEP;

	return mixed ^ mixed >> 32;
}

/* Writes the pattern, little endian words, the last one cut; returns its sum_bytes(). */
static uint64_t pattern_write(uint8_t *data, size_t len, uint64_t word) {
	uint64_t sum = 0;
	uint64_t last;

	for (; len >= 8; data += 8, len -= 8, word += PATTERN_STEP) {
		uint64_t bytes = htole64(word);

		memcpy(data, &bytes, 8);
		sum += (bytes >> 32) + (bytes & 0xFFFFFFFF);
	}
	last = htole64(word & ((UINT64_C(1) << 8 * len) - 1));
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(word >> 8 * i);
	return sum + (last >> 32) + (last & 0xFFFFFFFF);
}

/* Compares with what pattern_write() writes, and adds up what is really there. */
static bool pattern_read(const uint8_t *data, size_t len, uint64_t word, uint64_t *sum) {
	uint64_t difference = 0;
	uint64_t last = 0;

	for (; len >= 8; data += 8, len -= 8, word += PATTERN_STEP) {
		uint64_t bytes;

		memcpy(&bytes, data, 8);
		difference |= bytes ^ htole64(word);
		*sum += (bytes >> 32) + (bytes & 0xFFFFFFFF);
	}
	for (size_t i = 0; i < len; i++)
		last |= (uint64_t)data[i] << 8 * i;
	difference |= last ^ (word & ((UINT64_C(1) << 8 * len) - 1));
	last = htole64(last);
	*sum += (last >> 32) + (last & 0xFFFFFFFF);
	return difference == 0;
}

uint16_t ixdp_frame_write(const struct ixdp_frame_config *cfg, uint16_t flow, uint64_t seq,
			  uint8_t *data) {
	uint16_t ip_len = cfg->size - IP_OFFSET;
	uint16_t udp_len = cfg->size - UDP_OFFSET;
	uint16_t src_port = PORT_FIRST + flow; /* wraps: flows keep different ports */
	uint32_t source = IP_SOURCE_FIRST + flow;
	uint32_t addresses = words32(source) + words32(IP_DESTINATION);
	uint32_t ip_sum = (IP_VERSION_IHL << 8) + ip_len + IP_DONT_FRAGMENT +
			  (IP_TTL << 8 | IP_PROTOCOL_UDP) + addresses;
	uint32_t udp_sum = addresses + IP_PROTOCOL_UDP + udp_len + src_port + PORT_DISCARD +
			   udp_len + words32(MAGIC) + cfg->generator + flow + words64(seq);
	uint64_t pattern =
	    pattern_write(data + sizeof(struct headers), cfg->size - sizeof(struct headers),
			  pattern_first(cfg->generator, flow, seq));
	struct headers *h = (struct headers *)data;
	uint16_t checksum = (uint16_t)~fold(udp_sum + be16toh(fold(pattern)));

	*h = (struct headers){
	    .ethertype = htobe16(ETHERTYPE_IPV4),
	    .version_ihl = IP_VERSION_IHL,
	    .ip_len = htobe16(ip_len),
	    .fragment = htobe16(IP_DONT_FRAGMENT),
	    .ttl = IP_TTL,
	    .protocol = IP_PROTOCOL_UDP,
	    .ip_sum = htobe16((uint16_t)~fold(ip_sum)),
	    .source = htobe32(source),
	    .destination = htobe32(IP_DESTINATION),
	    .src_port = htobe16(src_port),
	    .dst_port = htobe16(PORT_DISCARD),
	    .udp_len = htobe16(udp_len),
	    /* 0 would say "no checksum" (RFC 768); all ones is the same number. */
	    .udp_sum = htobe16(checksum ? checksum : 0xFFFF),
	    .magic = htobe32(MAGIC),
	    .generator = htobe16(cfg->generator),
	    .flow = htobe16(flow),
	    .seq = htobe64(seq),
	};

	memcpy(h->dst_mac, cfg->dst_mac, 6);
	memcpy(h->src_mac, cfg->src_mac, 6);
	return cfg->size;
}

enum ixdp_frame_verdict ixdp_frame_read(const uint8_t *data, size_t len, struct ixdp_frame_id *id) {
	struct headers h;
	uint64_t sum;
	uint32_t magic;

	if (len < MAGIC_OFFSET + sizeof(magic)) return IXDP_FRAME_FOREIGN;
	memcpy(&magic, data + MAGIC_OFFSET, sizeof(magic));
	if (magic != htobe32(MAGIC)) return IXDP_FRAME_FOREIGN;
	if (len < IXDP_FRAME_MIN) return IXDP_FRAME_CORRUPT;

	memcpy(&h, data, sizeof(h));
	if (h.ethertype != htobe16(ETHERTYPE_IPV4) || h.version_ihl != IP_VERSION_IHL ||
	    h.protocol != IP_PROTOCOL_UDP || be16toh(h.ip_len) != len - IP_OFFSET ||
	    be16toh(h.udp_len) != len - UDP_OFFSET || h.udp_sum == 0)
		return IXDP_FRAME_CORRUPT;
	if (fold(sum_bytes(data + IP_OFFSET, UDP_OFFSET - IP_OFFSET)) != 0xFFFF)
		return IXDP_FRAME_CORRUPT;

	/* The pseudo header's addresses lie right in front of the UDP header. */
	sum = sum_bytes(data + ADDRESS_OFFSET, sizeof(h) - ADDRESS_OFFSET) +
	      htobe16(IP_PROTOCOL_UDP) + h.udp_len;
	id->generator = be16toh(h.generator);
	id->flow = be16toh(h.flow);
	id->seq = be64toh(h.seq);
	if (!pattern_read(data + sizeof(h), len - sizeof(h),
			  pattern_first(id->generator, id->flow, id->seq), &sum) ||
	    fold(sum) != 0xFFFF)
		return IXDP_FRAME_CORRUPT;
	return IXDP_FRAME_GOOD;
}
