/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fuzz targets share: an input that is taken apart from its front, and how a target says
 * that what must hold does not.
 */
#pragma once

#include <ixdp/ixdp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is left of the input. At its end every number is 0, so that each prefix is an input too. */
struct input {
	const uint8_t *data;
	size_t len;
};

/* Little endian; bytes up to 8. */
static inline uint64_t input_number(struct input *in, unsigned bytes) {
	uint64_t number = 0;

	for (unsigned i = 0; i < bytes && in->len > 0; i++, in->len--)
		number |= (uint64_t)*in->data++ << 8 * i;
	return number;
}

static inline uint8_t input_u8(struct input *in) { return (uint8_t)input_number(in, 1); }

static inline uint16_t input_u16(struct input *in) { return (uint16_t)input_number(in, 2); }

static inline uint32_t input_u32(struct input *in) { return (uint32_t)input_number(in, 4); }

/* Up to max bytes off the front, as an input of their own. */
static inline struct input input_part(struct input *in, size_t max) {
	struct input part = {in->data, max < in->len ? max : in->len};

	in->data += part.len;
	in->len -= part.len;
	return part;
}

/* libFuzzer takes an abort for a finding, and prints the stack. */
#define MUST(condition, ...)                                                                       \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s does not hold: ", __FILE__, __LINE__,           \
				#condition);                                                       \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A failed call has said why, in one line. */
static inline void must_explain(int err) {
	const char *text = ixdp_error();

	MUST(err < 0 && text[0], "%d, \"%s\"", err, text);
	for (const char *c = text; *c; c++)
		MUST((unsigned char)*c >= 0x20 && *c != 0x7F, "0x%02x in \"%s\"", *c, text);
}

/* Reads every byte, so that ASan sees one that is not there. */
static inline void touch(const uint8_t *data, size_t len) {
	static volatile uint8_t last;

	for (size_t i = 0; i < len; i++)
		last = data[i];
	(void)last;
}

/* The file descriptor that the next open will get: the same before and after what leaks none. */
static inline int next_fd(void) {
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);
