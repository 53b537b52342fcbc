/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a program of examples/ from a test: its output, line by line or as JSON, and its exit
 * code. A program that takes longer than PROGRAM_LIMIT_S is killed, and the test fails.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROGRAM_LIMIT_S = 60 }; /* far above what a sanitizer build on a busy machine needs */

struct program_text {
	char *data; /* ends with a NUL */
	size_t len;
	int fd; /* where more comes from; -1 at its end */
};

struct program {
	pid_t pid;
	struct program_text out, err;
	size_t read; /* bytes of out that program_line() has returned */
	char *line;
	int64_t limit_ns;
	struct json_object *objects; /* array, see program_objects() */
};

/* argv[0]: name of a program of $IXDP_PROGRAMS; NULL behind the last argument. */
void program_start(struct program *program, const char *const *argv);
#define PROGRAM_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The same with stdout closed. */
void program_start_mute(struct program *program, const char *const *argv);

/* The next line of its stdout, without newline, as soon as it is there; NULL at the end. */
const char *program_line(struct program *program);

/* Waits until stderr holds the text. */
void program_wait_stderr(struct program *program, const char *text);

/* Stops reading its stdout. */
void program_hang_up(struct program *program);

/* Whether it has ended; its output is not read. */
bool program_has_ended(const struct program *program);

/* Reads until it ends. Returns its exit code, or minus the signal that ended it. */
int program_wait(struct program *program);

/* All JSON objects of its stdout, after program_wait(). Fails unless every line is one. */
struct json_object *program_objects(struct program *program);

/* Its last object for a port; fails unless that is the one with "final": true. */
struct json_object *program_final(struct program *program, const char *port);

/* Lines of a text. */
unsigned program_lines(const struct program_text *text);

/* Lines on stderr without warnings, which may be about the machine: no huge pages. */
unsigned program_error_lines(const struct program *program);

void program_free(struct program *program);

/* A member of an object; fails if it is not there, or is no integer or no number. */
int64_t json_int(struct json_object *object, const char *name);
double json_number(struct json_object *object, const char *name);
