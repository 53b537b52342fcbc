/* SPDX-License-Identifier: BSD-3-Clause */
/* The pool that ports share which were given none. */
#include "base/error.h"
#include "pool.h"

#include <pthread.h>

static struct {
	pthread_mutex_t lock;
	struct ixdp_pool *pool;
	unsigned references;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

int pool_default(struct ixdp_pool **pool, unsigned needed, int numa_node, bool ordinary) {
	struct ixdp_pool_config cfg = {2 * needed, numa_node, ordinary};
	int err = 0;

	pthread_mutex_lock(&shared.lock);
	if (!shared.references)
		err = ixdp_pool_create(&shared.pool, &cfg);
	if (!err) {
		shared.references++;
		*pool = shared.pool;
	}
	pthread_mutex_unlock(&shared.lock);
	return err;
}

void pool_default_put(struct ixdp_pool *pool) {
	pthread_mutex_lock(&shared.lock);
	if (--shared.references == 0 && ixdp_pool_destroy(pool))
		ixdp_log(IXDP_LOG_WARNING, "%s; then call ixdp_pool_destroy()", ixdp_error());
	pthread_mutex_unlock(&shared.lock);
}
