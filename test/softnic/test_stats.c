/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of the driver: 64-bit totals of counters that are narrow and clear when read. */
#include "stats_rig.h"

static void assert_all_zero(const struct ixdp_stats *stats) {
	unsigned n;
	const char *const *names = ixdp_stats_names(&n);

	for (unsigned i = 0; i < n; i++)
		if (((const uint64_t *)stats)[i] != 0) fail_msg("%s is not 0", names[i]);
}

static void assert_list(const char *const *names_of(unsigned *n), size_t size) {
	unsigned n;
	const char *const *names = names_of(&n);

	assert_int_equal(n, size / sizeof(uint64_t));
	for (unsigned i = 0; i < n; i++) {
		assert_true(strlen(names[i]) > 0);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
}

static void every_statistic_has_a_name_of_its_own(void **state) {
	struct ixdp_stats stats = {.rx_missed = 7, .saturated = 9};

	(void)state;
	assert_list(ixdp_stats_names, sizeof(struct ixdp_stats));
	assert_list(ixdp_rx_queue_stats_names, sizeof(struct ixdp_rx_queue_stats));
	assert_list(ixdp_tx_queue_stats_names, sizeof(struct ixdp_tx_queue_stats));
	assert_int_equal(value(&stats, "rx_missed"), 7);
	assert_int_equal(value(&stats, "saturated"), 9);
}

/* Registers whose count is shown as it is. damage: TPR counts these frames too, GPRC does not. */
static const struct {
	uint32_t reg;
	const char *name;
	bool damage;
} plain[] = {
    {REG_MPC, "rx_missed", false},     {REG_CRCERRS, "rx_crc", true},
    {REG_RUC, "rx_undersize", true},   {REG_RFC, "rx_fragments", true},
    {REG_ROC, "rx_oversize", true},    {REG_RJC, "rx_jabber", true},
    {REG_RLEC, "rx_length", true},     {REG_MPRC, "rx_multicast", false},
    {REG_BPRC, "rx_broadcast", false}, {REG_PRC, "rx_64", false},
    {REG_N(PRC, 1), "rx_127", false},  {REG_N(PRC, 5), "rx_max", false},
    {REG_BPTC, "tx_broadcast", false}, {REG_N(PTC, 1), "tx_127", false},
    {REG_N(PTC, 5), "tx_max", false},  {REG_TPR, "rx_filtered", false},
};

/* DPDK 5168e13017 and its kin: totals must go on where 32 bits end. Read twice, counted once. */
static void totals_are_exact_across_32_bits(void **state) {
	(void)state;
	start("", NULL);
	for (unsigned i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		uint64_t filtered = rig_stats(&rig).rx_filtered;

		for (unsigned lap = 1; lap <= 3; lap++) {
			softnic_poke(rig.nic, plain[i].reg, NEAR);
			if (plain[i].damage) softnic_poke(rig.nic, REG_TPR, NEAR);
			struct ixdp_stats stats = rig_stats(&rig);

			if (value(&stats, plain[i].name) != lap * UINT64_C(0xFFFFFFF0))
				fail_msg("%s, lap %u", plain[i].name, lap);
			stats = rig_stats(&rig);
			assert_true(value(&stats, plain[i].name) == lap * UINT64_C(0xFFFFFFF0));
			/* What is damaged is not filtered as well. */
			if (plain[i].damage) assert_true(stats.rx_filtered == filtered);
		}
	}
	assert_int_equal(rig_stats(&rig).saturated, 0);
	assert_int_equal(n_lines, 0);
	rig_close(&rig);
}

static void send(unsigned n) {
	struct ixdp_pkt pkts[64];

	assert_int_equal(rig_make(&rig, pkts, n, 100, 0), n);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, n), n);
	rig_run(&rig);
}

/* Octets have 36 bits, packets 32; frames go on while both are near their end. */
static void octets_are_exact_across_36_bits(void **state) {
	uint64_t packets = 0, octets = 0;

	(void)state;
	start("", NULL);
	for (unsigned lap = 0; lap < 3; lap++) {
		softnic_poke(rig.nic, REG_GPTC, 0xFFFFFF00);
		softnic_poke(rig.nic, REG_GOTCL, 0xFFFF0000);
		softnic_poke(rig.nic, REG_GOTCH, 0xF);
		send(10);
		packets += UINT64_C(0xFFFFFF00) + 10;
		octets += UINT64_C(0xFFFFF0000) + 10 * 104;
		assert_true(rig_stats(&rig).tx_packets == packets);
		assert_true(rig_stats(&rig).tx_bytes == octets - 4 * packets);
	}
	assert_int_equal(rig_stats(&rig).saturated, 0);
	rig_close(&rig);
}

