/* SPDX-License-Identifier: BSD-3-Clause */
/* VLANs on the receive side of the software NIC: filter, and tags that are taken off. */
#include "nic_packets.h"
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED, LEGACY = SRRCTL_DESCTYPE_LEGACY, VP = 1 << 3 };

static void start(unsigned type, bool strip) {
	rig_open("");
	rx_start(0, 2, type, true);
	if (strip) wr(REG_RXDCTL, rd(REG_RXDCTL) | RXDCTL_VME);
	rx_give(0, 0, RING - 1);
}

/* Whether a frame with that ethertype and tag comes through. */
static bool passes(unsigned type, unsigned tag) {
	unsigned at = rd(REG_RDH);
	uint8_t frame[100];

	make_frame(frame, sizeof(frame), 1);
	put16(frame + 12, type);
	put16(frame + 14, tag);
	softnic_inject(rig.nic, frame, sizeof(frame));
	step();
	return rd(REG_RDH) != at;
}

static void only_the_vlans_of_the_table_pass(void **state) {
	(void)state;
	start(ADVANCED, false);
	for (unsigned n = 0; n < REG_VFTA_COUNT; n++)
		wr(REG_N(VFTA, n), 0);
	assert_true(passes(0x8100, 77)); /* the filter is off */
	wr(REG_VLNCTRL, rd(REG_VLNCTRL) | VLNCTRL_VFE);
	assert_false(passes(0x8100, 77));
	assert_false(passes(0x8100, 0)); /* a priority alone is VLAN 0 */
	assert_true(passes(0x88B5, 77)); /* without a tag */
	wr(REG_N(VFTA, 77 / 32), 1u << 77 % 32);
	assert_true(passes(0x8100, 77));
	assert_true(passes(0x8100, 0xE000 | 77)); /* whatever its priority */
	assert_false(passes(0x8100, 76));
	assert_false(passes(0x8100, 78));
	assert_false(passes(0x8100, 77 + 32));
	wr(REG_N(VFTA, 127), 1u << 31);
	assert_true(passes(0x8100, 0xFFF));
	assert_int_equal(rd(REG_QPRC), 5);
	rig_close_clean();
}

static void what_a_tag_is_says_vet(void **state) {
	(void)state;
	start(ADVANCED, true);
	wr(REG_VLNCTRL, VLNCTRL_VFE | FIELD(VLNCTRL_VET, 0x88A8));
	assert_false(passes(0x88A8, 5));
	assert_true(passes(0x8100, 5)); /* a type as any other */
	assert_int_equal(rx_status(0, 0) & VP, 0);
	assert_int_equal(rx_len(0, 0), 100);
	wr(REG_N(VFTA, 0), 1 << 5);
	assert_true(passes(0x88A8, 5));
	assert_true(rx_status(0, 1) & VP);
	assert_int_equal(rx_len(0, 1), 96);
	rig_close_clean();
}

static void cfi_is_compared_if_so_set(void **state) {
	(void)state;
	start(ADVANCED, false);
	wr(REG_N(VFTA, 0), 1 << 5);
	wr(REG_VLNCTRL, rd(REG_VLNCTRL) | VLNCTRL_VFE | VLNCTRL_CFIEN);
	assert_true(passes(0x8100, 5));
	assert_false(passes(0x8100, 0x1005));
	wr(REG_VLNCTRL, rd(REG_VLNCTRL) | VLNCTRL_CFI);
	assert_false(passes(0x8100, 5));
	assert_true(passes(0x8100, 0x1005));
	rig_close_clean();
}

/* The address is filtered too. */
static void a_vlan_does_not_make_it_ours(void **state) {
	(void)state;
	start(ADVANCED, false);
	wr(REG_RXCTRL, 0);
	wr(REG_FCTRL, 0);
	wr(REG_RXCTRL, RXCTRL_RXEN);
	wr(REG_N(VFTA, 0), 1 << 5);
	wr(REG_VLNCTRL, rd(REG_VLNCTRL) | VLNCTRL_VFE);
	assert_false(passes(0x8100, 5));
	rig_close_clean();
}

