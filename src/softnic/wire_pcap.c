/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer=pcap:IN[:OUT]: the frames of a capture file arrive at the port; what the port sends is
 * captured. Either may be left out. Lengths are without FCS, on both sides.
 *
 * IN is read through when it is opened, so that a file with a bad record is refused and not played
 * up to it; that takes a file which can be read twice, so no pipe.
 */
#include "wire_kinds.h"

#include "../base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000) /* ns */

enum {
	SNAPLEN = 65535,
	BURST_BITS = 32 * (1514 + IXDP_FRAME_OVERHEAD) * 8, /* may pile up when paced */
};

enum pace { PACE_NONE, PACE_FRAMES, PACE_BITS, PACE_FILE };

struct source {
	const char *path;
	pcap_t *file;
	uint64_t records; /* in the file */
	uint64_t played;  /* of these, handed out */
	bool stopped;

	struct pcap_pkthdr *header; /* of the next frame */
	const uint8_t *frame;	    /* NULL: not read yet */

	enum pace pace;
	struct ixdp_pacer pacer; /* in frames or in bits */
	bool started;		 /* with rate=file, the two below are set */
	uint64_t due_ns;	 /* when the frame is to be sent */
	uint64_t stamp_ns;	 /* when it was captured, by the file */
};

struct target {
	const char *path;
	pcap_t *format;
	pcap_dumper_t *file;
	bool stamped;	    /* the two below are set */
	uint64_t real_ns;   /* CLOCK_REALTIME of the first frame */
	uint64_t clock_ns;  /* of the first frame, by the NIC's clock */
	uint64_t unwritten; /* frames that a write error cost */
};

struct capture {
	struct wire wire;
	struct wire_plug plug;
	struct source in;
	struct target out;
	char *paths[2];
	struct ixdp_wire_stats totals;
};

/* --- playing ------------------------------------------------------------------------------- */

/* What cannot be played as it stands. 0, or -EINVAL with ixdp_error(). */
static int check_record(const struct source *in, uint64_t number,
			const struct pcap_pkthdr *header) {
	unsigned long long n = number;

	if (header->caplen != header->len)
		return ixdp_fail(EINVAL,
				 "%s: record %llu: %u of the frame's %u bytes: it was cut when "
				 "captured",
				 in->path, n, header->caplen, header->len);
	if (header->len < IXDP_FRAME_MIN || header->len > WIRE_FRAME_MAX)
		return ixdp_fail(EINVAL, "%s: record %llu: %u bytes: a frame has %d to %d",
				 in->path, n, header->len, IXDP_FRAME_MIN, WIRE_FRAME_MAX);
	return 0;
}

/* Reads record `number`. 1; 0 at the end of the file; -EINVAL with ixdp_error(). */
static int read_record(struct source *in, uint64_t number) {
	int rc = pcap_next_ex(in->file, &in->header, &in->frame);

	if (rc == 1)
		rc = check_record(in, number, in->header);
	else if (rc == PCAP_ERROR_BREAK)
		return 0;
	else
		rc = ixdp_fail(EINVAL, "%s: record %llu: %s", in->path, (unsigned long long)number,
			       pcap_geterr(in->file));
	if (rc) {
		in->frame = NULL;
		return rc;
	}
	return 1;
}

static bool has_frame(struct source *in) {
	if (in->stopped || in->played == in->records) return false;
	if (in->frame || read_record(in, in->played + 1) == 1) return true;
	ixdp_log(IXDP_LOG_ERROR, "%s: changed while it was played, which ends here: %s", in->path,
		 ixdp_error());
	in->stopped = true;
	return false;
}

