/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, watching and closing a port: initialisation, its failures, link, addresses, counters. */
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "bus/bus.h"
#include "driver/regs.h"

static struct rig rig;

/* What a healthy card looks like to the driver afterwards, register by register. */
static void registers_are_as_the_datasheet_asks(void **state) {
	(void)state;
	rig_open(&rig, "", NULL);
	struct softnic *nic = rig.nic;

	assert_int_equal(softnic_peek(nic, REG_EIMS), 0);
	assert_true(softnic_peek(nic, REG_CTRL_EXT) & CTRL_EXT_NS_DIS);
	assert_true(softnic_peek(nic, REG_CTRL_EXT) & CTRL_EXT_DRV_LOAD);
	assert_int_equal(softnic_peek(nic, REG_FCTRL), FCTRL_BAM | FCTRL_UPE | FCTRL_MPE);
	assert_int_equal(softnic_peek(nic, REG_FCRTH), 512 * 1024 - 0x6000);
	assert_int_equal(softnic_peek(nic, REG_FCCFG), 0);
	assert_int_equal(FIELD_GET(MAXFRS_MFS, softnic_peek(nic, REG_MAXFRS)), 1518);

	uint32_t hlreg0 = softnic_peek(nic, REG_HLREG0);
	uint32_t rdrxctl = softnic_peek(nic, REG_RDRXCTL);

	assert_true(hlreg0 & HLREG0_TXCRCEN && hlreg0 & HLREG0_TXPADEN && hlreg0 & HLREG0_JUMBOEN);
	/* CRC is stripped in both places or in none. */
	assert_true(hlreg0 & HLREG0_RXCRCSTRP && rdrxctl & RDRXCTL_CRCSTRIP);
	assert_int_equal(rdrxctl & RDRXCTL_RSCFRSTSIZE, 0);
	assert_true(rdrxctl & RDRXCTL_RSCACKC && rdrxctl & RDRXCTL_FCOE_WRFIX);
	assert_int_equal(softnic_peek(nic, REG_SRRCTL),
			 FIELD(SRRCTL_BSIZEPKT, 2) | FIELD(SRRCTL_DESCTYPE, 1) | SRRCTL_DROP_EN);
	assert_int_equal(softnic_peek(nic, REG_DCA_RXCTRL) & DCA_RXCTRL_MUST_BE_0, 0);
	assert_int_equal(softnic_peek(nic, REG_DCA_TXCTRL) & DCA_TXCTRL_DESC_WB_RO, 0);
	assert_int_equal(softnic_peek(nic, REG_RXPBSIZE), 512 << 10);
	assert_int_equal(softnic_peek(nic, REG_N(RXPBSIZE, 1)), 0);
	assert_int_equal(softnic_peek(nic, REG_TXPBSIZE), 160 << 10);
	assert_int_equal(softnic_peek(nic, REG_TXPBTHRESH), 150);
	assert_int_equal(softnic_peek(nic, REG_RTTDCS) & RTTDCS_ARBDIS, 0);
	assert_int_equal(softnic_peek(nic, REG_SECRXCTRL) & SECRXCTRL_RX_DIS, 0);
	rig_close(&rig);
}

/* ixy waits for ever. Each wait ends, and names the register and field that did not move. */
static void every_wait_has_a_limit_and_a_name(void **state) {
	static const struct {
		const char *fault;
		const char *text;
		int err;
	} cases[] = {
	    {"reset-stuck", "CTRL.RST", -ETIMEDOUT},
	    {"eeprom-stuck", "EEC.ARD", -ETIMEDOUT},
	    {"dmai-stuck", "RDRXCTL.DMAIDONE", -ETIMEDOUT},
	    {"enable-never", "XDCTL.ENABLE", -ETIMEDOUT},
	    /* The way back fails as well, which is not what the caller wants to know. */
	    {"enable-never+master-stuck", "XDCTL.ENABLE", -ETIMEDOUT},
	    {"secrx-stuck", "SECRXSTAT.RDY", -ETIMEDOUT},
	    {"all-ones", "does not answer", -ENODEV},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char option[64];

		snprintf(option, sizeof(option), ",fault=%s", cases[i].fault);
		assert_int_equal(rig_try_open(&rig, option, NULL, 0), cases[i].err);
		if (!strstr(ixdp_error(), cases[i].text) || !strstr(ixdp_error(), "soft:rig"))
			fail_msg("%s: '%s' does not name %s", cases[i].fault, ixdp_error(),
				 cases[i].text);
		/* The name is free again, and nothing has stuck. */
		rig_open(&rig, "", NULL);
		rig_close(&rig);
	}
}

