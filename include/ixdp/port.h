/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports: opening a NIC, receiving and sending packets, link, addresses.
 */
#pragma once

#include "packet.h"
#include "stats.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ixdp_port;

enum {
	IXDP_MIN_RING = 64,   /* descriptors */
	IXDP_MAX_RING = 4096, /* descriptors */
	IXDP_MAX_RX_QUEUES = 16,
	IXDP_MAX_TX_QUEUES = 128,
	IXDP_MAX_THREADS = 65536, /* of ixdp_config.threads, ixdp_xdp_workers() */
	IXDP_MIN_MTU = 68, /* bytes behind the Ethernet header: the least that IPv4 can do with */
	IXDP_MAX_MTU = 9000,
	IXDP_MAX_ELEMENTS = 40, /* of a frame that is sent, on a port for jumbo frames */
	IXDP_NAME_MAX = 64,	/* bytes of a port's short name, its NUL included */
};

/* What the NIC does to received frames: ixdp_config.offloads. */
enum {
	IXDP_OFFLOAD_VLAN_STRIP = 1u << 0, /* takes VLAN tags off: IXDP_PKT_VLAN */
	IXDP_OFFLOAD_CSUM = 1u << 1,	   /* looks at checksums: IXDP_PKT_IP_CSUM_GOOD ... */
};

/* Flow control by PAUSE frames, IEEE 802.3x: ixdp_config.pause. */
enum {
	IXDP_PAUSE_RX = 1u << 0, /* stop sending when the peer asks for it */
	/*
	 * Ask the peer to stop when the NIC's packet buffer fills up. Frames then wait for
	 * descriptors instead of being dropped, so that one queue which nobody polls stops all.
	 */
	IXDP_PAUSE_TX = 1u << 1,
};

/*
 * Of what frames the hash is made, and of what: the addresses of IP, and with TCP and UDP the
 * ports. Fragments have no ports: if they come amid whole packets of a flow, leave its _TCP_ or
 * _UDP_ type out, or they may overtake each other.
 */
enum {
	IXDP_RSS_TCP_IPV4 = 1u << 1, /* numbered as in the descriptors, section 7.1.6.2 */
	IXDP_RSS_IPV4 = 1u << 2,     /* any IPv4 packet that is not of a type above */
	IXDP_RSS_TCP_IPV6 = 1u << 3,
	IXDP_RSS_IPV6 = 1u << 5,
	IXDP_RSS_UDP_IPV4 = 1u << 7,
	IXDP_RSS_UDP_IPV6 = 1u << 8,
	IXDP_RSS_ALL = 0x1AE,
};

enum { IXDP_RSS_KEY = 40, IXDP_RSS_TABLE = 128 };

/*
 * Receive side scaling, section 7.1.2.8: a Toeplitz hash of a frame's addresses chooses its RX
 * queue. Frames that it does not cover go to queue 0.
 */
struct ixdp_rss {
	uint8_t key[IXDP_RSS_KEY];
	uint8_t table[IXDP_RSS_TABLE]; /* queue of each value of the hash's low 7 bits (RETA) */
	unsigned types;		       /* IXDP_RSS_IPV4 and so on; 0: nothing is hashed */
};

/* How a port shall be. Set it up with ixdp_config_init(), then change what shall differ. */
struct ixdp_config {
	unsigned rx_queues; /* 0 to IXDP_MAX_RX_QUEUES; 0: the port only sends */
	/*
	 * 0 to IXDP_MAX_TX_QUEUES; 0: the port only receives. Above 64 the NIC works in another
	 * mode (section 7.2.1.2.1), which was never tried on silicon.
	 */
	unsigned tx_queues;
	/*
	 * TX queues for XDP behind those, see ixdp_xdp_open(), and how many threads use the port if
	 * that is more than one a queue: their packets count in ixdp_pool_needed().
	 */
	unsigned xdp_queues, threads;
	unsigned rx_ring; /* descriptors of each: a power of two, IXDP_MIN_RING to IXDP_MAX_RING */
	unsigned tx_ring; /* likewise */
	/*
	 * Bytes behind the Ethernet header, IXDP_MIN_MTU to IXDP_MAX_MTU: longer frames are not
	 * received. Above 2,030, frames may come in several elements.
	 */
	unsigned mtu;
	unsigned offloads;	    /* IXDP_OFFLOAD_* */
	unsigned pause;		    /* IXDP_PAUSE_* */
	const struct ixdp_rss *rss; /* NULL: all types, evenly over all RX queues; not kept */
	bool promiscuous;	    /* take frames for any address: ixdp_filters_set() */
	bool loopback; /* the NIC receives what it sends, and nothing else: no link needed */
	bool force;    /* take a NIC although its interface is up or another driver holds it */
	struct ixdp_pool *pool; /* buffers for all queues; NULL: the pool that the process shares */
};

/*
 * Defaults: one RX and one TX queue of 512 descriptors, MTU 1,500, promiscuous, no offloads, no
 * flow control, the process's pool.
 */
