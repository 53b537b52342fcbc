/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a descriptor can ask for beside that its bytes be sent, section 7.2.4 and 7.2.5: checksums,
 * a VLAN tag, and cutting a large packet into segments. Lengths and types of headers come from a
 * context descriptor that was sent before; the bytes themselves are not looked at for them.
 */
#include "nic.h"

#include <string.h>

enum { TCP_FLAGS = 0xFFF, TCP_CSUM = 16, UDP_CSUM = 6, SCTP_CSUM = 8 };
enum { MACS = 12, VLAN_TAG = 4 };

static void put_be16(uint8_t *at, unsigned value) {
	at[0] = value >> 8;
	at[1] = value;
}

static void add_be32(uint8_t *at, uint32_t value) {
	uint32_t be;

	memcpy(&be, at, sizeof(be));
	be = htobe32(be32toh(be) + value);
	memcpy(at, &be, sizeof(be));
}

bool nic_context_write(struct softnic *nic, const struct nic_ring *ring, const struct desc *d) {
	uint64_t qw0 = le64toh(d->qw0), qw1 = le64toh(d->qw1);
	unsigned index = qw1 >> TXD_IDX_LOW & 7;

	if (index >= NIC_CONTEXTS)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
				   "context beyond the two that a queue has", index);
	ring->queue->contexts[index] = (struct nic_context){
	    .valid = true,
	    .vlan = qw0 >> 16,
	    .mac_len = qw0 >> 9 & 0x7F,
	    .ip_len = qw0 & 0x1FF,
	    .ipv4 = qw1 >> 10 & 1,
	    .l4_type = qw1 >> 11 & 3,
	    .l4_len = qw1 >> 40 & 0xFF,
	    .mss = qw1 >> 48,
	};
	return true;
}

/* Where the transport's checksum is, from its header. */
static unsigned csum_at(enum txc_l4t type) {
	return type == TXC_L4T_TCP ? TCP_CSUM : type == TXC_L4T_UDP ? UDP_CSUM : SCTP_CSUM;
}

/* Whether the headers that the context speaks of are there, for what is asked. */
static bool headers_fit(const struct nic_offload *o, size_t headers) {
	const struct nic_context *c = &o->context;

	if (o->ip_sum && (c->ip_len < 20 || (size_t)c->mac_len + c->ip_len > headers)) return false;
	if (o->l4_sum &&
	    (c->l4_type == TXC_L4T_NONE || (size_t)c->mac_len + c->ip_len + csum_at(c->l4_type) +
						   (c->l4_type == TXC_L4T_SCTP ? 4 : 2) >
					       headers))
		return false;
	return c->mac_len >= 14;
}

static bool check_segmentation(struct softnic *nic, const struct nic_ring *ring,
			       const struct nic_offload *o, size_t paylen, size_t len) {
	const struct nic_context *c = &o->context;
	size_t longest = o->headers + (c->mss < len - o->headers ? c->mss : len - o->headers);

	if (c->l4_type != TXC_L4T_TCP && c->l4_type != TXC_L4T_UDP)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
				   "segmentation of neither TCP nor UDP", c->l4_type);
	if (c->mss == 0)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR, "segmentation with MSS", 0);
	if (c->l4_len < (c->l4_type == TXC_L4T_TCP ? 20 : 8) || c->ip_len < (c->ipv4 ? 20 : 40))
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
				   "segmentation with headers too short", o->headers);
	if (longest + VLAN_TAG > NIC_FRAME_MAX - NIC_FCS)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR, "segments longer than 15.5 KB",
				   longest);
	if (paylen != len - o->headers)
		nic_violation(nic, VIOLATION_PAYLEN, ring->tail_reg,
			      "descriptor %u: PAYLEN is %zu for %zu bytes behind the headers "
			      "(7.2.3.2.4)",
			      *ring->head, paylen, len - o->headers);
	/* The fields would be wrong in all segments but one, section 7.2.4.2. */
	if (!o->l4_sum || (c->ipv4 && !o->ip_sum))
		nic_violation(nic, VIOLATION_DESCRIPTOR, ring->tail_reg,
			      "descriptor %u: segmentation without checksums: set TXSM, and with "
			      "IPv4 IXSM",
			      *ring->head);
	return true;
}

static bool read_advanced(struct softnic *nic, const struct nic_ring *ring, uint64_t qw1,
			  size_t len, struct nic_offload *o) {
	unsigned index = qw1 >> TXD_IDX_LOW & 7;

	if (index >= NIC_CONTEXTS || !ring->queue->contexts[index].valid)
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
				   "names a context that was not written", index);
	o->context = ring->queue->contexts[index];
	o->ip_sum = qw1 & TXD_IXSM;
	o->l4_sum = qw1 & TXD_TXSM;
	o->segment = qw1 & TXD_TSE;
	o->insert_vlan = qw1 & TXD_VLE;
	o->vlan = o->context.vlan;
	if (o->segment) o->headers = o->context.mac_len + o->context.ip_len + o->context.l4_len;
	if (o->headers > len ||
	    ((o->ip_sum || o->l4_sum) && !headers_fit(o, o->segment ? o->headers : len)))
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
				   "context's headers are not in the frame, of bytes", len);
	if (o->segment) return check_segmentation(nic, ring, o, qw1 >> TXD_PAYLEN_LOW, len);
	return true;
}

/* Legacy descriptors say themselves what they want, section 7.2.3.2.2: the last one does. */
static bool read_legacy(struct softnic *nic, const struct nic_ring *ring, uint64_t qw1, size_t len,
			struct nic_offload *o) {
	o->insert_vlan = qw1 & TXD_VLE;
	o->vlan = qw1 >> 48;
	o->raw_sum = qw1 & TXD_IC;
	o->raw_start = qw1 >> 40 & 0xFF;
	o->raw_at = qw1 >> 16 & 0xFF;
	if (o->raw_sum && (o->raw_start >= len || (size_t)o->raw_at + 2 > len))
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
				   "checksum beyond the frame, of bytes", len);
	return true;
}