/* What is late but comes is no error; what never ends is reset away. */
static void slow_cards_are_waited_for(void **state) {
	static const char *const faults[] = {"enable-late:3", "disable-late:3", "disable-never",
					     "master-stuck", "semaphore-held"};

	(void)state;
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		char option[64];
		uint64_t seq = 0;

		snprintf(option, sizeof(option), ",fault=%s", faults[i]);
		rig_open(&rig, option, NULL);
		rig_inject(&rig, 60);
		rig_run(&rig);
		assert_int_equal(rig_receive(&rig, 0, 8, 8, &seq), 1);
		rig_close(&rig);
	}
}

/* The first thing that is done to a card is to take its interrupts and its DMA away. */
struct order {
	unsigned resets;
	bool masked, stopped, early_ring;
};

static void watch_order(struct softnic *nic, bool write, uint32_t reg, uint32_t value, void *arg) {
	struct order *order = arg;

	(void)nic;
	if (!write) return;
	if (reg == REG_EIMC && value == EIMC_ALL) order->masked = true;
	if (reg == REG_CTRL && value & CTRL_MASTER_DISABLE) order->stopped = true;
	if (reg == REG_CTRL && value & CTRL_RST) {
		assert_true((order->masked || order->resets > 0) && order->stopped);
		order->resets++;
		order->masked = false;
	}
}

/* SU clarification 9: a card whose master disable does not end is flushed and reset twice. */
static void closing_is_quiet_then_reset(void **state) {
	struct order order = {0};
	struct softnic_hooks hooks = {.access = watch_order, .arg = &order};

	(void)state;
	rig_open(&rig, "", NULL);
	softnic_set_hooks(rig.nic, &hooks);
	rig_close(&rig);
	assert_int_equal(order.resets, 1);
	assert_true(order.masked); /* again, after the reset */

	order = (struct order){0};
	rig_open(&rig, "", NULL);
	softnic_set_hooks(rig.nic, &hooks);
	softnic_fault(rig.nic, "master-stuck");
	rig_close_dirty(&rig);
	assert_int_equal(order.resets, 2);
}

/* Frames that arrive all the while do not disturb; nothing is written after close. */
static void traffic_during_open_and_close(void **state) {
	struct ixdp_pkt pkts[32];
	struct ixdp_port *port;
	struct ixdp_pool_config pool_cfg = {
	    .buffers = 2048, .numa_node = -1, .ordinary_pages = true};
	struct ixdp_config cfg;
	struct ixdp_pool *pool;
	int got = 0;

	(void)state;
	ixdp_config_init(&cfg);
	assert_int_equal(ixdp_pool_create(&pool, &pool_cfg), 0);
	cfg.pool = pool;
	for (unsigned round = 0; round < 20; round++) {
		struct ixdp_pool_stats stats;

		assert_int_equal(ixdp_open(&port, "soft:busy,peer=gen", &cfg), 0);
		struct softnic *nic = softnic_find("busy");

		for (unsigned i = 0; i < 10; i++) {
			softnic_step(nic, 64);
			got = ixdp_rx(port, 0, pkts, 32);
			assert_true(got >= 0);
			ixdp_free(pool, pkts, got);
		}
		assert_int_equal(softnic_violations(nic), 0);
		ixdp_close(port);
		assert_null(softnic_find("busy"));
		ixdp_pool_get_stats(pool, &stats);
		assert_int_equal(stats.available, stats.buffers);
	}
	assert_int_equal(ixdp_pool_destroy(pool), 0);
}