IXDP_API void ixdp_config_init(struct ixdp_config *cfg);

/*
 * How many buffers a port of this configuration can hold at once, what its callers and the
 * caches of one thread a queue hold included: below that a pool could run dry for good.
 */
IXDP_API unsigned ixdp_pool_needed(const struct ixdp_config *cfg);

/*
 * Opens a NIC: takes it over, resets it, sets up its rings, enables it. Link may come up later.
 * port: receives it.
 * name: a PCI address ("0000:03:00.0", "03:00.0") or a software port ("soft:NAME[,key=value...]").
 * cfg: NULL for the defaults; not kept.
 * Returns 0, or -errno with ixdp_error() saying what failed, where, and what to do; nothing is left
 * changed then: -EINVAL (name or configuration), -ENODEV (no such device, not an 82599, does not
 * answer), -EBUSY (in use: see force), -EACCES or -EPERM (privileges), -ENOMEM, -ENOBUFS (pool too
 * small), -ETIMEDOUT (the card did not do what it must; register and bit are named), -EIO.
 */
IXDP_API int ixdp_open(struct ixdp_port **port, const char *name, const struct ixdp_config *cfg);

/*
 * Stops the NIC, waits (bounded) until it is quiet, returns all buffers of its rings to the pool,
 * gives the device back to the driver that had it. No other thread may use the port any more.
 */
IXDP_API void ixdp_close(struct ixdp_port *port);

/*
 * Stops the NIC and takes all buffers out of its rings; frames under way are lost. Until
 * ixdp_start(), receiving and sending return -ENETDOWN, and settings may be changed. Everything
 * that was set stays so, and so do the statistics. No other thread may use the port meanwhile.
 * Returns 0, or -EIO when the NIC can be stopped by nothing; it keeps its buffers then, but its
 * queues may be off. From an XDP program, likewise.
 */
IXDP_API int ixdp_stop(struct ixdp_port *port);

/*
 * Starts a stopped port, as ixdp_open() does. Returns 0, or -errno as there; the port then is still
 * stopped, and may be started again. A port that runs is left as it is.
 */
IXDP_API int ixdp_start(struct ixdp_port *port);

/*
 * Changes ixdp_config.mtu, .pause. A port that runs is stopped and started for it, see there.
 * -EINVAL: no such MTU or flow control; nothing has changed then.
 */
IXDP_API int ixdp_mtu_set(struct ixdp_port *port, unsigned mtu);
IXDP_API int ixdp_pause_set(struct ixdp_port *port, unsigned pause);

/* What the port is like now, rss NULL. Any thread, while none changes it. */
IXDP_API void ixdp_config_get(const struct ixdp_port *port, struct ixdp_config *cfg);

/*
 * Receives packets. Never waits.
 * pkts: n elements to fill; the buffers are the caller's afterwards, to be sent or freed. A frame
 * is there with all of its elements or not at all; the array has room for one of the largest: 1
 * element up to an MTU of 2,030, 5 for 9,000.
 * Returns the number of elements filled, in order of arrival; 0 when there is nothing;
 * -EINVAL for a queue that the port does not have; -EMSGSIZE: n, if not 0, is too small for the
 * MTU; -ENETDOWN: the port is stopped. One thread at a time per queue.
 */
IXDP_API int ixdp_rx(struct ixdp_port *port, unsigned queue, struct ixdp_pkt *pkts, unsigned n);

/* The RSS hash of a frame. */
struct ixdp_rx_hash {
	uint32_t hash;
	uint32_t type; /* one of IXDP_RSS_*; 0: there is none */
};

/*
 * As ixdp_rx(), and fills hashes[i] for each frame whose first element is pkts[i]. It costs those
 * who do not call it nothing.
 */
IXDP_API int ixdp_rx_hashed(struct ixdp_port *port, unsigned queue, struct ixdp_pkt *pkts,
			    struct ixdp_rx_hash *hashes, unsigned n);

/*
 * Sends packets. Never waits.
 * pkts: n elements. Buffers must come from the port's pool; whole frames only. A frame has up to
 * IXDP_MAX_ELEMENTS elements on a port whose MTU is above 2,030, else up to 9; one less if its
 * flags ask for something.
 * Returns how many elements were taken, from the front: those are the port's and return to the pool
 * when sent. The rest stays the caller's. Fewer than n: the ring is full, or a frame is at fault.
 * -EINVAL: no such queue; or the first frame is at fault: it has less than 17 bytes (the NIC pads
 * to 60, but not from less) or more than IXDP_MAX_MTU + 18, too many elements, an empty one or one
 * that ends behind its buffer (headroom + len above IXDP_HEADROOM + IXDP_DATA_SIZE), no last one. A
 * later one at fault ends the batch in front of it. IXDP_PKT_IP_CSUM, IXDP_PKT_L4_CSUM: the frame
 * is Ethernet (one VLAN tag at most) and IPv4 or IPv6 without extension headers, its headers all in
 * the first element; and for the latter flag no fragment, and no longer than IP says, but for
 * padding of zeros behind TCP and UDP; else it is at fault. The latter changes the frame: the NIC
 * adds to what ixdp_tx() writes into the checksum field. A flag without anything to fill in (IPv6
 * has no checksum) is ignored. -ENETDOWN: the port is stopped. One thread at a time per queue.
 */