bool nic_offload_read(struct softnic *nic, const struct nic_ring *ring, uint64_t first,
		      uint64_t last, size_t len, struct nic_offload *o) {
	*o = (struct nic_offload){0};
	if (!(first & TXD_DEXT ? read_advanced(nic, ring, first, len, o)
			       : read_legacy(nic, ring, last, len, o)))
		return false;
	if (o->insert_vlan &&
	    (len < MACS || (!o->segment && len + VLAN_TAG > NIC_FRAME_MAX - NIC_FCS)))
		return nic_tx_hang(nic, ring, VIOLATION_DESCRIPTOR,
				   "no room for a VLAN tag in a frame of bytes", len);
	o->frames = 1;
	if (nic_fault(nic, FAULT_NO_OFFLOAD)) o->insert_vlan = o->ip_sum = o->l4_sum = false;
	if (o->segment && len > o->headers)
		o->frames = (len - o->headers + o->context.mss - 1) / o->context.mss;
	return true;
}

/* Which of TCP's flags segment n has: FIN and PSH are for the last one, CWR for the first. */
static unsigned flags_mask(const struct softnic *nic, const struct nic_offload *o, unsigned n) {
	if (o->frames == 1) return TCP_FLAGS;
	if (n == 0) return FIELD_GET(DTXTCPFLGL_FIRST, NIC_REG(nic, DTXTCPFLGL));
	if (n + 1 < o->frames) return FIELD_GET(DTXTCPFLGL_MIDDLE, NIC_REG(nic, DTXTCPFLGL));
	return FIELD_GET(DTXTCPFLGH_LAST, NIC_REG(nic, DTXTCPFLGH));
}

/* The headers of segment n, which has `part` bytes of the payload. */
static void adapt_headers(const struct softnic *nic, const struct nic_offload *o, unsigned n,
			  size_t part, uint8_t *frame) {
	const struct nic_context *c = &o->context;
	uint8_t *ip = frame + c->mac_len, *l4 = ip + c->ip_len;

	if (c->ipv4) {
		put_be16(ip + 2, c->ip_len + c->l4_len + part);
		put_be16(ip + 4, nic_be16(ip + 4) + n);
	} else {
		put_be16(ip + 4, c->ip_len - 40 + c->l4_len + part);
	}
	if (c->l4_type == TXC_L4T_UDP) {
		put_be16(l4 + 4, c->l4_len + part);
	} else {
		add_be32(l4 + 4, n * c->mss);
		put_be16(l4 + 12, nic_be16(l4 + 12) & (0xF000 | flags_mask(nic, o, n)));
	}
}

/* The field holds the sum of the pseudo header: of a segmented packet, without the length. */
static void sum_transport(const struct nic_offload *o, uint8_t *frame, size_t len) {
	const struct nic_context *c = &o->context;
	size_t at = c->mac_len + c->ip_len;
	uint8_t *l4 = frame + at;
	uint16_t sum;

	if (c->l4_type == TXC_L4T_SCTP) {
		uint32_t crc = 0;

		memcpy(l4 + SCTP_CSUM, &crc, sizeof(crc));
		crc = htole32(nic_crc(NIC_CRC32C, l4, len - at));
		memcpy(l4 + SCTP_CSUM, &crc, sizeof(crc));
		return;
	}
	sum = ~nic_fold(nic_sum(l4, len - at, o->segment ? htobe16(len - at) : 0));
	/* Of UDP, 0 says that there is none; all ones is the same number. */
	if (c->l4_type == TXC_L4T_UDP && sum == 0) sum = 0xFFFF;
	memcpy(l4 + csum_at(c->l4_type), &sum, sizeof(sum));
}

static void sum_ip(const struct nic_context *c, uint8_t *ip) {
	uint16_t sum;

	put_be16(ip + 10, 0);
	sum = ~nic_fold(nic_sum(ip, c->ip_len, 0));
	memcpy(ip + 10, &sum, sizeof(sum));
}

static size_t insert_vlan(const struct softnic *nic, uint16_t tag, uint8_t *frame, size_t len) {
	memmove(frame + MACS + VLAN_TAG, frame + MACS, len - MACS);
	put_be16(frame + MACS, FIELD_GET(DMATXCTL_VT, NIC_REG(nic, DMATXCTL)));
	put_be16(frame + MACS + 2, tag);
	return len + VLAN_TAG;
}

size_t nic_offload_frame(struct softnic *nic, const struct nic_offload *o, const uint8_t *data,
			 size_t len, unsigned n) {
	uint8_t *frame = nic->segment;

	if (o->segment) {
		size_t done = o->headers + (size_t)n * o->context.mss;
		size_t part = len - done < o->context.mss ? len - done : o->context.mss;

		memcpy(frame, data, o->headers);
		memcpy(frame + o->headers, data + done, part);
		adapt_headers(nic, o, n, part, frame);
		len = o->headers + part;
	} else {
		memcpy(frame, data, len);
	}
	if (o->ip_sum) sum_ip(&o->context, frame + o->context.mac_len);
	if (o->l4_sum) sum_transport(o, frame, len);
	if (o->raw_sum) {
		uint16_t sum = ~nic_fold(nic_sum(frame + o->raw_start, len - o->raw_start, 0));

		memcpy(frame + o->raw_at, &sum, sizeof(sum));
	}
	return o->insert_vlan ? insert_vlan(nic, o->vlan, frame, len) : len;
}