static unsigned open_files(void) {
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static unsigned mappings(void) {
	FILE *file = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	assert_non_null(file);
	while ((c = fgetc(file)) != EOF)
		n += c == '\n';
	fclose(file);
	return n;
}

/* ixy e04d2d1, DPDK a4ae7f51d2: each open leaked a file or a mapping. */
static void opening_and_closing_leaks_nothing(void **state) {
	struct rlimit limit, few = {64, 64};
	unsigned files = 0, maps = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	few.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (unsigned i = 0; i < 2000; i++) {
		struct ixdp_port *port;

		if (ixdp_open(&port, "soft:again", NULL) != 0)
			fail_msg("round %u: %s", i, ixdp_error());
		ixdp_close(port);
		if (i == 10) {
			files = open_files();
			maps = mappings();
		}
	}
	assert_int_equal(open_files(), files);
	/* The C library may keep an arena more or less; a sanitizer keeps what was freed. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_in_range(mappings(), maps - 4, maps + 4);
#endif
	(void)maps;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Failed opens must not leak either, wherever they fail. */
static void failing_to_open_leaks_nothing(void **state) {
	static const char *const faults[] = {"reset-stuck", "eeprom-stuck", "enable-never",
					     "dmai-stuck"};
	unsigned files = 0;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		char option[64];

		snprintf(option, sizeof(option), ",fault=%s", faults[i % 4]);
		assert_true(rig_try_open(&rig, option, NULL, 0) < 0);
		if (i == 4) files = open_files();
	}
	assert_int_equal(open_files(), files);
}

/* ixy 58ab76a, ixy.rs aa645a0: addresses were taken as contiguous, or virtual ones used for DMA. */
static uint64_t scatter(uintptr_t page) {
	/* Every huge page elsewhere, in falling order. */
	return UINT64_C(0x700000000000) - page * 3;
}

static void memory_may_be_scattered(void **state) {
	static const struct ixdp_rss to_queue_0;
	struct ixdp_config cfg;
	struct ixdp_pkt pkts[256];
	uint64_t seq = 0;

	(void)state;
	ixdp_config_init(&cfg);
	cfg.rx_queues = 4;
	cfg.tx_queues = 4;
	cfg.rx_ring = 4096;
	cfg.tx_ring = 1024;
	cfg.rss = &to_queue_0;
	bus_soft_set_translator(scatter);
	rig_open(&rig, "", &cfg);
	assert_int_not_equal(softnic_peek(rig.nic, REG_RDBAH), 0);
	for (unsigned round = 0; round < 30; round++) {
		for (unsigned i = 0; i < 256; i++)
			rig_inject(&rig, 60 + i);
		rig_run(&rig);
		assert_int_equal(rig_receive(&rig, 0, 256, 64, &seq), 256);
		assert_int_equal(rig_make(&rig, pkts, 256, 700, rig.sent), 256);
		assert_int_equal(ixdp_tx(rig.port, round % 4, pkts, 256), 256);
		rig_run(&rig);
	}
	assert_int_equal(rig.sent, 30 * 256);
	for (unsigned i = 0; i < rig.sent; i++)
		assert_int_equal(rig.sent_seq[i], i);
	rig_close(&rig);
	bus_soft_set_translator(NULL);
}

static void link_is_reported(void **state) {
	struct ixdp_link link;

	(void)state;
	rig_open(&rig, "", NULL);
	assert_int_equal(ixdp_link_get(rig.port, &link), 0);
	assert_true(link.up);
	assert_int_equal(link.mbps, 10000);
	softnic_fault(rig.nic, "link-down");
	assert_int_equal(ixdp_link_get(rig.port, &link), 0);
	assert_false(link.up);
	assert_int_equal(link.mbps, 0);
	assert_int_equal(ixdp_link_wait(rig.port, 50, &link), -ETIMEDOUT);
	assert_non_null(strstr(ixdp_error(), "LINKS.UP"));
	rig_close(&rig);

	/* Eight seconds late: open does not wait for it, the caller may. */
	rig_open(&rig, ",fault=link-late:8000", NULL);
	assert_int_equal(ixdp_link_wait(rig.port, 1000, &link), -ETIMEDOUT);
	assert_int_equal(ixdp_link_wait(rig.port, 10000, &link), 0);
	assert_true(link.up);
	rig_close(&rig);
}

static void gone_devices_are_errors_not_endless_waits(void **state) {
	struct ixdp_stats stats;
	struct ixdp_link link;

	(void)state;
	rig_open(&rig, "", NULL);
	softnic_fault(rig.nic, "all-ones");
	assert_int_equal(ixdp_link_get(rig.port, &link), -ENODEV);
	assert_int_equal(ixdp_link_wait(rig.port, 1000, &link), -ENODEV);
	assert_int_equal(ixdp_stats_get(rig.port, &stats), -ENODEV);
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
	rig_close(&rig);
}

/* The caller goes on as if nothing were the matter, and gets all its buffers back. */
static void a_card_that_goes_in_the_middle_takes_no_buffer_along(void **state) {
	struct ixdp_pkt pkts[64], held[8];
	struct ixdp_stats stats;
	int n, taken = 0;

	(void)state;
	rig_open(&rig, ",fault=gone-after:100", NULL);
	while (ixdp_stats_get(rig.port, &stats) == 0) {
		assert_true(rig.next_in < 200);
		rig_inject(&rig, 60);
		n = rig_make(&rig, pkts, 1, 60, 0);
		ixdp_free(rig.pool, pkts, n - ixdp_tx(rig.port, 0, pkts, n));
		softnic_step(rig.nic, 64);
	}
	assert_int_equal(rig.sent, 50);
	assert_int_equal(ixdp_rx(rig.port, 0, held, 8), 8);
	while ((n = ixdp_rx(rig.port, 0, pkts, 64)) > 0)
		ixdp_free(rig.pool, pkts, n);
	do {
		n = rig_make(&rig, pkts, 64, 60, 0);
		taken = ixdp_tx(rig.port, 0, pkts, n);
		assert_true(taken >= 0);
		ixdp_free(rig.pool, &pkts[taken], n - taken);
		rig_run(&rig);
	} while (taken > 0);
	assert_int_equal(ixdp_tx_clean(rig.port, 0), 0);
	assert_int_equal(rig.sent, 50);
	ixdp_free(rig.pool, held, 8);
	rig_close(&rig);
}

static void address_can_be_set_and_filters(void **state) {
	static const uint8_t other[6] = {0x02, 0, 0, 0, 0, 0x42};
	static const uint8_t multicast[6] = {0x01, 0, 0x5E, 0, 0, 1}, zero[6];
	uint8_t mac[6], frame[60] = {0};
	struct ixdp_config cfg;
	struct ixdp_pkt pkts[8];

	(void)state;
	ixdp_config_init(&cfg);
	cfg.promiscuous = false;
	rig_open(&rig, ",mac=02:11:22:33:44:55", &cfg);
	ixdp_mac_get(rig.port, mac);
	assert_memory_equal(mac, ((uint8_t[]){0x02, 0x11, 0x22, 0x33, 0x44, 0x55}), 6);

	/* Ours, somebody else's, everybody's. */
	memcpy(frame, mac, 6);
	softnic_inject(rig.nic, frame, 60);
	memcpy(frame, other, 6);
	softnic_inject(rig.nic, frame, 60);
	memset(frame, 0xFF, 6);
	softnic_inject(rig.nic, frame, 60);
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 8), 2);
	assert_memory_equal(pkts[0].data, mac, 6);
	ixdp_free(rig.pool, pkts, 2);

	assert_int_equal(ixdp_mac_set(rig.port, multicast), -EINVAL);
	assert_int_equal(ixdp_mac_set(rig.port, zero), -EINVAL);
	assert_int_equal(ixdp_mac_set(rig.port, other), 0);
	ixdp_mac_get(rig.port, mac);
	assert_memory_equal(mac, other, 6);
	memcpy(frame, other, 6);
	softnic_inject(rig.nic, frame, 60);
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 8), 1);
	ixdp_free(rig.pool, pkts, 1);

	/* Promiscuous takes all; FCTRL changed only while nothing was received (strict checks). */
	memcpy(frame, multicast, 6);
	assert_int_equal(ixdp_promiscuous_set(rig.port, true), 0);
	softnic_inject(rig.nic, frame, 60);
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 8), 1);
	ixdp_free(rig.pool, pkts, 1);
	assert_int_equal(ixdp_promiscuous_set(rig.port, false), 0);
	softnic_inject(rig.nic, frame, 60);
	rig_run(&rig);
	assert_int_equal(ixdp_rx(rig.port, 0, pkts, 8), 0);
	rig_close(&rig);
}

