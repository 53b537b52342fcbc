/* SPDX-License-Identifier: BSD-3-Clause */
/* From a port's name to its wire: which kind peer= asks for, and which keys that kind has. */
#include "wire_kinds.h"

#include "../base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 6 };

struct kind {
	const char *name; /* first part of peer=; NULL where that is a port's name */
	unsigned args;	  /* how many parts may follow */
	const char *keys[MAX_KEYS + 1];
	int (*open)(struct wire **wire, const struct wire_request *request);
};

static const struct kind kinds[] = {
    {"gen", 0, {"rate", "size", "flows", "count", "drop", "stop"}, wire_gen_open},
    {"loop", 0, {NULL}, wire_loop_open},
    {"pcap", 2, {"rate"}, wire_pcap_open},
    {NULL, 0, {NULL}, wire_cable_open},
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static bool has_key(const struct kind *kind, const char *key) {
	for (const char *const *k = kind->keys; *k; k++) {
		if (strcmp(*k, key) == 0) return true;
	}
	return false;
}

bool wire_knows(const char *key) {
	for (unsigned i = 0; i < KINDS; i++) {
		if (has_key(&kinds[i], key)) return true;
	}
	return strcmp(key, "peer") == 0;
}

int wire_option_number(const struct wire_request *request, const char *key, uint64_t min,
		       uint64_t max, uint64_t *number) {
	const char *text = softnic_name_get(request->name, key);
	char *end;

	if (!text) return 0;
	*number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || *number < min || *number > max)
		return ixdp_fail(EINVAL, "soft:%s: %s=%.40s: must be a number from %llu to %llu",
				 request->name->name, key, text, (unsigned long long)min,
				 (unsigned long long)max);
	return 0;
}

int wire_option_rate(const struct wire_request *request, unsigned size, struct ixdp_rate *rate,
		     double *pps) {
	const char *text = softnic_name_get(request->name, "rate");
	char why[256];
	int err;

	if (!text) return 0;
	err = ixdp_rate_parse(text, rate);
	if (!err) err = ixdp_rate_pps(rate, size, pps);
	if (!err) return 0;
	strncpy(why, ixdp_error(), sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	return ixdp_fail(-err, "soft:%s: rate=: %s", request->name->name, why);
}

static const struct kind *find_kind(const char *peer) {
	const struct kind *kind = kinds;

	while (kind->name && (!peer || strcmp(kind->name, peer) != 0))
		kind++;
	return kind;
}

static int check_keys(const struct kind *kind, const struct wire_request *request) {
	for (unsigned i = 0; i < request->name->n_options; i++) {
		const char *key = request->name->options[i].key;

		if (!wire_knows(key) || has_key(kind, key) || strcmp(key, "peer") == 0) continue;
		return ixdp_fail(EINVAL, "soft:%s: %s= does not go with %s%s", request->name->name,
				 key, request->peer ? "peer=" : "a sink",
				 request->peer ? request->peer : "");
	}
	return 0;
}

int wire_open(struct wire **wire, struct softnic *nic, const struct softnic_name *name,
	      const uint8_t mac[6]) {
	struct wire_request request = {.name = name, .mac = mac};
	const char *peer = softnic_name_get(name, "peer");
	char *copy = peer ? strdup(peer) : NULL;
	char *parts[3] = {NULL, NULL, NULL};
	const struct kind *kind;
	int n = 0;
	int err;

	(void)nic; /* for wires that need more of it than its clock, which comes with each call */
	if (peer && !copy) return ixdp_fail(ENOMEM, "soft:%s: out of memory", name->name);
	if (peer) n = softnic_value_split(copy, parts, 3);
	request.peer = parts[0];
	request.args[0] = parts[1];
	request.args[1] = parts[2];
	kind = find_kind(request.peer);
	if (n < 0 || n - 1 > (int)kind->args ||
	    (peer && !kind->name && softnic_port_word(request.peer)))
		err = ixdp_fail(EINVAL,
				"soft:%s: peer=%.200s: must be another port's NAME, gen, loop or "
				"pcap:IN[:OUT]",
				name->name, peer);
	else
		err = check_keys(kind, &request);
	if (!err) err = kind->open(wire, &request);
	free(copy);
	return err;
}
