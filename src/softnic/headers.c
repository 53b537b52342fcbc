/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a received frame consists of, section 7.1.6.2: VLAN tag, IPv4 or IPv6, TCP, UDP or SCTP. A
 * header that is cut or contradicts itself counts as none, and so do all behind it.
 */
#include "nic.h"

enum { ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_IPV6 = 0x86DD };
enum { IPV4_LEN = 20, IPV6_LEN = 40 };

/* Extension headers of IPv6 that are stepped over. */
enum { HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, DESTINATION = 60 };

/* In a fragment nothing of the transport can be relied on, so it counts as having none. */
static void parse_transport(struct nic_headers *h, unsigned protocol, size_t at) {
	size_t left = h->end - at;

	h->protocol = protocol;
	if (h->fragment) return;
	if (protocol == NIC_TCP && left >= 20)
		h->types |= RXD_TYPE_TCP;
	else if (protocol == NIC_UDP && left >= 8)
		h->types |= RXD_TYPE_UDP;
	else if (protocol == NIC_SCTP && left >= 12)
		h->types |= RXD_TYPE_SCTP;
	else
		return;
	h->l4 = at;
}

static void parse_ipv4(const uint8_t *frame, size_t len, size_t at, struct nic_headers *h) {
	const uint8_t *ip = frame + at;
	size_t header_len, total;

	if (len - at < IPV4_LEN || ip[0] >> 4 != 4) return;
	header_len = (ip[0] & 0xF) * 4;
	total = nic_be16(ip + 2);
	if (header_len < IPV4_LEN || total < header_len || total > len - at) return;
	h->types = RXD_TYPE_IPV4 | (header_len > IPV4_LEN ? RXD_TYPE_IPV4_OPTIONS : 0);
	h->l3 = at;
	h->end = at + total;
	h->fragment = nic_be16(ip + 6) & 0x3FFF; /* more to come, or an offset */
	parse_transport(h, ip[9], at + header_len);
}

static void parse_ipv6(const uint8_t *frame, size_t len, size_t at, struct nic_headers *h) {
	const uint8_t *ip = frame + at;
	unsigned next;

	if (len - at < IPV6_LEN || ip[0] >> 4 != 6 || nic_be16(ip + 4) > len - at - IPV6_LEN)
		return;
	h->types = RXD_TYPE_IPV6;
	h->l3 = at;
	at += IPV6_LEN;
	h->end = at + nic_be16(ip + 4);
	next = ip[6];
	while (next == HOP_BY_HOP || next == ROUTING || next == FRAGMENT || next == DESTINATION) {
		size_t size;

		if (h->end - at < 8) return;
		size = next == FRAGMENT ? 8 : 8 + frame[at + 1] * 8;
		if (h->end - at < size) return;
		h->types |= RXD_TYPE_IPV6_EXTENSION;
		h->fragment |= next == FRAGMENT;
		next = frame[at];
		at += size;
	}
	parse_transport(h, next, at);
}

void nic_headers_parse(const uint8_t *frame, size_t len, uint16_t vlan_type,
		       struct nic_headers *h) {
	unsigned type = nic_be16(frame + 12);
	size_t at = 14;

	*h = (struct nic_headers){0};
	if (type == vlan_type && len >= 18) {
		h->tagged = true;
		h->tag = nic_be16(frame + 14);
		type = nic_be16(frame + 16);
		at = 18;
	}
	if (type == ETHERTYPE_IPV4)
		parse_ipv4(frame, len, at, h);
	else if (type == ETHERTYPE_IPV6)
		parse_ipv6(frame, len, at, h);
}
