/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics, section 8.2.3.23. The NIC's counters clear when read and are 32 bits wide (36 for
 * octets), which a 10 Gbit/s line fills in minutes: each read adds to 64-bit totals, under a lock,
 * so that there is one reader at a time and nothing is counted twice.
 */
#include "port.h"

#include <errno.h>

enum { FCS = 4 };

/* 36 bits: the low word first, which latches the high one; in two statements, as C orders no
 * operands. */
static uint64_t read36(struct ixdp_port *port, uint32_t low_reg) {
	uint64_t low = reg_read(port, low_reg);
	uint64_t high = reg_read(port, low_reg + 4) & 0xF;

	return high << 32 | low;
}

/* Adds what the NIC has counted since the last time. Called under the lock. */
static void collect(struct ixdp_port *port) {
	struct hw_totals *totals = &port->totals;
	uint64_t sent = reg_read(port, REG_GPTC);

	/* Octets count the FCS of each frame that was sent, so the two are read together. */
	totals->tx_packets += sent;
	totals->tx_bytes += read36(port, REG_GOTCL) - FCS * sent;
	totals->missed += reg_read(port, REG_MPC);
	for (unsigned q = 0; q < port->rx_queues; q++)
		totals->no_desc += reg_read(port, REG_N(QPRDC, q));
	totals->crc += reg_read(port, REG_CRCERRS);
	totals->undersize += reg_read(port, REG_RUC);
	totals->oversize += reg_read(port, REG_ROC);
}

void stats_clear(struct ixdp_port *port) {
	pthread_mutex_lock(&port->stats_lock);
	collect(port);
	port->totals = (struct hw_totals){0};
	pthread_mutex_unlock(&port->stats_lock);
}

static uint64_t counter_get(const uint64_t *counter) {
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

int ixdp_stats_get(struct ixdp_port *port, struct ixdp_stats *stats) {
	/* All ones would be added up as counts. */
	if (reg_read(port, REG_STATUS) == UINT32_MAX)
		return ixdp_fail(ENODEV, "%s: device has gone: STATUS reads 0xffffffff",
				 port->bus->name);

	pthread_mutex_lock(&port->stats_lock);
	collect(port);

	const struct hw_totals *totals = &port->totals;

	*stats = (struct ixdp_stats){
	    .tx_packets = totals->tx_packets,
	    .tx_bytes = totals->tx_bytes,
	    .rx_missed = totals->missed,
	    .rx_no_desc = totals->no_desc,
	    .rx_crc = totals->crc,
	    .rx_undersize = totals->undersize,
	    .rx_oversize = totals->oversize,
	};
	pthread_mutex_unlock(&port->stats_lock);

	for (unsigned q = 0; q < port->rx_queues; q++) {
		const struct rx_ring *ring = &port->rx[q];

		stats->rx_packets += counter_get(&ring->packets);
		stats->rx_bytes += counter_get(&ring->bytes);
		stats->rx_oversize += counter_get(&ring->oversize);
		stats->rx_len_zero += counter_get(&ring->len_zero);
		stats->rx_errors += counter_get(&ring->errors);
		stats->rx_nobuf += counter_get(&ring->nobuf);
	}
	for (unsigned q = 0; q < port->tx_queues; q++)
		stats->tx_taken += counter_get(&port->tx[q].taken);
	stats->rx_dropped = stats->rx_missed + stats->rx_no_desc + stats->rx_crc +
			    stats->rx_undersize + stats->rx_oversize + stats->rx_len_zero +
			    stats->rx_errors;
	return 0;
}
