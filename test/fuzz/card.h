/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A card for the driver to be fuzzed on. It is well until the input says otherwise; its time passes
 * with each look at it, so that every wait ends.
 *
 * Its lies come first in the input: a byte for how many registers are stuck and how many lies there
 * are, for each stuck one its number and value, then for each lie after how many reads (2 bytes),
 * what kind (1), and a value (4).
 */
#pragma once

#include "bus/bus.h"
#include "fuzz.h"

#include <stdbool.h>

/* The one card's bus. */
struct ixdp_bus *card_bus(void);

/* A new card, its lies off the input. rings: bytes of memory that all rings take. */
void card_begin(struct input *in, size_t rings);

/* The bus was closed, and nothing is mapped any more. */
void card_end(void);

/* From now on so many register reads, more are a finding. */
void card_allow_reads(unsigned reads);

/* What the driver has told the card makes sense: rings where there is memory, tails within them. */
void card_check(void);

/*
 * Deeds: receives some frames as it should, or in several parts and marked in any way; writes over
 * descriptors; changes a register.
 */
void card_receive(struct input *in, bool parts);
void card_scribble(struct input *in);
void card_set_register(struct input *in);
