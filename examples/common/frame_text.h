/* SPDX-License-Identifier: BSD-3-Clause */
/* Test frames and addresses as text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reads "02:00:00:00:00:01". False, and mac as it was, when it is nothing like that. */
bool frame_parse_mac(const char *text, uint8_t mac[6]);

/*
 * Prints a test frame of len bytes on stdout: a line saying what it is, then its bytes in the form
 * that text2pcap(1) reads.
 */
void frame_print(const uint8_t *data, unsigned len);
