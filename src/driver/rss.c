/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive side scaling, section 7.1.2.8: which queue a frame goes to. */
#include "port.h"

#include <errno.h>
#include <string.h>

/* The key that has become usual: with it, hashes can be compared with published ones. */
static const uint8_t usual_key[IXDP_RSS_KEY] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static int check(const struct ixdp_port *port, const char *name, const struct ixdp_rss *rss) {
	for (unsigned i = 0; i < IXDP_RSS_TABLE; i++)
		if (rss->table[i] >= port->cfg.rx_queues)
			return ixdp_fail(EINVAL,
					 "%s: RSS table entry %u is RX queue %u, the port has %u",
					 name, i, rss->table[i], port->cfg.rx_queues);
	if (rss->types & ~(unsigned)IXDP_RSS_ALL)
		return ixdp_fail(EINVAL, "%s: RSS types 0x%x: only those of 0x%x are known", name,
				 rss->types, IXDP_RSS_ALL);
	return 0;
}

/* NULL: the defaults. */
int rss_init(struct ixdp_port *port, const char *name, const struct ixdp_rss *rss) {
	if (port->cfg.rx_queues == 0) return 0;
	port->rss.types = IXDP_RSS_ALL;
	memcpy(port->rss.key, usual_key, sizeof(usual_key));
	for (unsigned i = 0; i < IXDP_RSS_TABLE; i++)
		port->rss.table[i] = i % port->cfg.rx_queues;
	if (!rss) return 0;
	port->rss = *rss;
	return check(port, name, rss);
}

/* In front of RXCTRL.RXEN: the NIC does not support a change of MRQC while it receives. */
void rss_write(struct ixdp_port *port) {
	static const uint32_t fields[] = {
	    [RXD_RSS_TCP_IPV4] = MRQC_TCP_IPV4, [RXD_RSS_IPV4] = MRQC_IPV4,
	    [RXD_RSS_TCP_IPV6] = MRQC_TCP_IPV6, [RXD_RSS_IPV6] = MRQC_IPV6,
	    [RXD_RSS_UDP_IPV4] = MRQC_UDP_IPV4, [RXD_RSS_UDP_IPV6] = MRQC_UDP_IPV6,
	};
	const struct ixdp_rss *rss = &port->rss;
	uint32_t word, mrqc = 0;
	for (unsigned i = 0; i < REG_RSSRK_COUNT; i++) {
		memcpy(&word, rss->key + 4 * i, 4);
		reg_write(port, REG_N(RSSRK, i), le32toh(word));
	}
	for (unsigned i = 0; i < REG_RETA_COUNT; i++) {
		memcpy(&word, rss->table + 4 * i, 4);
		reg_write(port, REG_N(RETA, i), le32toh(word));
	}
	for (unsigned type = 0; type <= RXD_RSS_UDP_IPV6; type++)
		if (rss->types & 1u << type) mrqc |= fields[type];
	/* The hash is in the descriptor in place of the fragment's checksum (section 7.1.2.8). */
	reg_set(port, REG_RXCSUM, RXCSUM_PCSD);
	reg_write(port, REG_MRQC, mrqc ? mrqc | FIELD(MRQC_MRQE, MRQC_MRQE_RSS) : 0);
}

void ixdp_rss_get(const struct ixdp_port *port, struct ixdp_rss *rss) { *rss = port->rss; }

int ixdp_rss_set(struct ixdp_port *port, const struct ixdp_rss *rss) {
	int err = check(port, port->bus->name, rss);
	if (err) return err;
	port->rss = *rss;
	return rx_paused(port, rss_write);
}
