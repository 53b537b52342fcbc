/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequence numbers, followed per generator and flow. What arrives may be anything, so memory is
 * bounded, and so is what one frame can add to a count.
 */
#include "checker.h"

#include "../base/error.h"

#include <stdlib.h>

enum {
	BLOCK_FLOWS = 256, /* flows whose state is allocated together */
	BLOCKS = IXDP_FRAME_MAX_FLOWS / BLOCK_FLOWS,
	MAX_BLOCKS = 4096, /* of all generators: 2^20 flows, 16 MB */
	GENERATORS = 65536,
	WINDOW = 64,
};

/* Further than this ahead or behind, a number is no gap but a new start: 5 minutes of line rate. */
#define MAX_JUMP (UINT64_C(1) << 32)

/* Further than that from every number that occurs: the next frame is a new start. */
#define ANYWHERE (UINT64_C(1) << 63)

struct flow {
	uint64_t next;	 /* the number expected */
	uint64_t window; /* bit i: next - 1 - i was seen, or is not awaited */
};

struct generator {
	uint64_t
	    seen; /* stored and loaded atomically: checker_accounted() is called by any thread */
	uint64_t lost;
	struct flow *blocks[BLOCKS];
};

struct ixdp_frame_checker {
	struct ixdp_frame_counts counts;
	unsigned blocks;
	uint64_t first; /* what a new flow expects: 0, or ANYWHERE */
	struct generator *generators[GENERATORS];
};

struct ixdp_frame_checker *ixdp_frame_checker_new(void) {
	return calloc(1, sizeof(struct ixdp_frame_checker));
}

void ixdp_frame_checker_free(struct ixdp_frame_checker *checker) {
	if (!checker) return;
	for (unsigned g = 0; g < GENERATORS; g++) {
		if (!checker->generators[g]) continue;
		for (unsigned b = 0; b < BLOCKS; b++)
			free(checker->generators[g]->blocks[b]);
		free(checker->generators[g]);
	}
	free(checker);
}

static struct flow *new_block(struct ixdp_frame_checker *checker) {
	struct flow *block;

	if (checker->blocks == MAX_BLOCKS) return NULL;
	block = malloc(BLOCK_FLOWS * sizeof(*block));
	if (!block) return NULL;
	checker->blocks++;
	for (unsigned i = 0; i < BLOCK_FLOWS; i++)
		block[i] = (struct flow){.next = checker->first, .window = UINT64_MAX};
	return block;
}

/* NULL: no memory for it, or all that the checker may have is in use. */
static struct flow *find_flow(struct ixdp_frame_checker *checker, const struct ixdp_frame_id *id) {
	struct generator *generator = checker->generators[id->generator];
	struct flow **block;

	if (unlikely(!generator)) {
		if (checker->blocks == MAX_BLOCKS) return NULL;
		generator = calloc(1, sizeof(*generator));
		if (!generator) return NULL;
		/* Pairs with the acquire in load_generator(): the zeroes come first. */
		__atomic_store_n(&checker->generators[id->generator], generator, __ATOMIC_RELEASE);
	}
	block = &generator->blocks[id->flow / BLOCK_FLOWS];
	if (unlikely(!*block)) *block = new_block(checker);
	return *block ? &(*block)[id->flow % BLOCK_FLOWS] : NULL;
}

/* This thread alone writes the count, others read it. */
static void add(uint64_t *count, uint64_t n) {
	__atomic_store_n(count, *count + n, __ATOMIC_RELAXED);
}

/* A frame whose number is behind the expected one. */
static void follow_late(struct ixdp_frame_counts *counts, struct generator *generator,
			struct flow *flow, uint64_t behind) {
	uint64_t bit = UINT64_C(1) << (behind % WINDOW);

	if (behind < WINDOW && flow->window & bit) {
		counts->duplicated++;
		return;
	}
	counts->misordered++;
	if (behind >= WINDOW) return;
	flow->window |= bit;
	counts->lost--;
	add(&generator->lost, -UINT64_C(1));
	add(&generator->seen, 1);
}

static void follow(struct ixdp_frame_counts *counts, struct generator *generator, struct flow *flow,
		   uint64_t seq) {
	uint64_t ahead = seq - flow->next;
	uint64_t behind = flow->next - 1 - seq;

	if (likely(ahead == 0)) {
		flow->window = flow->window << 1 | 1;
	} else if (ahead < MAX_JUMP) {
		flow->window = ahead + 1 < WINDOW ? flow->window << (ahead + 1) | 1 : 1;
		counts->lost += ahead;
		add(&generator->lost, ahead);
	} else if (behind < MAX_JUMP) {
		follow_late(counts, generator, flow, behind);
		return;
	} else {
		flow->window = UINT64_MAX;
	}
	flow->next = seq + 1;
	add(&generator->seen, 1);
}

void ixdp_frame_check(struct ixdp_frame_checker *checker, const uint8_t *data, size_t len) {
	struct ixdp_frame_counts *counts = &checker->counts;
	struct ixdp_frame_id id;
	struct flow *flow;

	counts->frames++;
	counts->bytes += len;
	switch (ixdp_frame_read(data, len, &id)) {
	case IXDP_FRAME_GOOD:
		counts->good++;
		flow = find_flow(checker, &id);
		if (flow) follow(counts, checker->generators[id.generator], flow, id.seq);
		break;
	case IXDP_FRAME_FOREIGN:
		counts->foreign++;
		break;
	case IXDP_FRAME_CORRUPT:
		counts->corrupt++;
		break;
	}
}

void ixdp_frame_checker_counts(const struct ixdp_frame_checker *checker,
			       struct ixdp_frame_counts *counts) {
	*counts = checker->counts;
}

static const struct generator *load_generator(const struct ixdp_frame_checker *checker,
					      uint16_t generator) {
	return __atomic_load_n(&checker->generators[generator], __ATOMIC_ACQUIRE);
}

uint64_t ixdp_frame_checker_seen(const struct ixdp_frame_checker *checker, uint16_t generator) {
	const struct generator *g = load_generator(checker, generator);

	return g ? __atomic_load_n(&g->seen, __ATOMIC_RELAXED) : 0;
}

uint64_t checker_accounted(const struct ixdp_frame_checker *checker, uint16_t generator) {
	const struct generator *g = load_generator(checker, generator);

	if (!g) return 0;
	return __atomic_load_n(&g->seen, __ATOMIC_RELAXED) +
	       __atomic_load_n(&g->lost, __ATOMIC_RELAXED);
}

void checker_rejoin(struct ixdp_frame_checker *checker) {
	checker->first = ANYWHERE;
	for (unsigned g = 0; g < GENERATORS; g++) {
		for (unsigned b = 0; checker->generators[g] && b < BLOCKS; b++) {
			struct flow *block = checker->generators[g]->blocks[b];

			for (unsigned i = 0; block && i < BLOCK_FLOWS; i++)
				block[i].next = ANYWHERE;
		}
	}
}
