/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is plugged into a software NIC: a generator, a loop, capture files, a cable to another NIC,
 * or nothing but a checking sink. The NIC calls its wire under the NIC's lock; a wire that reaches
 * another NIC (the cable) uses that NIC's receive queue, which has a lock of its own.
 */
#pragma once

#include <ixdp/wire.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire;

struct wire_ops {
	/*
	 * The frame that is next to arrive at the NIC, if one is due at now_ns; NULL if not. It
	 * stays valid, and the same, until pop. len without FCS. bad_crc: it arrives damaged.
	 */
	const uint8_t *(*peek)(struct wire *wire, uint64_t now_ns, size_t *len, bool *bad_crc);
	/* The NIC has taken, filtered or dropped the frame. */
	void (*pop)(struct wire *wire);
	/* A frame leaves the NIC (padded, without FCS). False: the wire cannot take it now, hold
	 * it. */
	bool (*send)(struct wire *wire, const uint8_t *frame, size_t len, uint64_t now_ns);
	/*
	 * Frames that came for the NIC since the last call and found the wire's own queue full: the
	 * NIC counts them as missed (MPC). NULL where there is no such queue.
	 */
	uint64_t (*missed)(struct wire *wire);
	/*
	 * Fills all of stats but `drained`, which stays false: for that the NIC looks at itself,
	 * and at whether peek has a frame. What generators handed out last is lost as long as it is
	 * under way: a total is right once every port has drained.
	 */
	void (*stats)(struct wire *wire, struct ixdp_wire_stats *stats);
	/* The source stops: a frame that peek has shown may no longer be there. NULL: no source. */
	void (*stop)(struct wire *wire);
	void (*close)(struct wire *wire);
};

/* Each kind embeds it as its first member. */
struct wire {
	const struct wire_ops *ops;
	/*
	 * True: a frame that finds no room in the NIC waits on the wire (a generator with drop=off,
	 * a capture file). False: it is dropped and counted, as on a real cable.
	 */
	bool waits;
};

/* One key=value of a port name, backslashes resolved but in peer= and fault=, which are split. */
struct softnic_option {
	char *key;
	char *value;
};

/* "NAME[,key=value...]" in parts. */
struct softnic_name {
	char name[IXDP_NAME_MAX];
	struct softnic_option *options;
	unsigned n_options;
	char *text; /* what the options point into */
};

/* Splits it; softnic_name_free() frees the parts. 0, or -EINVAL or -ENOMEM with ixdp_error(). */
int softnic_name_parse(struct softnic_name *parsed, const char *text);
void softnic_name_free(struct softnic_name *parsed);

/* The value of a key (the only one: a repeated key is refused by the parser), or NULL. */
const char *softnic_name_get(const struct softnic_name *parsed, const char *key);

/*
 * Splits a value at unescaped colons in place and resolves backslashes. Returns how many parts, or
 * -EINVAL when they are more than max.
 */
int softnic_value_split(char *value, char **parts, unsigned max);

/*
 * Makes the wire that peer=, rate=, size=, flows=, count=, drop= describe; a sink without peer=.
 * Refuses keys that its kind does not know, naming key and kind. mac: the NIC's address, to which a
 * generator sends. 0 or -errno with ixdp_error().
 */
struct softnic;
int wire_open(struct wire **wire, struct softnic *nic, const struct softnic_name *name,
	      const uint8_t mac[6]);

/* Keys that belong to wires: the NIC refuses what neither it nor wires know. */
bool wire_knows(const char *key);