/* DPDK 5168e13017 and its kin: totals must go on where 32 or 36 bits end. */
static void totals_are_wider_than_the_counters(void **state) {
	(void)state;
	rig_open(&rig, "", NULL);
	for (unsigned i = 1; i <= 3; i++) {
		/* 36 bits of octets: bytes and FCS of 4 billion frames of 12 B. */
		softnic_poke(rig.nic, REG_GPTC, 0xFFFFFFF0);
		softnic_poke(rig.nic, REG_GOTCL, 0xFFFFFF00);
		softnic_poke(rig.nic, REG_GOTCH, 0xF);
		struct ixdp_stats stats = rig_stats(&rig);

		assert_int_equal(stats.tx_packets, i * UINT64_C(0xFFFFFFF0));
		assert_int_equal(stats.tx_bytes,
				 i * (UINT64_C(0xFFFFFFF00) - 4 * UINT64_C(0xFFFFFFF0)));
	}
	/* Read twice, counted once. */
	softnic_poke(rig.nic, REG_MPC, 5);
	assert_int_equal(rig_stats(&rig).rx_missed, 5);
	assert_int_equal(rig_stats(&rig).rx_missed, 5);
	rig_close(&rig);
}

/* What the counters hold from an earlier life is not ours. */
static void counters_start_at_zero(void **state) {
	struct ixdp_port *port;
	struct ixdp_stats stats;

	(void)state;
	assert_int_equal(ixdp_open(&port, "soft:count,peer=gen,count=100", NULL), 0);
	assert_int_equal(ixdp_stats_get(port, &stats), 0);
	assert_int_equal(stats.tx_packets + stats.rx_packets + stats.rx_dropped, 0);
	ixdp_close(port);
}

