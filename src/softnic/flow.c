/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control by PAUSE frames (IEEE 802.3 annex 31B), section 3.7.7: those that arrive stop the
 * transmitter for a time; those that leave ask the other end to stop while the packet buffer is
 * fuller than it should be. An XOFF asks for time, an XON is an XOFF that asks for none.
 */
#include "nic.h"

#include <string.h>

enum { ETHERTYPE_MAC_CONTROL = 0x8808, OPCODE_PAUSE = 1, PAUSE_LEN = 60 };
enum { TFCE_802_3X = 1 };

static const uint8_t pause_address[6] = {0x01, 0x80, 0xC2, 0x00, 0x00, 0x01};

/* A quantum is the time of 512 bits: 51.2 ns at 10 Gbit/s. */
static uint64_t quanta_ns(uint64_t quanta) { return quanta * 512 / 10; }

/* --- asked to pause ----------------------------------------------------------------------------
 */

bool nic_flow_takes(const struct softnic *nic, const uint8_t *frame, size_t len) {
	return NIC_REG(nic, MFLCN) & MFLCN_RFCE && len >= PAUSE_LEN &&
	       nic_be16(frame + 12) == ETHERTYPE_MAC_CONTROL &&
	       nic_be16(frame + 14) == OPCODE_PAUSE && memcmp(frame, pause_address, 6) == 0;
}

void nic_flow_act(struct softnic *nic, const uint8_t *frame) {
	uint64_t ns = quanta_ns(nic_be16(frame + 16));

	nic_count(nic, ns ? REG_LXOFFRXCNT : REG_LXONRXCNT, 1);
	nic->paused_until = softnic_now_ns(nic) + ns;
}

bool nic_flow_paused(const struct softnic *nic, uint64_t now) {
	return unlikely(now < nic->paused_until);
}

uint32_t nic_read_tfcs(struct softnic *nic, unsigned n, uint32_t stored) {
	(void)n, (void)stored;
	return nic_flow_paused(nic, softnic_now_ns(nic)) ? TFCS_TC_XOFF : 0;
}

/* --- asking to pause ---------------------------------------------------------------------------
 */

/* PAUSE frames are the MAC's own: no queue sends them, and none that is paused holds them up. */
static bool send_pause(struct softnic *nic, unsigned quanta, uint64_t now) {
	uint8_t frame[PAUSE_LEN] = {0};
	uint32_t low = htole32(NIC_REG_N(nic, RAL, 0)), high = htole32(NIC_REG_N(nic, RAH, 0));

	memcpy(frame, pause_address, 6);
	memcpy(frame + 6, &low, 4);
	memcpy(frame + 10, &high, 2);
	frame[12] = ETHERTYPE_MAC_CONTROL >> 8;
	frame[13] = ETHERTYPE_MAC_CONTROL & 0xFF;
	frame[15] = OPCODE_PAUSE;
	frame[16] = quanta >> 8;
	frame[17] = quanta;
	if (!nic->wire->ops->send(nic->wire, frame, sizeof(frame), now)) return false;
	nic_count_sent(nic, frame, sizeof(frame));
	nic_count(nic, quanta ? REG_LXOFFTXC : REG_LXONTXC, 1);
	return true;
}

/* The other end's pause is over when so much time has passed: then, and only then, again. */
static uint64_t refresh_ns(const struct softnic *nic, unsigned quanta) {
	unsigned early = FIELD_GET(FCRTV_REFRESH, NIC_REG(nic, FCRTV));

	return quanta_ns(early < quanta ? quanta - early : quanta);
}

void nic_flow_run(struct softnic *nic, uint64_t now) {
	uint32_t high = NIC_REG_N(nic, FCRTH, 0), low = NIC_REG_N(nic, FCRTL, 0);
	unsigned quanta = FIELD_GET(FCTTV_TTV0, NIC_REG_N(nic, FCTTV, 0));
	size_t used = nic->fifo.used;

	if (likely(!(high & FCRTH_FCEN)) ||
	    FIELD_GET(FCCFG_TFCE, NIC_REG(nic, FCCFG)) != TFCE_802_3X ||
	    NIC_REG(nic, HLREG0) & HLREG0_LPBK || !nic_link_up(nic)) {
		nic->xoff = false;
		return;
	}
	if (nic->xoff && used < (low & FCRTL_RTL)) {
		/* Without XONE the other end's time runs out by itself, section 8.2.3.3.3. */
		if (!(low & FCRTL_XONE) || send_pause(nic, 0, now)) nic->xoff = false;
	} else if (used > (high & FCRTH_RTH) || nic->xoff) {
		if ((!nic->xoff || now >= nic->xoff_again) && quanta > 0 &&
		    send_pause(nic, quanta, now)) {
			nic->xoff = true;
			nic->xoff_again = now + refresh_ns(nic, quanta);
		}
	}
}
