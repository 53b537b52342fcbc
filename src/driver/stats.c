/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics, section 8.2.3.23. The NIC's counters clear when read and are 32 bits wide (36 for
 * octets), which a 10 Gbit/s line fills in minutes: each read adds to 64-bit totals, under a lock,
 * so that there is one reader at a time and nothing is counted twice.
 */
#include "port.h"

#include <errno.h>

/* 36 bits: the low word first. In two statements: C leaves the order of operands open. */
static uint64_t read36(struct ixdp_port *port, uint32_t low_reg) {
	uint64_t low = reg_read(port, low_reg);
	uint64_t high = reg_read(port, low_reg + 4) & 0xF;
	return high << 32 | low;
}

/* Adds what the NIC has counted since the last time. Called under the lock. */
static void collect(struct ixdp_port *port) {
	struct ixdp_stats *totals = &port->totals;
	uint64_t sent = reg_read(port, REG_GPTC);

	/* Octets count the FCS of each frame that was sent, so the two are read together. */
	totals->tx_packets += sent;
	totals->tx_bytes += read36(port, REG_GOTCL) - 4 * sent;
	totals->rx_missed += reg_read(port, REG_MPC);
	for (unsigned q = 0; q < port->cfg.rx_queues; q++)
		totals->rx_no_desc += reg_read(port, REG_N(QPRDC, q));
	totals->rx_crc += reg_read(port, REG_CRCERRS);
	totals->rx_undersize += reg_read(port, REG_RUC);
	totals->rx_oversize += reg_read(port, REG_ROC);
}

void stats_collect(struct ixdp_port *port) {
	pthread_mutex_lock(&port->stats_lock);
	collect(port);
	pthread_mutex_unlock(&port->stats_lock);
}

/* What they hold now is not ours. */
void stats_init(struct ixdp_port *port) {
	struct ixdp_stats totals = port->totals;
	stats_collect(port);
	port->totals = totals;
}

int ixdp_stats_get(struct ixdp_port *port, struct ixdp_stats *stats) {
	/* All ones would be added up as counts. */
	if (reg_read(port, REG_STATUS) == UINT32_MAX)
		return ixdp_fail(ENODEV, "%s: device has gone: STATUS reads 0xffffffff",
				 port->bus->name);
	pthread_mutex_lock(&port->stats_lock);
	collect(port);
	*stats = port->totals;
	pthread_mutex_unlock(&port->stats_lock);

	for (const struct rx_ring *rx = port->rx; rx < port->rx + port->cfg.rx_queues; rx++) {
		stats->rx_packets += counter_get(&rx->packets);
		stats->rx_bytes += counter_get(&rx->bytes);
		stats->rx_oversize += counter_get(&rx->oversize);
		stats->rx_len_zero += counter_get(&rx->len_zero);
		stats->rx_errors += counter_get(&rx->errors);
		stats->rx_nobuf += counter_get(&rx->nobuf);
	}
	for (unsigned q = 0; q < port->cfg.tx_queues; q++)
		stats->tx_taken += counter_get(&port->tx[q].taken);
	stats->rx_dropped = stats->rx_missed + stats->rx_no_desc + stats->rx_crc +
			    stats->rx_undersize + stats->rx_oversize + stats->rx_len_zero +
			    stats->rx_errors;
	return 0;
}
