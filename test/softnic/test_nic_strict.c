/* SPDX-License-Identifier: BSD-3-Clause */
/* What a careful driver does not do: each thing is noticed, named, and counted, or not if off. */
#include "nic_rig.h"

enum { ADVANCED = SRRCTL_DESCTYPE_ADVANCED };

static void reserved_bits(void) { wr(REG_DTXMXSZRQ, 0xFFFF); }

static void reserved_bits_cleared(void) { wr(REG_HLREG0, 0); }

static void misaligned_ring(void) { wr(REG_RDBAL, (uint32_t)IOVA + 64); }

static void odd_ring_length(void) { wr(REG_N(TDLEN, 5), 129 * 16); }

static void read_only(void) { wr(REG_LINKS, 0); }

static void fctrl_while_receiving(void) {
	wr(REG_RXCTRL, RXCTRL_RXEN);
	wr(REG_FCTRL, FCTRL_BAM);
}

static void rx_head_while_enabled(void) {
	rx_start(0, 2, ADVANCED, true);
	wr(REG_RDH, 0);
}

static void tx_head_while_enabled(void) {
	tx_start(0);
	wr(REG_TDH, 0);
}

static void rx_tail_before_enable(void) {
	rx_prepare(0, 2, ADVANCED, true);
	wr(REG_RDT, 5);
	rx_enable(0);
}

static void rx_doorbell_before_enable(void) {
	rx_prepare(0, 2, ADVANCED, true);
	ring_doorbell(REG_RDT, 5);
	rx_enable(0);
}

static void tx_tail_before_enable(void) {
	tx_prepare(0);
	wr(REG_TDT, 1);
	wr(REG_TXDCTL, TXDCTL_ENABLE);
}

static void rx_tail_outside(void) {
	rx_start(0, 2, ADVANCED, true);
	ring_doorbell(REG_RDT, RING);
	inject(60, 0);
	step();
}

static void tx_tail_outside(void) {
	tx_start(0);
	ring_doorbell(REG_TDT, RING);
	step();
}

/* The whole ring at once: head and tail are equal, and the device sees nothing. */
static void rx_whole_ring_by_register(void) {
	rx_start(0, 2, ADVANCED, true);
	wr(REG_RDT, 0);
}

static void rx_whole_ring_by_doorbell(void) {
	rx_start(0, 2, ADVANCED, false);
	rx_give(0, 0, 10);
	inject(60, 0);
	step();
	ring_doorbell(REG_RDT, 1);
	inject(60, 0);
	step();
}

static void tx_overrun(void) {
	tx_start(0);
	rig.hold = true;
	for (unsigned i = 0; i < RING; i++)
		tx_frame(0, i, 60);
	ring_doorbell(REG_TDT, 5);
	step();
	ring_doorbell(REG_TDT, 0);
	step();
}

static void ring_not_mapped(void) {
	rx_prepare(0, 2, ADVANCED, true);
	wr(REG_RDBAH, 0);
	wr(REG_RXDCTL, RXDCTL_ENABLE);
}

static void ring_partly_mapped(void) {
	tx_prepare(0);
	wr(REG_TDLEN, 0xFFF80);
	wr(REG_TDBAL, (uint32_t)(IOVA + sizeof(*rig.mem) - 4096) & ~127u);
	wr(REG_TXDCTL, TXDCTL_ENABLE);
}

static void ring_of_no_length(void) {
	tx_prepare(0);
	wr(REG_TDLEN, 0);
	wr(REG_TXDCTL, TXDCTL_ENABLE);
}

static void no_buffer_size(void) {
	rx_prepare(0, 0, ADVANCED, true);
	wr(REG_RXDCTL, RXDCTL_ENABLE);
}

static void header_split(void) {
	rx_prepare(0, 2, 5, true);
	wr(REG_RXDCTL, RXDCTL_ENABLE);
}

static void dca_bit(void) {
	rx_prepare(0, 2, ADVANCED, true);
	wr(REG_DCA_RXCTRL, rd(REG_DCA_RXCTRL) | DCA_RXCTRL_MUST_BE_0);
	rx_enable(0);
	rx_on();
	rx_give(0, 0, 4);
	inject(60, 0);
	step();
}

static void tx_queue_64(void) {
	tx_prepare(64);
	wr(REG_N(TXDCTL, 64), TXDCTL_ENABLE);
}

static void mtqc_while_arbitrating(void) { wr(REG_MTQC, NIC_MTQC_128_QUEUES); }