static void pool_too_small_is_refused_with_numbers(void **state) {
	struct ixdp_config cfg;
	char needed[16];

	(void)state;
	ixdp_config_init(&cfg);
	snprintf(needed, sizeof(needed), "%u", ixdp_pool_needed(&cfg));
	assert_int_equal(rig_try_open(&rig, "", &cfg, ixdp_pool_needed(&cfg) - 1), -ENOBUFS);
	assert_non_null(strstr(ixdp_error(), needed));
}

static void nonsense_is_refused(void **state) {
	struct ixdp_config cfg;
	struct ixdp_port *port;

	(void)state;
	ixdp_config_init(&cfg);
	cfg.rx_queues = 17;
	assert_int_equal(rig_try_open(&rig, "", &cfg, 64), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "RX queues 17"));
	ixdp_config_init(&cfg);
	cfg.tx_queues = 129;
	assert_int_equal(rig_try_open(&rig, "", &cfg, 64), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "TX queues 129"));
	cfg.tx_queues = 1;
	cfg.threads = UINT32_MAX; /* the pool's size would wrap */
	assert_int_equal(rig_try_open(&rig, "", &cfg, 64), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "threads"));
	cfg.threads = 0;
	cfg.rx_queues = cfg.tx_queues = 0;
	assert_int_equal(rig_try_open(&rig, "", &cfg, 64), -EINVAL);
	assert_int_equal(ixdp_open(&port, "", NULL), -EINVAL);
	assert_int_equal(ixdp_open(&port, "soft:", NULL), -EINVAL);
	assert_int_equal(ixdp_open(&port, "eth0", NULL), -EINVAL);
	assert_true(strlen(ixdp_error()) > 0);
	assert_null(strchr(ixdp_error(), '\n'));
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(registers_are_as_the_datasheet_asks),
	    cmocka_unit_test(every_wait_has_a_limit_and_a_name),
	    cmocka_unit_test(slow_cards_are_waited_for),
	    cmocka_unit_test(closing_is_quiet_then_reset),
	    cmocka_unit_test(traffic_during_open_and_close),
	    cmocka_unit_test(opening_and_closing_leaks_nothing),
	    cmocka_unit_test(failing_to_open_leaks_nothing),
	    cmocka_unit_test(memory_may_be_scattered),
	    cmocka_unit_test(link_is_reported),
	    cmocka_unit_test(gone_devices_are_errors_not_endless_waits),
	    cmocka_unit_test(a_card_that_goes_in_the_middle_takes_no_buffer_along),
	    cmocka_unit_test(address_can_be_set_and_filters),
	    cmocka_unit_test(totals_are_wider_than_the_counters),
	    cmocka_unit_test(counters_start_at_zero),
	    cmocka_unit_test(pool_too_small_is_refused_with_numbers),
	    cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("device", tests, rig_group_setup, NULL);
}
