/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checking sinks, and the generators of this process. A sink finds gaps by itself; that the last
 * frames of a generator never came, it knows only because the generator tells how many there were.
 */
#include "wire_kinds.h"

#include "checker.h"

#include "../base/error.h"

#include <errno.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wire_sink *sinks;
static struct wire_source *sources;

int wire_sink_open(struct wire_sink *sink) {
	sink->checker = ixdp_frame_checker_new();
	if (!sink->checker) return ixdp_fail(ENOMEM, "wire: no memory for a checking sink");
	pthread_mutex_lock(&lock);
	sink->next = sinks;
	sinks = sink;
	pthread_mutex_unlock(&lock);
	return 0;
}

void wire_sink_close(struct wire_sink *sink) {
	struct wire_sink **at = &sinks;

	pthread_mutex_lock(&lock);
	while (*at != sink)
		at = &(*at)->next;
	*at = sink->next;
	for (struct wire_source *source = sources; source; source = source->next)
		source->accounted += checker_accounted(sink->checker, source->generator);
	pthread_mutex_unlock(&lock);
	ixdp_frame_checker_free(sink->checker);
}

void wire_source_add(struct wire_source *source) {
	pthread_mutex_lock(&lock);
	source->next = sources;
	sources = source;
	pthread_mutex_unlock(&lock);
}

void wire_source_remove(struct wire_source *source) {
	struct wire_source **at = &sources;

	pthread_mutex_lock(&lock);
	while (*at != source)
		at = &(*at)->next;
	*at = source->next;
	pthread_mutex_unlock(&lock);
}

/*
 * Frames that a generator handed out last and that no sink has accounted for, if it is this sink
 * that reports them: of all that saw the generator the first in the list, so that they count once.
 */
static uint64_t lost_at_the_end(const struct wire_source *source, const struct wire_sink *sink) {
	const struct wire_sink *reporter = NULL;
	uint64_t accounted = source->accounted;
	uint64_t handed;

	if (!__atomic_load_n(&source->done, __ATOMIC_RELAXED)) return 0;
	for (const struct wire_sink *s = sinks; s; s = s->next) {
		uint64_t n = checker_accounted(s->checker, source->generator);

		if (n > 0 && !reporter) reporter = s;
		accounted += n;
	}
	if (sink != (reporter ? reporter : source->home)) return 0;
	handed = __atomic_load_n(&source->handed, __ATOMIC_RELAXED);
	return handed > accounted ? handed - accounted : 0;
}

void wire_sink_stats(const struct wire_sink *sink, struct ixdp_wire_stats *stats) {
	struct ixdp_frame_counts counts;

	ixdp_frame_checker_counts(sink->checker, &counts);
	stats->lost = counts.lost;
	stats->misordered = counts.misordered;
	stats->corrupt = counts.corrupt;
	stats->foreign = counts.foreign;
	pthread_mutex_lock(&lock);
	for (const struct wire_source *source = sources; source; source = source->next)
		stats->lost += lost_at_the_end(source, sink);
	pthread_mutex_unlock(&lock);
}