static void mtqc_mode(void) {
	wr(REG_RTTDCS, rd(REG_RTTDCS) | RTTDCS_ARBDIS);
	wr(REG_MTQC, MTQC_RT_ENA | FIELD(MTQC_NUM_TC_OR_Q, 3));
}

static void send_one(size_t len, size_t paylen, uint64_t bits) {
	tx_start(0);
	make_frame(rig.mem->tx_data[0][0], 60, 0);
	tx_put(0, 0, len, paylen, bits);
	ring_doorbell(REG_TDT, 1);
	step();
}

static void empty_frame(void) { send_one(0, 0, TX_EOP_IFCS); }

static void wrong_paylen(void) { send_one(60, 64, TX_EOP_IFCS); }

static void no_fcs(void) {
	send_one(60, 60, TXD_EOP);
	assert_int_equal(rig.sent, 0); /* no receiver would take it */
}

static void no_context(void) { send_one(60, 60, TX_EOP_IFCS | TXD_TXSM); }

static void ipsec(void) { send_one(60, 60, TX_EOP_IFCS | TXD_IPSEC); }

/* DPDK, IXGBE_TX_MAX_SEG: a frame of more descriptors stops the card. */
static void too_many_descriptors(void) {
	tx_start(0);
	make_frame(rig.mem->tx_data[0][0], 60, 0);
	for (unsigned i = 0; i < 41; i++)
		tx_put(0, i, 10, i ? 0 : 410, TXD_IFCS | TXD_RS | (i == 40 ? TXD_EOP : 0));
	ring_doorbell(REG_TDT, 41);
	step();
	assert_int_equal(rig.sent, 0);
}

static void unknown_descriptor(void) { send_one(60, 60, TX_EOP_IFCS | UINT64_C(8) << 20); }

static void too_long(void) { send_one(15869, 15869, TX_EOP_IFCS); }

static const struct {
	const char *what;
	void (*provoke)(void);
	const char *reg, *text;
} cases[] = {
    {"reserved bits", reserved_bits, "DTXMXSZRQ: ", "0x0000F000"},
    {"reserved bits cleared", reserved_bits_cleared, "HLREG0: ", "reserved"},
    {"misaligned ring", misaligned_ring, "RDBAL[0]: ", "0x00000040"},
    {"odd ring length", odd_ring_length, "TDLEN[5]: ", "reserved"},
    {"read-only", read_only, "LINKS: ", "read-only"},
    {"FCTRL while receiving", fctrl_while_receiving, "FCTRL: ", "8.2.3.7.1"},
    {"RDH while enabled", rx_head_while_enabled, "RDH[0]: ", "enabled"},
    {"TDH while enabled", tx_head_while_enabled, "TDH[0]: ", "enabled"},
    {"RDT before enable", rx_tail_before_enable, "RDT[0]: ", "before"},
    {"RDT doorbell before enable", rx_doorbell_before_enable, "RDT[0]: ", "before"},
    {"TDT before enable", tx_tail_before_enable, "TDT[0]: ", "before"},
    {"RDT outside", rx_tail_outside, "RDT[0]: ", "outside the ring of 64"},
    {"TDT outside", tx_tail_outside, "TDT[0]: ", "outside the ring of 64"},
    {"RDT = RDH written", rx_whole_ring_by_register, "RDT[0]: ", "head"},
    {"RDT = RDH stored", rx_whole_ring_by_doorbell, "RDT[0]: ", "head"},
    {"TDT laps TDH", tx_overrun, "TDT[0]: ", "head"},
    {"ring not mapped", ring_not_mapped, "RDBAL[0]: ", "not mapped"},
    {"ring partly mapped", ring_partly_mapped, "TDBAL[0]: ", "not mapped"},
    {"ring of no length", ring_of_no_length, "TDBAL[0]: ", "0 descriptors"},
    {"no buffer size", no_buffer_size, "SRRCTL[0]: ", "buffer size"},
    {"header split", header_split, "SRRCTL[0]: ", "descriptor type"},
    {"DCA bit 12", dca_bit, "DCA_RXCTRL[0]: ", "bit 12"},
    {"queue 64", tx_queue_64, "TXDCTL[64]: ", "MTQC"},
    {"MTQC while arbitrating", mtqc_while_arbitrating, "MTQC: ", "ARBDIS"},
    {"MTQC mode", mtqc_mode, "MTQC: ", "0xD"},
    {"empty frame", empty_frame, "TDT[0]: ", "no bytes"},
    {"wrong PAYLEN", wrong_paylen, "TDT[0]: ", "PAYLEN is 64"},
    {"no FCS", no_fcs, "TDT[0]: ", "IFCS"},
    {"no context", no_context, "TDT[0]: ", "context that was not written"},
    {"IPsec", ipsec, "TDT[0]: ", "offload"},
    {"41 descriptors", too_many_descriptors, "TDT[0]: ", "more descriptors than 40"},
    {"unknown descriptor", unknown_descriptor, "TDT[0]: ", "type"},
    {"too long", too_long, "TDT[0]: ", "15.5 KB"},
};