/* Keeps the gaps of the file; where its clock goes back, there is none. */
static bool due_by_file(struct source *in, uint64_t now_ns) {
	uint64_t stamp =
	    (uint64_t)in->header->ts.tv_sec * SECOND + (uint64_t)in->header->ts.tv_usec;
	int64_t gap;

	if (!in->started) {
		in->started = true;
		in->due_ns = now_ns;
		in->stamp_ns = stamp;
	}
	gap = (int64_t)(stamp - in->stamp_ns);
	in->stamp_ns = stamp;
	if (gap > 0) in->due_ns += (uint64_t)gap;
	return now_ns >= in->due_ns;
}

static const uint8_t *capture_peek(struct wire *wire, uint64_t now_ns, size_t *len, bool *bad_crc) {
	struct source *in = &((struct capture *)wire)->in;

	if (!has_frame(in)) return NULL;
	if (in->pace == PACE_FILE && !due_by_file(in, now_ns)) return NULL;
	if ((in->pace == PACE_FRAMES || in->pace == PACE_BITS) &&
	    !ixdp_pacer_due(&in->pacer, now_ns, 1))
		return NULL;
	*bad_crc = false;
	*len = in->header->len;
	return in->frame;
}

static void capture_pop(struct wire *wire) {
	struct capture *capture = (struct capture *)wire;
	struct source *in = &capture->in;

	if (!in->frame) return;
	if (in->pace == PACE_FRAMES)
		ixdp_pacer_sent(&in->pacer, 1);
	else if (in->pace == PACE_BITS)
		ixdp_pacer_sent(&in->pacer, (in->header->len + IXDP_FRAME_OVERHEAD) * 8);
	wire_count_to_port(&capture->totals, in->header->len);
	in->frame = NULL;
	in->played++;
}

static void capture_stop(struct wire *wire) { ((struct capture *)wire)->in.stopped = true; }

/* --- capturing ----------------------------------------------------------------------------- */

static void write_failed(struct target *out) {
	if (out->unwritten++ == 0)
		ixdp_log(IXDP_LOG_ERROR, "%s: cannot write, the capture ends here: %s", out->path,
			 strerror(errno));
}

static void capture_write(struct target *out, const uint8_t *frame, size_t len, uint64_t now_ns) {
	struct pcap_pkthdr header = {.caplen = (uint32_t)len, .len = (uint32_t)len};
	uint64_t stamp;

	if (!out->stamped) {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		out->real_ns = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
		out->clock_ns = now_ns;
		out->stamped = true;
	}
	stamp = out->real_ns + (now_ns - out->clock_ns);
	header.ts.tv_sec = (time_t)(stamp / SECOND);
	header.ts.tv_usec = (suseconds_t)(stamp % SECOND); /* nanoseconds: so the file was opened */
	if (out->unwritten == 0) pcap_dump((u_char *)out->file, &header, frame);
	if (out->unwritten || ferror(pcap_dump_file(out->file))) write_failed(out);
}

static bool capture_send(struct wire *wire, const uint8_t *frame, size_t len, uint64_t now_ns) {
	struct capture *capture = (struct capture *)wire;

	wire_count_from_port(&capture->totals, len);
	if (capture->out.file) capture_write(&capture->out, frame, len, now_ns);
	return true;
}

/* --- opening and closing ------------------------------------------------------------------- */

static void capture_stats(struct wire *wire, struct ixdp_wire_stats *stats) {
	struct capture *capture = (struct capture *)wire;

	*stats = capture->totals;
	stats->exhausted =
	    stats->source && (capture->in.stopped || capture->in.played == capture->in.records);
}

static void close_target(struct target *out) {
	if (!out->file) return;
	if (pcap_dump_flush(out->file) && out->unwritten == 0)
		ixdp_log(IXDP_LOG_ERROR, "%s: cannot write, the capture is incomplete: %s",
			 out->path, strerror(errno));
	if (out->unwritten)
		ixdp_log(IXDP_LOG_ERROR, "%s: %llu frames are missing at its end", out->path,
			 (unsigned long long)out->unwritten);
	pcap_dump_close(out->file);
	pcap_close(out->format);
}

