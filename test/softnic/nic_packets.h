/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP packets for tests of the software NIC, with right checksums, which are computed in the
 * plainest way: 16 bits at a time, as RFC 1071 puts it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TCP = 6, UDP = 17, SCTP = 132 };

struct packet {
	unsigned vlan;		  /* the tag; 0: none */
	unsigned ip;		  /* 4 or 6; 0: no IP */
	unsigned options;	  /* bytes of IPv4 options, or of an IPv6 hop-by-hop header */
	bool fragment;		  /* the first of several */
	unsigned protocol;	  /* TCP, UDP, SCTP or any other */
	uint8_t src[16], dst[16]; /* all 0: some addresses */
	uint16_t sport, dport;
	size_t payload;

	size_t l3, l4, len; /* set by make_packet() */
};

static inline void put16(uint8_t *at, unsigned value) {
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline unsigned get16(const uint8_t *at) { return at[0] << 8 | at[1]; }

static inline uint32_t get32(const uint8_t *at) {
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static inline uint32_t plain_sum(const uint8_t *data, size_t len, uint32_t sum) {
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
	while (sum >> 16)
		sum = (sum >> 16) + (sum & 0xFFFF);
	return sum;
}

/* Sum of the pseudo header of the packet at ip, for `len` bytes of transport; 0 leaves it out. */
static inline uint32_t pseudo_sum(const uint8_t *ip, unsigned protocol, size_t len) {
	uint32_t sum = ip[0] >> 4 == 4 ? plain_sum(ip + 12, 8, 0) : plain_sum(ip + 8, 32, 0);

	return plain_sum(NULL, 0, sum + protocol + (uint32_t)len);
}

/* CRC32c (RFC 9260, appendix A), a bit at a time. */
static inline uint32_t plain_crc32c(const uint8_t *data, size_t len) {
	uint32_t crc = 0xFFFFFFFF;

	for (size_t i = 0; i < 8 * len; i++) {
		bool bit = (crc ^ data[i / 8] >> i % 8) & 1;

		crc = crc >> 1 ^ (bit ? 0x82F63B78 : 0);
	}
	return ~crc;
}

static inline size_t put_ip(uint8_t *ip, struct packet *p, size_t transport) {
	static const uint8_t none[16];
	bool unset = memcmp(p->src, none, 16) == 0 && memcmp(p->dst, none, 16) == 0;
	size_t fragment = p->ip == 6 && p->fragment ? 8 : 0;

	if (unset) {
		memcpy(p->src, (uint8_t[]){10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		       16);
		memcpy(p->dst, (uint8_t[]){10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5}, 16);
	}
	if (p->ip == 4) {
		size_t header = 20 + p->options;

		memset(ip, 1, header); /* options: no operation */
		ip[0] = (uint8_t)(0x40 | header / 4);
		put16(ip + 2, header + transport);
		put16(ip + 4, 0xABCD);
		put16(ip + 6, p->fragment ? 0x2000 : 0x4000);
		ip[8] = 64;
		ip[9] = (uint8_t)p->protocol;
		put16(ip + 10, 0);
		memcpy(ip + 12, p->src, 4);
		memcpy(ip + 16, p->dst, 4);
		put16(ip + 10, ~plain_sum(ip, header, 0));
		return header;
	}
	memset(ip, 0, 40 + p->options + fragment);
	ip[0] = 0x60;
	put16(ip + 4, p->options + fragment + transport);
	ip[6] = (uint8_t)(fragment ? 44 : p->protocol);
	memcpy(ip + 8, p->src, 16);
	memcpy(ip + 24, p->dst, 16);
	if (p->options) {
		ip[40] = ip[6];
		ip[41] = (uint8_t)(p->options / 8 - 1);
		ip[6] = 0;
	}
	if (fragment) {
		ip[40 + p->options] = (uint8_t)p->protocol;
		ip[40 + p->options + 3] = 1; /* more fragments */
	}
	return 40 + p->options + fragment;
}

static inline size_t transport_header(unsigned protocol) {
	return protocol == TCP ? 20 : protocol == SCTP ? 12 : 8;
}

static inline void put_transport(uint8_t *l4, const uint8_t *ip, const struct packet *p,
				 size_t len) {
	size_t header = transport_header(p->protocol);

	memset(l4, 0, header);
	put16(l4, p->sport);
	put16(l4 + 2, p->dport);
	for (size_t i = header; i < len; i++)
		l4[i] = (uint8_t)(i * 13 + 5);
	if (p->protocol == TCP) {
		put16(l4 + 4, 0x1122);
		put16(l4 + 6, 0x3344);
		put16(l4 + 12, 0x5018);
		put16(l4 + 16, ~plain_sum(l4, len, pseudo_sum(ip, TCP, len)));
	} else if (p->protocol == UDP) {
		put16(l4 + 4, len);
		put16(l4 + 6, ~plain_sum(l4, len, pseudo_sum(ip, UDP, len)));
	} else if (p->protocol == SCTP) {
		uint32_t crc = plain_crc32c(l4, len);

		for (unsigned i = 0; i < 4; i++)
			l4[8 + i] = (uint8_t)(crc >> 8 * i);
	}
}

/* Writes the packet, to a unicast address, and returns its length without padding. */
static inline size_t make_packet(uint8_t *frame, struct packet *p) {
	size_t transport = transport_header(p->protocol) + p->payload;

	memcpy(frame, "\x02\x11\x22\x33\x44\x55\x02\x66\x77\x88\x99\xaa", 12);
	p->l3 = 14;
	if (p->vlan) {
		put16(frame + 12, 0x8100);
		put16(frame + 14, p->vlan);
		p->l3 = 18;
	}
	if (p->ip == 0) {
		put16(frame + p->l3 - 2, 0x88B5);
		memset(frame + p->l3, 0x77, p->payload);
		return p->len = p->l3 + p->payload;
	}
	put16(frame + p->l3 - 2, p->ip == 4 ? 0x0800 : 0x86DD);
	p->l4 = p->l3 + put_ip(frame + p->l3, p, transport);
	put_transport(frame + p->l4, frame + p->l3, p, transport);
	return p->len = p->l4 + transport;
}