static void each_violation_is_reported(void **state) {
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_open("");
		assert_string_equal(softnic_last_violation(rig.nic), "");
		cases[i].provoke();
		if (softnic_violations(rig.nic) != 1 ||
		    !strstr(softnic_last_violation(rig.nic), cases[i].reg) ||
		    !strstr(softnic_last_violation(rig.nic), cases[i].text))
			fail_msg("%s: %u times: %s", cases[i].what, softnic_violations(rig.nic),
				 softnic_last_violation(rig.nic));
		rig_close();
	}
}

static void strict_off_is_silent(void **state) {
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_open(",strict=off");
		cases[i].provoke();
		if (softnic_violations(rig.nic) > 0)
			fail_msg("%s: %s", cases[i].what, softnic_last_violation(rig.nic));
		rig_close();
	}
}

static void what_is_allowed_is_not_reported(void **state) {
	(void)state;
	rig_open("");
	wr(REG_FCTRL, FCTRL_BAM);
	wr(REG_RXCTRL, RXCTRL_RXEN);
	wr(REG_FCTRL, FCTRL_BAM); /* no change */
	wr(REG_SECRXCTRL, rd(REG_SECRXCTRL) | SECRXCTRL_RX_DIS);
	wr(REG_FCTRL, FCTRL_BAM | FCTRL_UPE);		 /* paused */
	wr(REG_HLREG0, rd(REG_HLREG0) ^ HLREG0_JUMBOEN); /* reserved bits as they were */
	wr(REG_EIMC, EIMC_ALL);
	wr(REG_N(MTA, 127), 0xFFFFFFFF); /* no fields: all bits are the table's */
	rx_start(0, 2, ADVANCED, true);
	rx_give(0, 0, RING - 1); /* all but one */
	wr(REG_RXDCTL, 0);
	wr(REG_RDH, 0);
	wr(REG_RDT, 0);
	rig_close_clean();
}

static void a_queue_whose_head_was_written_stops(void **state) {
	static const char *const options[] = {"", ",strict=off"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		rig_open(options[i]);
		rx_start(0, 2, ADVANCED, true);
		wr(REG_RDH, 0);
		rx_give(0, 0, 8);
		inject(60, 0);
		step();
		assert_int_equal(rd(REG_RDH), i);
		tx_start(0);
		wr(REG_TDH, 0);
		make_frame(rig.mem->tx_data[0][0], 60, 0);
		tx_frame(0, 0, 60);
		ring_doorbell(REG_TDT, 1);
		step();
		assert_int_equal(rig.sent, i);
		/* Off and on again: it runs. */
		wr(REG_TXDCTL, 0);
		wr(REG_TDT, 0);
		tx_start(0);
		tx_frame(0, 0, 60);
		ring_doorbell(REG_TDT, 1);
		step();
		assert_int_equal(rig.sent, i + 1);
		rig_close();
	}
}

static void dca_bit_corrupts_whether_strict_or_not(void **state) {
	static const char *const options[] = {"", ",strict=off"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint8_t frame[60];

		rig_open(options[i]);
		dca_bit();
		make_frame(frame, 60, 0);
		assert_int_equal(rx_len(0, 0), 60);
		assert_memory_not_equal(rig.mem->rx_data[0][0], frame, 60);
		assert_int_equal(rig.mem->rx_data[0][0][60], 0xEE);
		rig_close();
	}
}

