/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The register of plugged-in ports. It keeps what everyday cables keep by their nature: two ends, a
 * port at each, and no port in two of them.
 */
#include "wire_kinds.h"

#include "../base/error.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wire_plug *plugs;

static bool named(const char *name, const char *other) { return strcmp(name, other) == 0; }

/* Whether a port that is there already stands in the way of a new one. */
static int conflict(const struct wire_plug *plug, const struct wire_plug *there) {
	if (named(plug->name, there->name))
		return ixdp_fail(EBUSY, "soft:%s: a port of this name is open: choose another",
				 plug->name);
	if (named(there->peer, plug->name) &&
	    (!plug->cable || (plug->peer[0] && !named(plug->peer, there->name))))
		return ixdp_fail(EBUSY,
				 "soft:%s: port %s is cabled to it: leave peer= out or name that "
				 "port",
				 plug->name, there->name);
	if (!plug->peer[0]) return 0;
	if (named(there->peer, plug->peer))
		return ixdp_fail(EBUSY, "soft:%s: peer=%s: port %s is cabled to that port",
				 plug->name, plug->peer, there->name);
	if (named(there->name, plug->peer) && !there->cable)
		return ixdp_fail(EBUSY, "soft:%s: peer=%s: that port has a wire of another kind",
				 plug->name, plug->peer);
	if (named(there->name, plug->peer) && there->peer[0] && !named(there->peer, plug->name))
		return ixdp_fail(EBUSY, "soft:%s: peer=%s: that port is cabled to port %s",
				 plug->name, plug->peer, there->peer);
	return 0;
}

int wire_plug_in(struct wire_plug *plug) {
	struct wire_plug *other = NULL;
	int err = 0;

	pthread_mutex_lock(&lock);
	for (struct wire_plug *there = plugs; there && !err; there = there->next) {
		err = conflict(plug, there);
		if (named(there->peer, plug->name) || named(there->name, plug->peer)) other = there;
	}
	if (!err) {
		plug->next = plugs;
		plugs = plug;
	}
	if (!err && other) {
		wire_cable_connect(plug->cable, other->cable);
		wire_cable_connect(other->cable, plug->cable);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void wire_plug_out(struct wire_plug *plug) {
	struct wire_plug **at = &plugs;

	pthread_mutex_lock(&lock);
	while (*at != plug)
		at = &(*at)->next;
	*at = plug->next;
	if (plug->cable) wire_cable_disconnect(plug->cable);
	pthread_mutex_unlock(&lock);
}