static void capture_free(struct capture *capture) {
	close_target(&capture->out);
	if (capture->in.file) pcap_close(capture->in.file);
	free(capture->paths[0]);
	free(capture->paths[1]);
	free(capture);
}

static void capture_close(struct wire *wire) {
	struct capture *capture = (struct capture *)wire;

	wire_plug_out(&capture->plug);
	capture_free(capture);
}

static const struct wire_ops capture_ops = {
    .peek = capture_peek,
    .pop = capture_pop,
    .send = capture_send,
    .stats = capture_stats,
    .stop = capture_stop,
    .close = capture_close,
};

static int check_format(const struct source *in) {
	int link = pcap_datalink(in->file);

	if (link != DLT_EN10MB)
		return ixdp_fail(EINVAL, "%s: link type %d (%s): only Ethernet can be played",
				 in->path, link, pcap_datalink_val_to_description_or_dlt(link));
	if (LT_FCS_LENGTH_PRESENT(pcap_datalink_ext(in->file)))
		return ixdp_fail(EINVAL, "%s: frames with FCS: only those without can be played",
				 in->path);
	return 0;
}

/* Begins to read the file at fd, which stays open. */
static int start_reading(struct source *in, int fd) {
	char why[PCAP_ERRBUF_SIZE];
	int copy = dup(fd);
	FILE *stream = copy < 0 || lseek(fd, 0, SEEK_SET) < 0 ? NULL : fdopen(copy, "r");

	if (!stream) {
		if (copy >= 0) close(copy);
		return ixdp_fail(errno, "%s: %s", in->path, strerror(errno));
	}
	in->file =
	    pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!in->file) {
		fclose(stream);
		return ixdp_fail(EINVAL, "%s: no capture file: %s", in->path, why);
	}
	return check_format(in);
}

/* Reads all of it to see that it can be played, then goes back to the start. */
static int scan(struct source *in, int fd) {
	int rc = start_reading(in, fd);

	if (rc) return rc;
	while ((rc = read_record(in, in->records + 1)) == 1)
		in->records++;
	if (rc) return rc;
	in->frame = NULL;
	pcap_close(in->file);
	in->file = NULL;
	return start_reading(in, fd);
}

static int open_source(struct source *in, struct stat *file) {
	/* Non-blocking: opening a pipe must not wait for who writes it. */
	int fd = open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0) return ixdp_fail(errno, "%s: %s", in->path, strerror(errno));
	if (fstat(fd, file))
		err = ixdp_fail(errno, "%s: %s", in->path, strerror(errno));
	else if (!S_ISREG(file->st_mode))
		err =
		    ixdp_fail(EINVAL, "%s: not a regular file: a capture is read twice", in->path);
	else if (flock(fd, LOCK_SH | LOCK_NB)) /* shared with the stream that scan() leaves open */
		err = ixdp_fail(EBUSY, "%s: a port captures into it", in->path);
	else
		err = scan(in, fd);
	close(fd);
	return err;
}

/*
 * Opens OUT but does not yet touch what is in it. in: the file that is played, of which nothing may
 * be overwritten; NULL for none.
 */
static int open_output(const char *path, const struct stat *in) {
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
	struct stat out;
	int err = 0;

	if (fd < 0 || fstat(fd, &out))
		err = ixdp_fail(errno, "%s: %s", path, strerror(errno));
	else if (in && in->st_dev == out.st_dev && in->st_ino == out.st_ino)
		err = ixdp_fail(EINVAL, "%s: is being played: capture into another file", path);
	else if (!S_ISREG(out.st_mode) && !S_ISCHR(out.st_mode))
		err = ixdp_fail(EINVAL, "%s: not a regular file", path);
	else if (flock(fd, LOCK_EX | LOCK_NB))
		err = ixdp_fail(EBUSY, "%s: another port plays it or captures into it", path);
	else if (S_ISREG(out.st_mode) && ftruncate(fd, 0))
		err = ixdp_fail(errno, "%s: %s", path, strerror(errno));
	if (!err) return fd;
	if (fd >= 0) close(fd);
	return err;
}

