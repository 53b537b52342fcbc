/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the NIC shall do to a frame before it sends it, sections 7.2.3.2.3 and 7.2.5: fill in
 * checksums, put in a VLAN tag. It is told where the headers are by a context descriptor in front
 * of the frame. Only frames that ask for it come by here, so only their bytes are looked at.
 */
#include "port.h"

#include <string.h>

enum { MACS = 12, ETHERNET = 14, VLAN_TAG = 4, IPV4 = 20, IPV6 = 40 };
enum { FRAGMENT = 0x3FFF }; /* of IPv4: more of them to come, or an offset */
enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86DD, TYPE_VLAN = 0x8100 };

/* What the NIC needs to know of a transport, by its protocol number. */
static const struct transport {
	uint8_t protocol;
	uint8_t csum; /* where its checksum is */
	uint8_t len;  /* of its header, without options */
	bool pseudo;  /* its checksum covers addresses of IP */
	enum txc_l4t type;
} transports[] = {
    {6, 16, 20, true, TXC_L4T_TCP},
    {17, 6, 8, true, TXC_L4T_UDP},
    {132, 8, 12, false, TXC_L4T_SCTP},
};

static unsigned be16(const uint8_t *at) { return at[0] << 8 | at[1]; }

/* A one's complement sum is the same in any byte order, so this adds as memory is read. */
static uint64_t sum32(const uint8_t *at, unsigned len) {
	uint64_t sum = 0;
	for (uint32_t word; len > 0; at += 4, len -= 4, sum += word)
		memcpy(&word, at, 4);
	return sum;
}

/* The sum of the pseudo header, to which the NIC adds the rest (7.2.5.2). SCTP has none. */
static void seed(uint8_t *field, const struct transport *l4, const uint8_t *addresses,
		 unsigned addresses_len, unsigned len) {
	uint64_t sum = sum32(addresses, addresses_len) + htobe16(l4->protocol) + htobe16(len);
	sum = (sum >> 32) + (sum & UINT32_MAX);
	for (unsigned i = 0; i < 3; i++)
		sum = (sum >> 16) + (sum & 0xFFFF);
	memcpy(field, &(uint16_t){sum}, 2);
	if (!l4->pseudo) memset(field, 0, 4);
}

/* The part of it that is about the transport behind IP. len: of the frame. */
static bool transport_context(const struct ixdp_pkt *pkt, unsigned len, unsigned mac_len,
			      unsigned ip_len, bool ipv4, uint64_t *qw1) {
	const uint8_t *ip = pkt->data + mac_len;
	const struct transport *l4 = transports, *end = transports + 3;
	unsigned packet = ipv4 ? be16(ip + 2) : IPV6 + be16(ip + 4); /* length with its header */
	while (l4 < end && l4->protocol != ip[ipv4 ? 9 : 6])
		l4++;
	/* A fragment's sum covers other ones. The NIC sums padding too, which changes a CRC. */
	if (l4 == end || (ipv4 && be16(ip + 6) & FRAGMENT) || packet < ip_len + l4->len ||
	    pkt->len < mac_len + ip_len + l4->len || packet > len - mac_len ||
	    (!l4->pseudo && packet != len - mac_len))
		return false;
	seed(pkt->data + mac_len + ip_len + l4->csum, l4, ip + (ipv4 ? 12 : 8), ipv4 ? 8 : 32,
	     packet - ip_len);
	*qw1 |= (uint64_t)l4->type << TXC_L4T_LOW | (uint64_t)l4->len << TXC_L4LEN_LOW;
	return true;
}

/*
 * The context descriptor of a frame of len bytes, which begins with pkt, and what its data
 * descriptors say because of it. False: it is not what its flags promise, and is left as it was.
 */
bool tx_context(const struct ixdp_pkt *pkt, unsigned len, struct desc *context, uint64_t *bits) {
	uint64_t qw0 = (uint64_t)ixdp_pkt_vlan(pkt) << TXC_VLAN_LOW;
	uint64_t qw1 = TXD_DTYP_CONTEXT | TXD_DEXT;
	unsigned mac_len = ETHERNET;
	*bits = pkt->flags & IXDP_PKT_VLAN ? TXD_VLE : 0;
	if (pkt->flags & (IXDP_PKT_IP_CSUM | IXDP_PKT_L4_CSUM)) {
		if (pkt->len >= ETHERNET && be16(pkt->data + MACS) == TYPE_VLAN)
			mac_len += VLAN_TAG;
		if (pkt->len < mac_len + IPV4) return false;
		uint8_t *ip = pkt->data + mac_len;
		bool ipv4 = be16(ip - 2) == TYPE_IPV4;
		unsigned ip_len = ipv4 ? (ip[0] & 0xF) * 4 : IPV6;
		if ((!ipv4 && be16(ip - 2) != TYPE_IPV6) || ip_len < IPV4 ||
		    pkt->len < mac_len + ip_len)
			return false;
		qw0 |= ip_len;
		if (ipv4) qw1 |= TXC_IPV4;
		if (pkt->flags & IXDP_PKT_L4_CSUM) {
			if (!transport_context(pkt, len, mac_len, ip_len, ipv4, &qw1)) return false;
			*bits |= TXD_TXSM;
		}
		if (ipv4 && pkt->flags & IXDP_PKT_IP_CSUM) {
			ip[10] = ip[11] = 0;
			*bits |= TXD_IXSM;
		}
	}
	context->qw0 = htole64(qw0 | (uint64_t)mac_len << TXC_MACLEN_LOW);
	context->qw1 = htole64(qw1);
	return true;
}
