/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of one line, as sysfs is full of them. Their names are formatted as by printf(3). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Reads the line without its newline, cut to what fits. False, and line empty: there is none. */
bool sysfs_line(char *line, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads a decimal number; -1: there is none. */
long sysfs_number(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The last part of what a symbolic link says. False, and name empty: there is none. */
bool sysfs_link(char *name, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
