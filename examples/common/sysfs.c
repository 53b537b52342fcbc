/* SPDX-License-Identifier: BSD-3-Clause */
#include "sysfs.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_line(char *line, size_t size, const char *path) {
	FILE *file = fopen(path, "re");
	const bool good = file && fgets(line, (int)size, file);

	if (file) fclose(file);
	line[good ? strcspn(line, "\n") : 0] = '\0';
	return good;
}

bool sysfs_line(char *line, size_t size, const char *fmt, ...) {
	char path[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	return read_line(line, size, path);
}

long sysfs_number(const char *fmt, ...) {
	char path[PATH_MAX], line[32];
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	return read_line(line, sizeof(line), path) ? strtol(line, NULL, 10) : -1;
}

bool sysfs_link(char *name, size_t size, const char *fmt, ...) {
	char path[PATH_MAX], target[PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);

	const ssize_t n = readlink(path, target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = '\0';
	const char *slash = strrchr(target, '/');

	snprintf(name, size, "%s", slash ? slash + 1 : target);
	return n > 0;
}
