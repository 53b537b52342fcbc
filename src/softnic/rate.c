/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates as users write them, and when the next frame is due. */
#include <ixdp/frame.h>

#include "../base/error.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#define LINE_BITS 10e9 /* bits per second of the line, L1 */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/*
 * Digits, with a decimal point between digits if there is one. Not strtod(): what that reads
 * depends on the locale, and it knows "nan", "0x1p9" and "1e400". NULL: no number.
 */
static const char *read_number(const char *text, double *value) {
	double scale = 1;

	if (!is_digit(*text)) return NULL;
	for (*value = 0; is_digit(*text); text++)
		*value = *value * 10 + (*text - '0');
	if (*text != '.') return text;
	if (!is_digit(*++text)) return NULL;
	for (; is_digit(*text); text++, scale *= 10)
		*value = *value * 10 + (*text - '0');
	*value /= scale;
	return text;
}

static double read_prefix(const char **text) {
	switch (**text) {
	case 'k':
		++*text;
		return 1e3;
	case 'M':
		++*text;
		return 1e6;
	case 'G':
		++*text;
		return 1e9;
	default:
		return 1;
	}
}

int ixdp_rate_parse(const char *text, struct ixdp_rate *rate) {
	const char *rest = read_number(text, &rate->value);
	int shown = 0;

	if (rest && strcmp(rest, "%") == 0) {
		rate->unit = IXDP_RATE_PERCENT;
	} else if (rest) {
		rate->value *= read_prefix(&rest);
		rate->unit = strcmp(rest, "bit") == 0 ? IXDP_RATE_BIT : IXDP_RATE_PPS;
		if (rate->unit == IXDP_RATE_PPS && strcmp(rest, "pps") != 0) rest = NULL;
	}
	if (rest && isfinite(rate->value) && rate->value > 0) return 0;
	/* Up to the first byte that would break the line. */
	while (shown < 40 && isprint((unsigned char)text[shown]))
		shown++;
	return ixdp_fail(EINVAL,
			 "rate \"%.*s\": write it as 200kpps, 2.5Gbit or 33%% (a number above 0; "
			 "k, M and G are decimal)",
			 shown, text);
}

int ixdp_rate_pps(const struct ixdp_rate *rate, unsigned size, double *pps) {
	double frame_bits = (size + IXDP_FRAME_OVERHEAD) * 8.0;
	double line = LINE_BITS / frame_bits;

	switch (rate->unit) {
	case IXDP_RATE_PPS:
		*pps = rate->value;
		break;
	case IXDP_RATE_BIT:
		*pps = rate->value / frame_bits;
		break;
	case IXDP_RATE_PERCENT:
		*pps = line * (rate->value / 100);
		break;
	}
	if (*pps <= line) return 0;
	int err = ixdp_fail(ERANGE,
			    "%.2f packets per second are more than the line's %.2f with frames of "
			    "%u B: ask for less",
			    *pps, line, size);
	*pps = line;
	return err;
}

void ixdp_pacer_init(struct ixdp_pacer *pacer, double pps, unsigned burst) {
	*pacer = (struct ixdp_pacer){.pps = pps, .burst = burst ? burst : 1};
}

/*
 * Always from the start and the count, never from the frame before: roundings do not add up. What a
 * stall has let pile up beyond a burst counts as sent, and is thereby forgotten.
 */
unsigned ixdp_pacer_due(struct ixdp_pacer *pacer, uint64_t now_ns, unsigned max) {
	uint64_t elapsed;
	uint64_t total;
	uint64_t due;

	if (!pacer->started) {
		pacer->started = true;
		pacer->start_ns = now_ns;
	}
	elapsed = now_ns > pacer->start_ns ? now_ns - pacer->start_ns : 0;
	total = (uint64_t)((double)elapsed * pacer->pps / 1e9) + 1;
	if (total <= pacer->sent) return 0;
	due = total - pacer->sent;
	if (due > pacer->burst) {
		due = pacer->burst;
		pacer->sent = total - due;
	}
	return due < max ? (unsigned)due : max;
}

void ixdp_pacer_sent(struct ixdp_pacer *pacer, unsigned frames) { pacer->sent += frames; }