static void a_tag_is_taken_off_where_vme_says_so(void **state) {
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool strip = i & 1;
		unsigned type = i & 2 ? LEGACY : ADVANCED;
		struct packet p = {.vlan = 0xA123, .ip = 4, .protocol = UDP, .payload = 40};
		struct packet bare = p;
		uint8_t frame[ROOM], without[ROOM];
		uint64_t status;

		start(type, strip);
		make_packet(frame, &p);
		bare.vlan = 0;
		make_packet(without, &bare);
		softnic_inject(rig.nic, frame, p.len);
		step();
		status = rx_status(0, 0);
		assert_true(status & (type == LEGACY ? (uint64_t)VP << 32 : VP));
		assert_int_equal(status >> 48, strip ? 0xA123 : 0);
		assert_int_equal(type == LEGACY ? status & 0xFFFF : status >> 32 & 0xFFFF,
				 strip ? bare.len : p.len);
		assert_memory_equal(rig.mem->rx_data[0][0], strip ? without : frame,
				    strip ? bare.len : p.len);
		assert_int_equal(rig.mem->rx_data[0][0][strip ? bare.len : p.len], 0xEE);
		assert_int_equal(rd(REG_GORCL), p.len + 4); /* as it was on the wire */
		rig_close_clean();
	}
}

static void a_frame_without_tag_stays_as_it_is(void **state) {
	(void)state;
	start(ADVANCED, true);
	inject(60, 4);
	step();
	assert_int_equal(rx_status(0, 0), RXD_DD | RXD_EOP | 1 << 7 | UINT64_C(60) << RXD_LEN_LOW);
	assert_frame(rig.mem->rx_data[0][0], 60, 4);
	rig_close_clean();
}

static void the_fcs_that_stays_is_that_of_the_wire(void **state) {
	static const uint8_t fcs[] = {0x09, 0x55, 0x17, 0x67}; /* by zlib's crc32 */
	uint8_t frame[100];

	(void)state;
	start(ADVANCED, true);
	wr(REG_HLREG0, rd(REG_HLREG0) & ~(uint32_t)HLREG0_RXCRCSTRP);
	make_frame(frame, sizeof(frame), 1);
	put16(frame + 12, 0x8100);
	put16(frame + 14, 9);
	softnic_inject(rig.nic, frame, sizeof(frame));
	step();
	assert_int_equal(rx_len(0, 0), 100);
	assert_memory_equal(rig.mem->rx_data[0][0] + 96, fcs, 4);
	rig_close_clean();
}

/* Of several descriptors, the last one has the tag. */
static void a_long_frame_is_cut_after_its_tag_is_off(void **state) {
	struct packet p = {.vlan = 3, .ip = 4, .protocol = UDP, .payload = 1024 - 42 + 1};
	uint8_t frame[ROOM];

	(void)state;
	rig_open("");
	rx_start(0, 1, ADVANCED, true);
	wr(REG_RXDCTL, rd(REG_RXDCTL) | RXDCTL_VME);
	rx_give(0, 0, 8);
	make_packet(frame, &p);
	softnic_inject(rig.nic, frame, p.len);
	p.payload--;
	make_packet(frame, &p);
	softnic_inject(rig.nic, frame, p.len);
	step();
	assert_int_equal(rx_status(0, 0), RXD_DD | UINT64_C(1024) << RXD_LEN_LOW);
	assert_int_equal(rx_len(0, 1), 1);
	assert_int_equal(rx_status(0, 1) >> 48, 3);
	assert_int_equal(rx_len(0, 2), 1024);
	assert_true(rx_status(0, 2) & RXD_EOP);
	rig_close_clean();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_the_vlans_of_the_table_pass),
	    cmocka_unit_test(what_a_tag_is_says_vet),
	    cmocka_unit_test(cfi_is_compared_if_so_set),
	    cmocka_unit_test(a_vlan_does_not_make_it_ours),
	    cmocka_unit_test(a_tag_is_taken_off_where_vme_says_so),
	    cmocka_unit_test(a_frame_without_tag_stays_as_it_is),
	    cmocka_unit_test(the_fcs_that_stays_is_that_of_the_wire),
	    cmocka_unit_test(a_long_frame_is_cut_after_its_tag_is_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
