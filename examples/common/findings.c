/* SPDX-License-Identifier: BSD-3-Clause */
#include "findings.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const status_names[] = {
    [FINDING_PASS] = "PASS", [FINDING_INFO] = "INFO", [FINDING_SKIP] = "SKIP",
    [FINDING_WARN] = "WARN", [FINDING_FAIL] = "FAIL",
};

static void add_string(struct json_object *object, const char *name, const char *value) {
	if (value) json_object_object_add(object, name, json_object_new_string(value));
}

static void print_json(const char *status, const char *item, const char *about, const char *text,
		       const char *fix) {
	struct json_object *object = json_object_new_object();

	add_string(object, "status", status);
	add_string(object, "item", item);
	add_string(object, "about", about);
	add_string(object, "text", text);
	add_string(object, "fix", fix);
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
							JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

/* A line stays one, and leaves the terminal alone, whatever the names of files are. */
static void make_printable(char *line) {
	for (; *line; line++)
		if (iscntrl((unsigned char)*line)) *line = '?';
}

void findings_add(struct findings *findings, enum finding_status status, const char *item,
		  const char *about, const char *fix, const char *fmt, ...) {
	char text[512], line[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	findings->n[status]++;
	if (findings->json) {
		print_json(status_names[status], item, about, text, fix);
		return;
	}
	snprintf(line, sizeof(line), "%s  %s%s%s: %s%s%s", status_names[status], item,
		 about ? " " : "", about ? about : "", text, fix ? "; fix: " : "", fix ? fix : "");
	make_printable(line);
	puts(line);
}
