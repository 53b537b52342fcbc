/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A capture file of any content, played to the end: refused with a reason, or every frame is one
 * that a port may get. First byte of the input: how it is paced, and whether the file changes while
 * it is played. The rest is the file.
 */
#include "fuzz.h"

#include "softnic/wire.h"

#include <sys/mman.h>

enum { MAX_PEEKS = 8192 };

static int file;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
	(void)argc, (void)argv;
	file = memfd_create("pcap", MFD_CLOEXEC);
	MUST(file >= 0, "no memfd");
	return 0;
}

static void write_file(const uint8_t *data, size_t len) {
	MUST(ftruncate(file, 0) == 0 && pwrite(file, data, len, 0) == (ssize_t)len, "memfd");
}

/* Looks at the next frame twice, as the NIC may. */
static bool play_one(struct wire *wire, uint64_t now) {
	bool bad_crc = true, bad_crc_again = true;
	size_t len = 0, len_again = 0;
	const uint8_t *frame = wire->ops->peek(wire, now, &len, &bad_crc);

	if (!frame) return false;
	MUST(wire->ops->peek(wire, now, &len_again, &bad_crc_again) == frame, "peek has moved");
	MUST(len == len_again && !bad_crc && !bad_crc_again, "%zu, %zu bytes", len, len_again);
	MUST(len >= IXDP_FRAME_MIN && len <= IXDP_FRAME_MAX, "a frame of %zu bytes", len);
	touch(frame, len);
	MUST(wire->ops->send(wire, frame, len, now), "refused a frame");
	wire->ops->pop(wire);
	return true;
}

static void play(struct wire *wire, const uint8_t *data, size_t len, unsigned how) {
	struct ixdp_wire_stats stats;
	uint64_t now = 1000000000, played = 0;

	/* Time runs ever faster, so that gaps of any length end. */
	for (unsigned i = 0; i < MAX_PEEKS; i++, now += now >> (how & 8 ? 3 : 12)) {
		if (i == 3 && how & 16) write_file(data + len / 2, len - len / 2);
		played += play_one(wire, now);
		if (now >> 60) break;
	}
	wire->ops->stats(wire, &stats);
	MUST(stats.to_port_packets == played && stats.from_port_packets == played, "%llu of %llu",
	     (unsigned long long)stats.to_port_packets, (unsigned long long)played);
	wire->ops->stop(wire);
	wire->ops->stats(wire, &stats);
	MUST(stats.exhausted && !play_one(wire, now), "stopped, and goes on");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
	static const char *const rates[] = {"", ",rate=file", ",rate=14Mpps", ",rate=10Gbit"};
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	unsigned how = len > 0 ? data[0] : 0;
	int fds = next_fd();
	struct softnic_name name;
	struct wire *wire;
	char text[80];
	int err;

	if (len == 0) return 0;
	write_file(data + 1, len - 1);
	snprintf(text, sizeof(text), "p,peer=pcap:/proc/self/fd/%d%s", file, rates[how % 4]);
	MUST(softnic_name_parse(&name, text) == 0, "%s", text);
	err = wire_open(&wire, NULL, &name, mac);
	if (err) {
		must_explain(err);
	} else {
		play(wire, data + 1, len - 1, how);
		wire->ops->close(wire);
	}
	softnic_name_free(&name);
	MUST(next_fd() == fds, "a file stays open");
	return 0;
}
