/* SPDX-License-Identifier: BSD-3-Clause */
/* CRCs, and what is said of the checksums of received frames. */
#include "nic.h"

#include <string.h>

uint32_t nic_crc(uint32_t polynomial, const uint8_t *data, size_t len) {
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
	}
	return ~crc;
}

/* The bytes of the transport that its checksum covers; 0: its length makes no sense. */
static size_t covered(const uint8_t *l4, const struct nic_headers *h) {
	size_t len = h->end - h->l4;

	if (h->types & RXD_TYPE_UDP) {
		size_t udp_len = nic_be16(l4 + 4);

		return udp_len >= 8 && udp_len <= len ? udp_len : 0;
	}
	return len;
}

static bool crc32c_is_right(const uint8_t *sctp, size_t len) {
	static const uint8_t zeros[4];
	uint8_t packet[NIC_FRAME_MAX];
	uint32_t crc;

	memcpy(packet, sctp, len);
	memcpy(packet + 8, zeros, 4);
	crc = htole32(nic_crc(NIC_CRC32C, packet, len));
	return memcmp(sctp + 8, &crc, 4) == 0;
}

static bool transport_is_right(const uint8_t *frame, const struct nic_headers *h) {
	size_t len = covered(frame + h->l4, h);
	uint64_t sum;

	if (len == 0) return false;
	if (h->types & RXD_TYPE_SCTP) return crc32c_is_right(frame + h->l4, len);
	sum = h->types & RXD_TYPE_IPV4 ? nic_sum(frame + h->l3 + 12, 8, 0)
				       : nic_sum(frame + h->l3 + 8, 32, 0);
	sum += htobe16(h->protocol) + htobe16(len);
	return nic_sum_is_right(nic_sum(frame + h->l4, len, sum));
}

uint64_t nic_checksum_status(const uint8_t *frame, const struct nic_headers *h) {
	uint64_t status = 0;

	if (h->types & RXD_TYPE_IPV4) {
		size_t len = (frame[h->l3] & 0xF) * 4;
		uint64_t sum;

		status |= RXD_IPCS;
		/* Of the usual length, which is known when this is compiled, it costs half. */
		sum = likely(len == 20) ? nic_sum(frame + h->l3, 20, 0)
					: nic_sum(frame + h->l3, len, 0);
		if (!nic_sum_is_right(sum)) status |= RXD_IPE;
	}
	if (h->l4) {
		status |= RXD_L4CS | (h->types & RXD_TYPE_UDP ? RXD_UDPCS : 0);
		/*
		 * An UDP checksum of 0, which says that there is none, is reported as wrong: so
		 * does the card (82599 specification update).
		 */
		if (!transport_is_right(frame, h)) status |= RXD_L4E;
	}
	return status;
}
