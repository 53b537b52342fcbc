/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-doctor on a made-up machine: the one of sysfs_tree.h, with huge pages and a hugetlbfs. */
#pragma once

#include "program.h"
#include "sysfs_tree.h"

#define DOCTOR_PAGES "kernel/mm/hugepages/hugepages-2048kB"
#define DOCTOR_NODE1 "devices/system/node/node1/hugepages/hugepages-2048kB"

/*
 * Setup of a test: a machine on which the card, of node 1, can run. root/mounts is what it has
 * mounted, root/huge its hugetlbfs. tree_teardown() is its end.
 */
int doctor_setup(void **state);

/* Sets the pages of a folder (one of those above), as text with a newline. */
void doctor_set_pages(const char *folder, const char *total, const char *free);

/* Runs it there, with --json, until it ends. device: may be NULL. */
void doctor_run(struct program *program, const char *device);

/* What it found about something, or NULL. about: "" for what is about nothing in particular. */
struct json_object *doctor_finding(struct program *program, const char *item, const char *about);

/* A member of a finding; "" when it has none. */
const char *doctor_text(struct json_object *object, const char *name);

/* It must have been found, and its text and its fix together say so. */
void doctor_found(struct program *program, const char *status, const char *item, const char *about,
		  const char *says);

/* Asks for the card, then for any software port: this must be in the way of the former only. */
void doctor_in_the_way(const char *item, const char *about, const char *says);

/* Asks for the card: this must be good, as everything else. */
void doctor_passes(const char *item, const char *about, const char *says);
