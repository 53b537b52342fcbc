/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capture file that is being written: libpcap's format, with nanoseconds. It consists of whole
 * records even after the disk got full, and it is known how many of them are in it.
 */
#pragma once

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CAPTURE_MAX_SNAPLEN = 65535 };

struct capture_file {
	const char *name;
	int fd;
	pcap_t *format;
	pcap_dumper_t *dumper; /* writes into block */
	FILE *block;	       /* memory: records that are still to be written */
	char *data;	       /* of block, as all below */
	size_t size;
	size_t pending;	      /* bytes of records in it */
	unsigned interrupted; /* writes that a signal ended */
	bool failed;	      /* the file takes nothing any more */
	uint64_t captured;    /* frames that it was given */
	uint64_t written;     /* of these, whole in the file; after a flush the others are lost */
};

/*
 * Makes the file, or empties it, and writes its header. "-" is stdout; what is printed on stdout
 * then goes to stderr. Returns 0, or -1 with a line on stderr.
 */
int capture_file_open(struct capture_file *file, const char *name, unsigned snaplen);

/* Adds a frame, of which data has the first header->caplen bytes. Writes blocks as they get full.
 */
void capture_file_add(struct capture_file *file, const struct pcap_pkthdr *header,
		      const uint8_t *data);

/* Writes what is pending. A line on stderr says why it cannot be. */
void capture_file_flush(struct capture_file *file);

/* Flushes, and closes what is open. Returns 0, or -1 when the file failed now or earlier. */
int capture_file_close(struct capture_file *file);