/* It has stopped counting: nobody knows for how long. */
static void full_counters_are_said_once(void **state) {
	(void)state;
	start("", NULL);
	softnic_poke(rig.nic, REG_CRCERRS, UINT32_MAX - 1);
	assert_int_equal(rig_stats(&rig).saturated, 0);
	softnic_poke(rig.nic, REG_CRCERRS, UINT32_MAX);
	assert_int_equal(rig_stats(&rig).saturated, 1);
	assert_int_equal(n_lines, 1);
	assert_non_null(strstr(lines[0], "soft:rig: the counter of rx_crc was full"));
	/* The low word alone may be all ones. */
	softnic_poke(rig.nic, REG_GOTCL, UINT32_MAX);
	assert_int_equal(rig_stats(&rig).saturated, 1);
	softnic_poke(rig.nic, REG_GOTCL, UINT32_MAX);
	softnic_poke(rig.nic, REG_GOTCH, 0xF);
	softnic_poke(rig.nic, REG_QPRDC, UINT32_MAX);
	assert_int_equal(rig_stats(&rig).saturated, 3);
	assert_int_equal(n_lines, 1);
	rig_close(&rig);
}

/* What they hold from an earlier life is not ours. */
static void junk_in_counters_is_not_counted(void **state) {
	struct ixdp_stats stats;

	(void)state;
	start(",fault=stale-counters", NULL);
	stats = rig_stats(&rig);
	assert_all_zero(&stats);
	rig_close(&rig);
}

static void queues_add_up_to_the_port(void **state) {
	struct ixdp_config cfg = rig_config(1, 2);
	struct ixdp_tx_queue_stats queue;
	struct ixdp_pkt pkts[70];

	(void)state;
	cfg.tx_ring = 64;
	start("", &cfg);
	rig.hold = true;
	assert_int_equal(rig_make(&rig, pkts, 70, 100, 0), 70);
	assert_int_equal(ixdp_tx(rig.port, 1, pkts, 70), 63);
	assert_int_equal(ixdp_tx(rig.port, 1, pkts + 63, 7), 0);
	assert_int_equal(ixdp_tx_queue_stats_get(rig.port, 1, &queue), 0);
	assert_int_equal(queue.taken, 63);
	assert_int_equal(queue.bytes, 6300);
	assert_int_equal(queue.full, 14);
	assert_int_equal(ixdp_tx_queue_stats_get(rig.port, 0, &queue), 0);
	assert_int_equal(queue.taken + queue.bytes + queue.full, 0);
	assert_int_equal(ixdp_tx_queue_stats_get(rig.port, 2, &queue), -EINVAL);

	struct ixdp_stats stats = rig_stats(&rig);

	assert_int_equal(stats.tx_taken, 63);
	assert_int_equal(stats.tx_full, 14);
	assert_int_equal(stats.tx_pending, 63);
	assert_int_equal(stats.tx_bytes, 0);
	rig.hold = false;
	rig_run(&rig);
	stats = rig_stats(&rig);
	assert_int_equal(stats.tx_pending, 0);
	assert_int_equal(stats.tx_bytes, 6300);
	ixdp_free(rig.pool, pkts + 63, 7);
	rig_close(&rig);
}

static void clearing_clears_everything_and_loses_nothing(void **state) {
	struct ixdp_rx_queue_stats rx;
	struct ixdp_tx_queue_stats tx;
	struct ixdp_stats stats;
	uint64_t seq = 0;

	(void)state;
	start("", NULL);
	softnic_poke(rig.nic, REG_MPC, 5);
	rig_inject(&rig, 60);
	rig_run(&rig);
	assert_int_equal(rig_receive(&rig, 0, 8, 8, &seq), 1);
	send(3);
	assert_int_equal(rig_stats(&rig).tx_packets, 3);
	send(2); /* not read so far: cleared, too */
	assert_int_equal(ixdp_stats_clear(rig.port), 0);
	stats = rig_stats(&rig);
	assert_all_zero(&stats);

	softnic_poke(rig.nic, REG_MPC, 2);
	softnic_poke(rig.nic, REG_QPRDC, 4);
	rig_inject(&rig, 70);
	rig_run(&rig);
	assert_int_equal(rig_receive(&rig, 0, 8, 8, &seq), 1);
	send(4);
	stats = rig_stats(&rig);
	assert_int_equal(stats.rx_missed, 2);
	assert_int_equal(stats.rx_packets, 1);
	assert_int_equal(stats.rx_bytes, 70);
	assert_int_equal(stats.rx_dropped, 6);
	assert_int_equal(stats.tx_packets, 4);
	assert_int_equal(stats.tx_bytes, 400);
	assert_int_equal(stats.tx_taken, 4);
	assert_int_equal(ixdp_rx_queue_stats_get(rig.port, 0, &rx), 0);
	assert_int_equal(rx.packets, 1);
	assert_int_equal(rx.no_desc, 4);
	assert_int_equal(ixdp_tx_queue_stats_get(rig.port, 0, &tx), 0);
	assert_int_equal(tx.taken, 4);

	softnic_fault(rig.nic, "all-ones");
	assert_int_equal(ixdp_stats_clear(rig.port), -ENODEV);
	assert_int_equal(ixdp_rx_queue_stats_get(rig.port, 0, &rx), -ENODEV);
	softnic_fault(rig.nic, "none");
	assert_int_equal(rig_stats(&rig).tx_packets, 4);
	rig_close(&rig);
}

