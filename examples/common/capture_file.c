/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_file.h"

#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BLOCK = 256 * 1024, /* bytes per write: some 170 long frames, or 3,400 short ones */
	RECORD_HEADER = 16, /* seconds, nanoseconds, caplen, len: 32 bits each, in host order */
	RECORD_CAPLEN = 8,  /* where caplen is */
	MAX_INTERRUPTED = 2,
};

static int fail(struct capture_file *file) {
	file->failed = true;
	report_error("%s: %s", file->name, strerror(errno));
	return -1;
}

/*
 * Writes all of it, or as much as can be: returns how many bytes that were. A signal does not cut a
 * frame in two, but with another one a reader that does not read is waited for no longer.
 */
static size_t write_most(struct capture_file *file, const char *data, size_t size) {
	size_t done = 0;

	while (done < size) {
		const ssize_t n = write(file->fd, data + done, size - done);

		if (n >= 0)
			done += n;
		else if (errno != EINTR || ++file->interrupted == MAX_INTERRUPTED)
			break;
	}
	return done;
}

static int open_fd(struct capture_file *file) {
	if (strcmp(file->name, "-") != 0)
		return open(file->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	file->name = "stdout";
	if (fd >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
	return fd;
}

int capture_file_open(struct capture_file *file, const char *name, unsigned snaplen) {
	*file = (struct capture_file){.name = name};
	file->fd = open_fd(file);
	if (file->fd < 0) return fail(file);
	file->format = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, (int)snaplen,
							    PCAP_TSTAMP_PRECISION_NANO);
	file->block = open_memstream(&file->data, &file->size);
	if (file->format && file->block) file->dumper = pcap_dump_fopen(file->format, file->block);
	if (!file->dumper || fflush(file->block) ||
	    write_most(file, file->data, file->size) < file->size)
		return fail(file);
	rewind(file->block);
	return 0;
}

void capture_file_add(struct capture_file *file, const struct pcap_pkthdr *header,
		      const uint8_t *data) {
	file->captured++;
	if (file->failed) return;
	pcap_dump((u_char *)file->dumper, header, data);
	file->pending += RECORD_HEADER + header->caplen;
	if (file->pending >= BLOCK) capture_file_flush(file);
}

/* Counts the whole records in the first `size` bytes of the block. Returns their bytes. */
static size_t count_whole(struct capture_file *file, size_t size) {
	size_t whole = 0;
	uint32_t caplen;

	while (whole + RECORD_HEADER <= size) {
		memcpy(&caplen, file->data + whole + RECORD_CAPLEN, sizeof(caplen));
		if (whole + RECORD_HEADER + caplen > size) break;
		whole += RECORD_HEADER + caplen;
		file->written++;
	}
	return whole;
}

/* Takes the last bytes away again: a part of a record, which readers would stumble over. */
static void cut(const struct capture_file *file, size_t bytes) {
	const off_t end = lseek(file->fd, -(off_t)bytes, SEEK_CUR);
	struct stat st;

	if (fstat(file->fd, &st) || !S_ISREG(st.st_mode)) return;
	if (end < 0 || ftruncate(file->fd, end))
		report_error("%s: ends within a frame: %s", file->name, strerror(errno));
}

void capture_file_flush(struct capture_file *file) {
	if (!file->pending || file->failed) return;
	/* Memory that runs out is like a disk that does. */
	const bool complete = !fflush(file->block) && file->size == file->pending;
	const size_t done = write_most(file, file->data, file->size);

	if (!complete || done < file->size) fail(file);

	const size_t whole = count_whole(file, done);

	if (whole < done) cut(file, done - whole);
	rewind(file->block);
	file->pending = 0;
}

int capture_file_close(struct capture_file *file) {
	capture_file_flush(file);
	if (file->dumper)
		pcap_dump_close(file->dumper);
	else if (file->block)
		fclose(file->block);
	free(file->data);
	if (file->format) pcap_close(file->format);
	/* Some file systems find out now that there is no room. */
	if (file->fd >= 0 && close(file->fd) && !file->failed) fail(file);
	return file->failed ? -1 : 0;
}