static void stray_dma_is_reported_always_and_not_done(void **state) {
	static const char *const options[] = {"", ",strict=off"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t end;

		rig_open(options[i]);
		end = IOVA + sizeof(*rig.mem);
		/* A receive buffer whose last bytes are not mapped: nothing of it is written. */
		rx_start(0, 2, ADVANCED, true);
		rx_give(0, 0, 4);
		rig.mem->rx[0][0].qw0 = htole64(end - 58);
		inject(60, 0);
		step();
		assert_int_equal(softnic_violations(rig.nic), 1);
		assert_non_null(
		    strstr(softnic_last_violation(rig.nic), "stray DMA write of 60 bytes"));
		assert_int_equal(((uint8_t *)rig.mem)[sizeof(*rig.mem) - 58], 0xEE);
		/* A frame to send whose last byte is not there: the queue hangs, as on a card. */
		tx_start(0);
		tx_frame(0, 0, 60);
		rig.mem->tx[0][0].qw0 = htole64(end - 59);
		ring_doorbell(REG_TDT, 1);
		step();
		step();
		assert_int_equal(softnic_violations(rig.nic), 2);
		assert_non_null(
		    strstr(softnic_last_violation(rig.nic), "stray DMA read of 60 bytes"));
		assert_non_null(strstr(softnic_last_violation(rig.nic), "TDBAL[0]"));
		assert_int_equal(rig.sent, 0);
		assert_int_equal(rd(REG_TDH), 0);
		rig_close();

		/* Rings whose memory goes away while they are used. */
		rig_open(options[i]);
		rx_start(0, 2, ADVANCED, true);
		tx_start(1);
		rx_give(0, 0, 4);
		tx_frame(1, 0, 60);
		softnic_dma_unmap(rig.nic, IOVA, sizeof(*rig.mem));
		ring_doorbell(REG_N(TDT, 1), 1);
		inject(60, 0);
		step();
		step();
		assert_int_equal(softnic_violations(rig.nic), 2);
		assert_int_equal(rx_status(0, 0), 0);
		assert_int_equal(rig.sent, 0);
		rig_close();
	}
}

struct log {
	unsigned lines;
	char last[512];
};

/* A head that was written beyond the ring made the NIC work on whatever lies there. */
static void head_outside_the_ring_touches_no_neighbour(void **state) {
	(void)state;
	rig_open(",strict=off");
	rx_prepare(0, 2, ADVANCED, true);
	wr(REG_RDH, RING + 5);
	tx_prepare(0);
	wr(REG_TDH, RING + 5);
	wr(REG_DMATXCTL, rd(REG_DMATXCTL) | DMATXCTL_TE);
	rx_enable(0);
	wr(REG_TXDCTL, TXDCTL_ENABLE);
	rx_on();
	/* The neighbours' descriptors would be good ones. */
	rx_give(1, 0, RING - 1);
	tx_frame(1, 5, 60);
	ring_doorbell(REG_RDT, 10);
	ring_doorbell(REG_TDT, 10);
	inject(60, 1);
	step();
	assert_int_equal(rx_status(1, 5), 0);
	assert_false(tx_done(1, 5));
	assert_int_equal(rig.sent, 0);
	assert_true(softnic_violations(rig.nic) >= 2);
	assert_non_null(strstr(softnic_last_violation(rig.nic), "descriptor 69 at"));
	assert_non_null(strstr(softnic_last_violation(rig.nic), "outside the ring"));
	rig_close();
}

static void on_log(enum ixdp_log_level level, const char *line, void *arg) {
	struct log *log = arg;

	assert_int_equal(level, IXDP_LOG_WARNING);
	log->lines++;
	snprintf(log->last, sizeof(log->last), "%s", line);
}

static void each_register_is_logged_once(void **state) {
	struct log log = {0};

	(void)state;
	ixdp_log_set(on_log, &log, IXDP_LOG_WARNING);
	rig_open("");
	for (unsigned i = 0; i < 5; i++) {
		wr(REG_LINKS, i);
		assert_int_equal(log.lines, 1);
	}
	assert_int_equal(softnic_violations(rig.nic), 5);
	assert_non_null(strstr(log.last, "soft:t: LINKS"));
	wr(REG_STATUS, 0);
	assert_int_equal(log.lines, 2);
	ixdp_log_set(NULL, NULL, IXDP_LOG_WARNING);
	rig_close();
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_violation_is_reported),
	    cmocka_unit_test(strict_off_is_silent),
	    cmocka_unit_test(what_is_allowed_is_not_reported),
	    cmocka_unit_test(a_queue_whose_head_was_written_stops),
	    cmocka_unit_test(dca_bit_corrupts_whether_strict_or_not),
	    cmocka_unit_test(stray_dma_is_reported_always_and_not_done),
	    cmocka_unit_test(head_outside_the_ring_touches_no_neighbour),
	    cmocka_unit_test(each_register_is_logged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
