/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets inside the software NIC: what is known of one on its way in or out, descriptor bits that
 * the driver has no use for, and checksums.
 */
#pragma once

#include "../driver/regs.h"

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Protocol numbers of IP. */
enum { NIC_TCP = 6, NIC_UDP = 17, NIC_SCTP = 132 };

/* Offloads that transmit descriptors ask for, section 7.2.3.2, beside what regs.h has. */
#define TXD_IC (UINT64_C(1) << 26) /* legacy only */
#define TXD_TSE (UINT64_C(1) << 31)
#define TXD_IDX_LOW 36
#define TXD_IPSEC (UINT64_C(1) << 42)

/* Polynomials of nic_crc(), last bit first. */
#define NIC_CRC32 UINT32_C(0xEDB88320)	/* of Ethernet */
#define NIC_CRC32C UINT32_C(0x82F63B78) /* of SCTP */

enum { NIC_CONTEXTS = 2 }; /* of a transmit queue, section 7.2.3.2.3 */

/* Where a frame's headers are. Offsets in it; 0: there is none that is whole and makes sense. */
struct nic_headers {
	uint16_t types; /* RXD_TYPE_IPV4 and so on */
	uint16_t l3, l4;
	uint16_t end;	  /* of the IP packet: what follows is padding */
	uint8_t protocol; /* of the IP packet, even if l4 is 0 */
	bool fragment;
	bool tagged; /* with VLNCTRL.VET; the tag is: */
	uint16_t tag;
};

/* A frame on its way to a ring. len without FCS. */
struct nic_frame {
	const uint8_t *data;
	size_t len;
	struct nic_headers headers;
	uint32_t hash;
	enum rxd_rss rss;
	unsigned queue;
	bool bad_crc;
	bool undersize;
	bool inexact; /* passed a hash or a promiscuous filter only */
};

/* What the last descriptor of a frame says: advanced ones in qw0, and in the status of qw1. */
struct nic_writeback {
	uint64_t qw0;
	uint64_t status; /* as in advanced descriptors, without DD and EOP */
	uint16_t vlan;	 /* the tag that was taken off */
};

/* What a context descriptor said, section 7.2.3.2.3. */
struct nic_context {
	bool valid, ipv4;
	uint16_t vlan;
	uint8_t mac_len;
	uint16_t ip_len;
	enum txc_l4t l4_type;
	uint8_t l4_len;
	uint16_t mss;
};

/* What is to be done to a frame on its way out. */
struct nic_offload {
	struct nic_context context;
	bool ip_sum, l4_sum, segment, insert_vlan;
	uint16_t vlan;
	bool raw_sum; /* of a legacy descriptor: the sum from raw_start on, put at raw_at */
	uint8_t raw_start, raw_at;
	size_t headers;	 /* bytes that each segment begins with */
	unsigned frames; /* that it becomes */
};

/* --- headers.c, checksum.c --- */

static inline uint16_t nic_be16(const uint8_t *at) { return at[0] << 8 | at[1]; }

/* Takes a frame of at least 14 bytes apart. */
void nic_headers_parse(const uint8_t *frame, size_t len, uint16_t vlan_type,
		       struct nic_headers *headers);

/*
 * One's complement sums of words as they lie in memory: they do not mind the byte order (RFC 1071),
 * so a checksum is stored as it comes. Adds bytes to a sum:
 */
static inline uint64_t nic_sum(const uint8_t *data, size_t len, uint64_t sum) {
	uint32_t word;
	uint16_t half;

	for (; len >= 4; data += 4, len -= 4) {
		memcpy(&word, data, 4);
		sum += word;
	}
	if (len & 2) {
		memcpy(&half, data, 2);
		sum += half;
		data += 2;
	}
	return len & 1 ? sum + htole16(*data) : sum;
}

/* The 16 bits that a sum of up to 65,535 words comes to. */
static inline uint16_t nic_fold(uint64_t sum) {
	sum = (sum >> 32) + (sum & 0xFFFFFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	sum = (sum >> 16) + (sum & 0xFFFF);
	return (sum >> 16) + (sum & 0xFFFF);
}

/* Whether it comes to all ones, as it does over data with its own checksum. */
static inline bool nic_sum_is_right(uint64_t sum) { return sum % 0xFFFF == 0 && sum != 0; }

uint32_t nic_crc(uint32_t polynomial, const uint8_t *data, size_t len);
/* What a descriptor's status says of a frame's checksums. */
uint64_t nic_checksum_status(const uint8_t *frame, const struct nic_headers *headers);