/* What the NIC has counted goes with a reset, unless it is collected before. */
static void totals_survive_a_reset(void **state) {
	struct ixdp_stats stats;
	struct ixdp_pkt pkts[5];

	(void)state;
	start(",fault=stale-counters", NULL);
	send(3);
	rig.hold = true;
	assert_int_equal(rig_make(&rig, pkts, 5, 100, 0), 5);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 5), 5);
	stats_collect(rig.port);
	softnic_write32(rig.nic, REG_CTRL, CTRL_RST);
	stats_init(rig.port);
	stats = rig_stats(&rig);
	assert_int_equal(stats.tx_packets, 3);
	assert_int_equal(stats.tx_bytes, 300);
	assert_int_equal(stats.tx_taken, 8);
	assert_int_equal(stats.tx_dropped, 5); /* nobody will send these */
	assert_int_equal(stats.tx_pending, 0);
	assert_int_equal(stats.rx_missed, 0);
	rig_close(&rig);
}

/* While the counters are read one after the other, frames come and go. */
static void traffic_in_between(struct softnic *nic, bool write, uint32_t reg, uint32_t value,
			       void *arg) {
	unsigned *left = arg;

	(void)value;
	if (write || *left == 0 || reg == REG_STATUS) return;
	--*left;
	rig_inject(&rig, 60);
	if (*left % 3 == 0) softnic_inject_bad_crc(nic, "\2\0\0\0\0\1", 40);
	softnic_step(nic, 1);
}

static void nothing_ever_falls(void **state) {
	unsigned left = 400, delivered = 0;
	struct softnic_hooks hooks = {.access = traffic_in_between, .arg = &left};
	struct ixdp_stats last = {0}, now;
	struct ixdp_pkt pkts[400];
	const char *const *names;
	unsigned n;

	(void)state;
	start("", NULL);
	names = ixdp_stats_names(&n);
	assert_int_equal(n, STATS);
	assert_int_equal(rig_make(&rig, pkts, 400, 100, 0), 400);
	assert_int_equal(ixdp_tx(rig.port, 0, pkts, 400), 400);
	softnic_set_hooks(rig.nic, &hooks);
	while (left > 0) {
		now = rig_stats(&rig);
		for (unsigned i = 0; i < STATS; i++)
			if (((uint64_t *)&now)[i] < ((uint64_t *)&last)[i] &&
			    strcmp(names[i], "tx_pending") != 0)
				fail_msg("%s falls", names[i]);
		assert_true(now.tx_bytes <= 100 * now.tx_packets);
		assert_int_equal(now.rx_filtered, 0);
		last = now;
		receive(64, &delivered);
	}
	softnic_set_hooks(rig.nic, NULL);
	rig_run(&rig);
	for (unsigned i = 0; i < 10; i++)
		receive(64, &delivered);
	/* In the end it is exact. */
	now = rig_stats(&rig);
	assert_int_equal(now.tx_packets, 400);
	assert_int_equal(now.tx_bytes, 40000);
	assert_int_equal(now.rx_packets, 400);
	assert_int_equal(now.rx_undersize + now.rx_fragments, 134);
	assert_int_equal(now.rx_dropped, 134);
	rig_close(&rig);
}

static void without_link_nothing_is_sent(void **state) {
	struct ixdp_stats stats;

	(void)state;
	start(",fault=link-down", NULL);
	send(9);
	stats = rig_stats(&rig);
	assert_int_equal(stats.tx_packets + stats.tx_bytes, 0);
	assert_int_equal(stats.tx_pending, 9);
	rig_close(&rig);
}

/* Filters that a reset leaves undefined would let anything in, or nothing. */
static void tables_are_written_at_open(void **state) {
	static const struct {
		uint32_t reg, n;
	} tables[] = {{REG_MTA, REG_MTA_COUNT},	    {REG_UTA, REG_UTA_COUNT},
		      {REG_VFTA, REG_VFTA_COUNT},   {REG_VLVF, REG_VLVF_COUNT},
		      {REG_VLVFB, REG_VLVFB_COUNT}, {REG_MPSAR, REG_MPSAR_COUNT},
		      {REG_FTQF, REG_FTQF_COUNT}};

	(void)state;
	start("", NULL);
	for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (unsigned n = 0; n < tables[i].n; n++)
			assert_int_equal(softnic_peek(rig.nic, tables[i].reg + 4 * n), 0);
	rig_close(&rig);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_statistic_has_a_name_of_its_own),
	    cmocka_unit_test(totals_are_exact_across_32_bits),
	    cmocka_unit_test(octets_are_exact_across_36_bits),
	    cmocka_unit_test(full_counters_are_said_once),
	    cmocka_unit_test(junk_in_counters_is_not_counted),
	    cmocka_unit_test(queues_add_up_to_the_port),
	    cmocka_unit_test(clearing_clears_everything_and_loses_nothing),
	    cmocka_unit_test(totals_survive_a_reset),
	    cmocka_unit_test(nothing_ever_falls),
	    cmocka_unit_test(without_link_nothing_is_sent),
	    cmocka_unit_test(tables_are_written_at_open),
	};

	return cmocka_run_group_tests_name("stats", tests, setup, NULL);
}
