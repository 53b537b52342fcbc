/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What users write: device names, rates, faults. First byte of the input: which of them; the rest
 * is the text. Nothing outside is reached: sysfs is one that does not exist, files are memory.
 */
#include "fuzz.h"

#include "bus/bus.h"
#include "mem/dma.h"
#include "softnic/softnic.h"
#include "softnic/wire.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>

static struct ixdp_pool *pool;
static struct softnic *nic;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
	struct ixdp_pool_config cfg = {.buffers = 1024, .numa_node = -1, .ordinary_pages = true};

	(void)argc, (void)argv;
	dma_set_mounts_file("/dev/null"); /* no huge pages */
	bus_sysfs_set_root("/nonexistent");
	softnic_set_stepped(true);
	MUST(ixdp_pool_create(&pool, &cfg) == 0, "%s", ixdp_error());
	MUST(softnic_open(&nic, "faulty") == 0, "%s", ixdp_error());
	return 0;
}

/* These stand in for other functions (linked with --wrap). The NIC's own works while it waits. */
void __wrap_softnic_delay_us(struct softnic *waiting, unsigned us);
void __wrap_softnic_delay_us(struct softnic *waiting, unsigned us) {
	(void)waiting;
	softnic_advance_ns((uint64_t)us * 1000);
}

/* Capture files are there, and empty, whatever they are called. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
	if (flags & O_DIRECTORY) return __real_open(path, flags);
	return memfd_create("capture", MFD_CLOEXEC);
}

static void open_port(const char *text) {
	struct ixdp_pool_stats stats;
	struct ixdp_config cfg;
	struct ixdp_port *port;
	int err;

	ixdp_config_init(&cfg);
	cfg.rx_ring = cfg.tx_ring = IXDP_MIN_RING;
	cfg.pool = pool;
	err = ixdp_open(&port, text, &cfg);
	if (err) {
		must_explain(err);
	} else {
		const char *name = ixdp_port_name(port);

		MUST(strncmp(name, "soft:", 5) == 0 && strlen(name) < IXDP_NAME_MAX, "%s", name);
		ixdp_close(port);
	}
	ixdp_pool_get_stats(pool, &stats);
	MUST(stats.available == stats.buffers && stats.bad_frees == 0, "%u buffers of %u are back",
	     stats.available, stats.buffers);
}

/* There is no device at all; but an address is named in the one form that all forms become. */
static void find_pci(const char *text) {
	struct ixdp_bus *bus;
	char first[512];
	int err;

	if (strncmp(text, "soft:", 5) == 0) return;
	err = bus_open(&bus, text, false);
	must_explain(err);
	if (err != -ENODEV) return;
	snprintf(first, sizeof(first), "%s", ixdp_error());
	char *name = strndup(first, strcspn(first, " ") - 1);
	MUST(bus_open(&bus, name, false) == -ENODEV, "%s: %s", name, ixdp_error());
	MUST(strcmp(first, ixdp_error()) == 0, "%s became %s", first, ixdp_error());
	free(name);
}

static void parse_soft(const char *text) {
	struct softnic_name name;
	int err = softnic_name_parse(&name, text);
	char *parts[3];

	if (err) {
		must_explain(err);
		return;
	}
	for (unsigned i = 0; i < name.n_options; i++) {
		const char *key = name.options[i].key;
		size_t len = strlen(name.options[i].value);
		int n;

		MUST(len > 0, "%s= without a value", key);
		MUST(softnic_name_get(&name, key) == name.options[i].value, "%s twice", key);
		n = softnic_value_split(name.options[i].value, parts, 3);
		MUST(n == -EINVAL || (n >= 1 && n <= 3), "%d parts", n);
		for (int p = 0; p < n; p++)
			MUST(strlen(parts[p]) <= len, "part %d has grown", p);
	}
	softnic_name_free(&name);
}

static void parse_rate(const char *text) {
	struct ixdp_rate rate;
	double pps = -1;
	int err = ixdp_rate_parse(text, &rate);

	if (!err) {
		MUST(isfinite(rate.value) && rate.value > 0, "%g", rate.value);
		err = ixdp_rate_pps(&rate, IXDP_FRAME_MIN, &pps);
		MUST(pps >= 0 && pps < 14880953, "%g packets per second", pps);
	}
	if (err) must_explain(err);
}

/* The NIC gets faults out of names, whose control characters were refused before. */
static void set_fault(char *text) {
	int err;

	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c)) *c = '?';
	err = softnic_fault(nic, text);
	if (err) must_explain(err);
	softnic_step(nic, 1);
	MUST(softnic_fault(nic, "none") == 0, "%s", ixdp_error());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
	int fds = next_fd();
	char *text, *soft;

	if (len == 0) return 0;
	text = strndup((const char *)data + 1, len - 1);
	switch (data[0]) {
	case 'p':
		find_pci(text);
		break;
	case 'n':
		parse_soft(text);
		break;
	case 'r':
		parse_rate(text);
		break;
	case 'f':
		set_fault(text);
		break;
	case 's':
		MUST(asprintf(&soft, "soft:%s", text) > 0, "memory");
		open_port(soft);
		free(soft);
		break;
	default:
		open_port(text);
	}
	free(text);
	MUST(next_fd() == fds, "a file stays open");
	return 0;
}