IXDP_API int ixdp_tx(struct ixdp_port *port, unsigned queue, const struct ixdp_pkt *pkts,
		     unsigned n);

/*
 * Returns to the pool what the queue has sent by now, the last few packets included, which an idle
 * queue otherwise keeps (up to 31) until the next send. Reads a register: not for every batch.
 * Returns how many elements, or -EINVAL. One thread at a time per queue, sending included.
 */
IXDP_API int ixdp_tx_clean(struct ixdp_port *port, unsigned queue);

/* The port's short name: the PCI address in full, or a software port's name without options. */
IXDP_API const char *ixdp_port_name(const struct ixdp_port *port);

/* The pool that the port's buffers come from. */
IXDP_API struct ixdp_pool *ixdp_port_pool(const struct ixdp_port *port);

struct ixdp_link {
	bool up;
	bool paused;   /* the peer has asked us not to send (IXDP_PAUSE_RX) */
	unsigned mbps; /* Mbit/s; 0 when down */
};

/* Link state now (LINKS, section 8.2.3.22.20). Any thread. Returns 0, or -ENODEV (NIC gone). */
IXDP_API int ixdp_link_get(struct ixdp_port *port, struct ixdp_link *link);

/*
 * Waits until link is up, at most timeout_ms milliseconds. Any thread.
 * Returns 0 (link is filled), -ETIMEDOUT (still down), or -ENODEV.
 */
IXDP_API int ixdp_link_wait(struct ixdp_port *port, unsigned timeout_ms, struct ixdp_link *link);

/*
 * Whether the link has changed since the last call: 1 or 0, link is filled; or -ENODEV. A link that
 * went down and came back in between counts too, and is up then. It reads registers: call it every
 * 100 ms, not for every batch. One thread at a time.
 */
IXDP_API int ixdp_link_changed(struct ixdp_port *port, struct ixdp_link *link);

/* The RSS configuration, a stopped port's included. Any thread, while none changes it. */
IXDP_API void ixdp_rss_get(const struct ixdp_port *port, struct ixdp_rss *rss);

/*
 * Changes it; reception pauses meanwhile. One thread at a time. Returns 0; -EINVAL: a queue in the
 * table that the port does not have, or an unknown type, and nothing has changed; -ETIMEDOUT or
 * -ENODEV: reception did not pause, the change comes with the next start.
 */
IXDP_API int ixdp_rss_set(struct ixdp_port *port, const struct ixdp_rss *rss);

enum { IXDP_MAX_UNICAST = 127 }; /* addresses beside the port's own */

/*
 * Which frames a port takes: those for its own address (ixdp_mac_set()), and what is said here.
 * Arrays are the caller's, and not kept.
 */
struct ixdp_filters {
	bool promiscuous;	     /* any address; VLANs are filtered all the same */
	bool all_multicast;	     /* any group */
	bool no_broadcast;	     /* no broadcasts, unless promiscuous */
	bool vlan_filter;	     /* of frames with a VLAN tag only those of `vlans` */
	const uint8_t (*unicast)[6]; /* further addresses, up to IXDP_MAX_UNICAST */
	unsigned n_unicast;
	const uint8_t (*multicast)[6]; /* groups, any number; by a hash, so others may come too */
	unsigned n_multicast;
	const uint16_t *vlans; /* 0 to 4095; 0 is for frames with a priority only */
	unsigned n_vlans;
};

/*
 * Replaces all filters. Reception pauses for the change (section 8.2.3.7.1). One thread at a time.
 * Returns 0; -EINVAL: an address of the wrong kind, or no VLAN; -ENOSPC: too many addresses; then
 * nothing has changed; -ETIMEDOUT or -ENODEV: as ixdp_rss_set().
 */
IXDP_API int ixdp_filters_set(struct ixdp_port *port, const struct ixdp_filters *filters);

/* Changes `promiscuous` alone. Reception pauses. One thread at a time. 0 or -errno. */
IXDP_API int ixdp_promiscuous_set(struct ixdp_port *port, bool on);

/* The port's address: receive address 0. Any thread. */
IXDP_API void ixdp_mac_get(const struct ixdp_port *port, uint8_t mac[6]);

/*
 * Sets the port's address until it is closed; the permanent one returns then. One thread at a time.
 * Returns 0, or -EINVAL for a multicast address or zero.
 */
IXDP_API int ixdp_mac_set(struct ixdp_port *port, const uint8_t mac[6]);

#ifdef __cplusplus
}
#endif