static int open_target(struct target *out, const struct stat *in) {
	int fd = open_output(out->path, in);
	FILE *stream;

	if (fd < 0) return fd;
	stream = fdopen(fd, "w");
	if (!stream) {
		close(fd);
		return ixdp_fail(ENOMEM, "%s: out of memory", out->path);
	}
	out->format =
	    pcap_open_dead_with_tstamp_precision(DLT_EN10MB, SNAPLEN, PCAP_TSTAMP_PRECISION_NANO);
	if (!out->format) {
		fclose(stream);
		return ixdp_fail(ENOMEM, "%s: out of memory", out->path);
	}
	out->file = pcap_dump_fopen(out->format, stream);
	if (!out->file) {
		int err = ixdp_fail(EIO, "%s: %s", out->path, pcap_geterr(out->format));

		pcap_close(out->format);
		return err;
	}
	return 0;
}

static int read_rate(struct capture *capture, const struct wire_request *request) {
	const char *text = softnic_name_get(request->name, "rate");
	struct source *in = &capture->in;
	struct ixdp_rate rate;
	double pps;
	int err;

	if (!text) return 0;
	if (!in->path)
		return ixdp_fail(EINVAL, "soft:%s: rate= needs a file to play: peer=pcap:IN",
				 request->name->name);
	if (strcmp(text, "file") == 0) {
		in->pace = PACE_FILE;
		return 0;
	}
	err = wire_option_rate(request, IXDP_FRAME_MIN, &rate, &pps);
	if (err) return err;
	if (rate.unit == IXDP_RATE_PPS) {
		in->pace = PACE_FRAMES;
		ixdp_pacer_init(&in->pacer, rate.value, 32);
		return 0;
	}
	/* Frames differ in length: what is paced is bits on the wire. */
	in->pace = PACE_BITS;
	ixdp_pacer_init(&in->pacer, pps * (IXDP_FRAME_MIN + IXDP_FRAME_OVERHEAD) * 8, BURST_BITS);
	return 0;
}

static int read_paths(struct capture *capture, const struct wire_request *request) {
	for (int i = 0; i < 2; i++) {
		if (!request->args[i] || !request->args[i][0]) continue;
		capture->paths[i] = strdup(request->args[i]);
		if (!capture->paths[i])
			return ixdp_fail(ENOMEM, "soft:%s: out of memory", request->name->name);
	}
	capture->in.path = capture->paths[0];
	capture->out.path = capture->paths[1];
	if (capture->in.path || capture->out.path) return 0;
	return ixdp_fail(EINVAL, "soft:%s: peer=pcap: names no file: pcap:IN[:OUT] or pcap::OUT",
			 request->name->name);
}

int wire_pcap_open(struct wire **wire, const struct wire_request *request) {
	struct capture *capture = calloc(1, sizeof(*capture));
	struct stat in = {0};
	int err;

	if (!capture) return ixdp_fail(ENOMEM, "soft:%s: out of memory", request->name->name);
	capture->wire.ops = &capture_ops;
	capture->wire.waits = true;
	strcpy(capture->plug.name, request->name->name);
	err = read_paths(capture, request);
	if (!err) err = read_rate(capture, request);
	if (!err) err = wire_plug_in(&capture->plug);
	if (err) goto free_capture;
	if (capture->in.path) err = open_source(&capture->in, &in);
	if (!err && capture->out.path)
		err = open_target(&capture->out, capture->in.path ? &in : NULL);
	if (err) goto plug_out;
	capture->totals.source = capture->in.path;
	capture->totals.finite = capture->in.path;
	*wire = &capture->wire;
	return 0;

plug_out:
	wire_plug_out(&capture->plug);
free_capture:
	capture_free(capture);
	return err;
}
