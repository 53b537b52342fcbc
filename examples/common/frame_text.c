/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_text.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <ixdp/frame.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>

enum { MAC_TEXT = sizeof("02:00:00:00:00:01") };

bool frame_parse_mac(const char *text, uint8_t mac[6]) {
	static const char digits[] = "0123456789abcdefABCDEF";
	uint8_t parsed[6];

	for (unsigned i = 0; i < 6; i++, text += 3) {
		unsigned byte;

		if (strspn(text, digits) != 2 || text[2] != (i < 5 ? ':' : '\0')) return false;
		sscanf(text, "%2x", &byte);
		parsed[i] = byte;
	}
	memcpy(mac, parsed, sizeof(parsed));
	return true;
}

static void format_mac(char text[MAC_TEXT], const uint8_t *mac) {
	snprintf(text, MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		 mac[4], mac[5]);
}

static void print_what(const uint8_t *data, unsigned len) {
	char src_mac[MAC_TEXT], dst_mac[MAC_TEXT], src[INET_ADDRSTRLEN], dst[INET_ADDRSTRLEN];
	struct ixdp_frame_id id = {0};
	struct ether_header eth;
	struct udphdr udp;
	struct iphdr ip;

	memcpy(&eth, data, sizeof(eth));
	memcpy(&ip, data + sizeof(eth), sizeof(ip));
	memcpy(&udp, data + sizeof(eth) + sizeof(ip), sizeof(udp));
	format_mac(src_mac, eth.ether_shost);
	format_mac(dst_mac, eth.ether_dhost);
	inet_ntop(AF_INET, &ip.saddr, src, sizeof(src));
	inet_ntop(AF_INET, &ip.daddr, dst, sizeof(dst));
	ixdp_frame_read(data, len, &id);
	printf("# %u B, %s -> %s, UDP %s:%u -> %s:%u, generator %u, flow %u, sequence %" PRIu64
	       "\n",
	       len, src_mac, dst_mac, src, ntohs(udp.source), dst, ntohs(udp.dest), id.generator,
	       id.flow, id.seq);
}

void frame_print(const uint8_t *data, unsigned len) {
	print_what(data, len);
	for (unsigned i = 0; i < len; i++) {
		if (i % 16 == 0) printf("%06x ", i);
		printf(" %02x%s", data[i], i % 16 == 15 || i == len - 1 ? "\n" : "");
	}
}
