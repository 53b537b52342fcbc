/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Says whether ixdp can run on this machine, and what to do where it cannot.
 *
 *     ixdp-doctor
 *     ixdp-doctor --json 0000:03:00.0
 *     ixdp-doctor --selftest soft:a
 */
#include "common/findings.h"
#include "common/huge.h"
#include "common/nics.h"
#include "common/options.h"
#include "common/report.h"
#include "common/run.h"
#include "common/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLASS_ETHERNET = 0x0200 };

struct doctor {
	struct findings findings;
	const char *device; /* asked for; NULL: any software port */
	bool clean, selftest, force;
	const char *sysfs, *locks, *mounts;
	struct nics nics;
	const struct nic *nic; /* the device, if it is one of these */
	char mount[PATH_MAX];
};

/* What a problem of a card amounts to: it matters if this card, or any, is to be used. */
static enum finding_status problem(const struct doctor *doctor, const struct nic *nic) {
	const bool matters = nic ? nic == doctor->nic : doctor->nic != NULL;

	return matters ? FINDING_FAIL : FINDING_WARN;
}

static bool is_software(const char *device) {
	return !device || !strncmp(device, "soft:", strlen("soft:"));
}

/* --- cards --------------------------------------------------------------------------------- */

static void check_numa(struct doctor *doctor, const struct nic *nic) {
	const struct huge_pages pages = huge_pages_count(doctor->sysfs, nic->numa_node);
	const long needed = huge_pages_needed();
	char where[32] = "any node", fix[80];

	if (nic->numa_node >= 0) snprintf(where, sizeof(where), "node %d", nic->numa_node);
	snprintf(fix, sizeof(fix), "setup-hugetlbfs.sh --pages %ld",
		 (pages.total > 0 ? pages.total : 0) + needed - pages.free);
	if (pages.free >= needed)
		findings_add(&doctor->findings, FINDING_PASS, "memory", nic->address, NULL,
			     "from %s, which has %ld free huge pages; %ld needed", where,
			     pages.free, needed);
	else
		findings_add(&doctor->findings, problem(doctor, nic), "memory", nic->address, fix,
			     "from %s, which has %ld free huge pages; %ld needed", where,
			     pages.free > 0 ? pages.free : 0, needed);
}

static void check_supported_nic(struct doctor *doctor, const struct nic *nic) {
	struct findings *findings = &doctor->findings;
	struct nic_use use;
	char type[32];

	findings_add(findings, FINDING_PASS, "nic", nic->address, NULL, "%04x:%04x, %s",
		     nic->vendor, nic->device, nic->name);
	nic_use_look(&use, nic, doctor->sysfs, doctor->locks);
	findings_add(findings,
		     use.free	     ? FINDING_PASS
		     : doctor->force ? FINDING_WARN
				     : problem(doctor, nic),
		     "use", nic->address, use.free ? NULL : use.fix, "%s", use.text);
	if (nic_iommu_look(type, sizeof(type), nic, doctor->sysfs))
		findings_add(findings, FINDING_PASS, "iommu", nic->address, NULL,
			     "translates nothing (group type %s)", type);
	else
		findings_add(findings, problem(doctor, nic), "iommu", nic->address,
			     "boot with iommu=pt",
			     "translates its addresses (group type %s), which takes vfio, not "
			     "supported yet",
			     type);
	check_numa(doctor, nic);
}

static void check_nics(struct doctor *doctor) {
	struct findings *findings = &doctor->findings;
	unsigned supported = 0;

	if (*doctor->nics.error)
		findings_add(findings, FINDING_WARN, "nic", NULL,
			     "a container may hide the PCI bus: run it on the host",
			     "no list of PCI devices: %s", doctor->nics.error);
	for (unsigned i = 0; i < doctor->nics.n; i++) {
		const struct nic *nic = &doctor->nics.list[i];

		if (!nic->refused) {
			check_supported_nic(doctor, nic);
			supported++;
		} else if (nic == doctor->nic || nic->class == CLASS_ETHERNET) {
			findings_add(findings, nic == doctor->nic ? FINDING_FAIL : FINDING_SKIP,
				     "nic", nic->address, NULL, "%04x:%04x (class %04x, %s) is %s",
				     nic->vendor, nic->device, nic->class, nic->name, nic->refused);
		}
	}
	if (!is_software(doctor->device) && !doctor->nic)
		findings_add(findings, FINDING_FAIL, "nic", doctor->device,
			     "lspci -D lists what there is; software ports begin with soft:",
			     "no such device");
	else if (!supported && !*doctor->nics.error)
		findings_add(findings, FINDING_WARN, "nic", NULL, "use software ports (soft:NAME)",
			     "no 82599 in this machine");
}

/* --- privileges ---------------------------------------------------------------------------- */

/* Whether the kernel tells this process where its pages are: the frame number is 0 otherwise. */
static bool sees_physical_addresses(void) {
	volatile char page = 1;
	const long size = sysconf(_SC_PAGESIZE);
	const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	const bool read_it =
	    fd >= 0 && pread(fd, &entry, sizeof(entry),
			     (off_t)((uintptr_t)&page / size * sizeof(entry))) == sizeof(entry);

	if (fd >= 0) close(fd);
	return read_it && entry & ((UINT64_C(1) << 55) - 1);
}

static void check_privileges(struct doctor *doctor) {
	struct findings *findings = &doctor->findings;

	if (geteuid() == 0)
		findings_add(findings, FINDING_PASS, "root", NULL, NULL, "yes, as cards need");
	else
		findings_add(findings, problem(doctor, NULL), "root", NULL, "sudo",
			     "no: user %u may use software ports only", geteuid());
	if (sees_physical_addresses())
		findings_add(findings, FINDING_PASS, "pagemap", NULL, NULL,
			     "says where memory is, as cards need");
	else
		findings_add(findings, problem(doctor, NULL), "pagemap", NULL,
			     "run as root; in a container with CAP_SYS_ADMIN of the host",
			     "hides where memory is: cards cannot be told");
}

/* --- huge pages ---------------------------------------------------------------------------- */

static void check_pages_of(struct doctor *doctor, const char *name, int node) {
	const struct huge_pages pages = huge_pages_count(doctor->sysfs, node);
	const long needed = huge_pages_needed();
	const bool enough = pages.free >= needed;

	if (pages.total < 0) {
		/* A node without memory has no such files. */
		if (node < 0)
			findings_add(&doctor->findings, FINDING_WARN, "hugepages", name,
				     "a kernel with CONFIG_HUGETLBFS", "none of 2 MiB");
		return;
	}
	findings_add(&doctor->findings, enough ? FINDING_PASS : FINDING_WARN, "hugepages", name,
		     enough ? NULL : "setup-hugetlbfs.sh",
		     "%ld of 2 MiB, %ld free; a port with the defaults needs %ld", pages.total,
		     pages.free, needed);
}

static void check_pages(struct doctor *doctor) {
	char name[24];

	check_pages_of(doctor, NULL, -1);
	for (int node = 0; node < HUGE_MAX_NODES; node++) {
		snprintf(name, sizeof(name), "node%d", node);
		check_pages_of(doctor, name, node);
	}
}

static void check_mount(struct doctor *doctor) {
	struct findings *findings = &doctor->findings;
	const char *path = doctor->mount;
	struct stat st;

	if (!huge_mount_find(doctor->mount, sizeof(doctor->mount), doctor->mounts)) {
		findings_add(findings, problem(doctor, NULL), "mount", NULL,
			     "setup-hugetlbfs.sh, as root",
			     "no hugetlbfs with pages of 2 MiB is mounted");
	} else if (stat(path, &st)) {
		findings_add(findings, problem(doctor, NULL), "mount", path, NULL, "%s",
			     strerror(errno));
	} else if (faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS)) {
		findings_add(findings, problem(doctor, NULL), "mount", path,
			     "setup-hugetlbfs.sh --user NAME, as root",
			     "cannot be written: %s (owner %u, mode %04o)", strerror(errno),
			     st.st_uid, st.st_mode & 07777);
	} else {
		findings_add(findings, FINDING_PASS, "mount", path, NULL,
			     "can be written (owner %u, mode %04o)", st.st_uid, st.st_mode & 07777);
	}
}

/* --- leftovers ----------------------------------------------------------------------------- */

/* Opens a card and closes it, which resets it: then it writes nowhere, and its marks go. */
static void reset_marked(struct doctor *doctor, const char *mark) {
	const struct nic *nic = nics_get(&doctor->nics, mark);
	struct ixdp_config config;
	struct ixdp_port *port;

	/* As small as can be: huge pages may be short, as dead processes have them. */
	ixdp_config_init(&config);
	config.rx_ring = IXDP_MIN_RING;
	config.tx_queues = 0;
	if (!nic) {
		findings_add(&doctor->findings, FINDING_WARN, "clean", mark,
			     "if it was taken out, remove by hand the folder that it marks",
			     "no such device, so it cannot be reset");
	} else if (ixdp_open(&port, nic->address, &config)) {
		findings_add(&doctor->findings, problem(doctor, nic), "clean", mark,
			     "mend that, and --clean again", "cannot be reset: %s", ixdp_error());
	} else {
		ixdp_close(port);
		findings_add(&doctor->findings, FINDING_PASS, "clean", mark, NULL,
			     "was reset, and writes nowhere any more");
	}
}

static void clean_folder(void *arg, const struct huge_folder *folder) {
	if (folder->readable && !folder->alive)
		for (unsigned i = 0; i < folder->n_marks; i++)
			reset_marked(arg, folder->marks[i]);
}

/* Folders that no card marks go when a process makes its first pool. */
static void clean(struct doctor *doctor) {
	const struct ixdp_pool_config config = {.buffers = 1, .numa_node = -1};
	struct ixdp_pool *pool;

	/* Cut short it would leave a card in a state of its own; opening has its own limits. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	huge_folders_each(doctor->mount, clean_folder, doctor);
	if (ixdp_pool_create(&pool, &config) == 0) ixdp_pool_destroy(pool);
}

static void check_folder(void *arg, const struct huge_folder *folder) {
	struct doctor *doctor = arg;
	const unsigned mib = (unsigned)(folder->bytes >> 20);
	char marks[HUGE_MAX_MARKS * sizeof(folder->marks[0]) + 1] = "", fix[100 + sizeof(marks)];

	for (unsigned i = 0; i < folder->n_marks; i++) {
		strcat(marks, i ? " " : "");
		strcat(marks, folder->marks[i]);
	}
	if (!folder->readable)
		findings_add(&doctor->findings, FINDING_WARN, "leftovers", folder->name,
			     "run this as root", "cannot be looked into");
	else if (folder->alive)
		findings_add(&doctor->findings, FINDING_PASS, "leftovers", folder->name, NULL,
			     "none: its process lives, has %u MiB, cards: %s", mib,
			     *marks ? marks : "none");
	else if (!folder->n_marks)
		findings_add(&doctor->findings, FINDING_WARN, "leftovers", folder->name,
			     "ixdp-doctor --clean, or any program with ixdp",
			     "its process is dead; %u MiB, into which no card may write", mib);
	else {
		snprintf(fix, sizeof(fix), "ixdp-doctor --clean, which opens and so resets %s",
			 marks);
		findings_add(&doctor->findings, FINDING_WARN, "leftovers", folder->name, fix,
			     "its process is dead; %u MiB, into which may still write: %s", mib,
			     marks);
	}
}

static void count_folder(void *arg, const struct huge_folder *folder) {
	*(unsigned *)arg += !folder->readable || !folder->alive;
}

static void check_leftovers(struct doctor *doctor) {
	unsigned before = 0, after = 0;

	if (!*doctor->mount) return;
	huge_folders_each(doctor->mount, count_folder, &before);
	if (doctor->clean && before) clean(doctor);
	huge_folders_each(doctor->mount, count_folder, &after);
	if (after < before)
		findings_add(&doctor->findings, FINDING_PASS, "clean", doctor->mount, NULL,
			     "%u of %u folders of dead processes removed", before - after, before);
	huge_folders_each(doctor->mount, check_folder, doctor);
	if (!after)
		findings_add(&doctor->findings, FINDING_PASS, "leftovers", doctor->mount, NULL,
			     "of dead processes: none");
}

/* --- software ports ------------------------------------------------------------------------ */

/* A software port that was asked for: its name may be wrong, or a file that it needs. */
static void check_asked_port(struct doctor *doctor) {
	struct ixdp_port *port;
	struct ixdp_link link;

	if (ixdp_open(&port, doctor->device, NULL)) {
		findings_add(&doctor->findings, FINDING_FAIL, "software", doctor->device,
			     "see what it says", "cannot be opened: %s", ixdp_error());
		return;
	}
	const bool up = ixdp_link_wait(port, 1000, &link) == 0;

	findings_add(&doctor->findings, up ? FINDING_PASS : FINDING_FAIL, "software",
		     doctor->device, up ? NULL : "open it without fault=", "opened; link is %s",
		     up ? "up" : "down");
	ixdp_close(port);
}

/* --- selftest ------------------------------------------------------------------------------ */

static void selftest(struct doctor *doctor) {
	const struct nic *nic = doctor->nic;
	char what[200] = "software NIC";

	if (nic) {
		snprintf(what, sizeof(what), "%04x:%04x, %s", nic->vendor, nic->device, nic->name);
		findings_add(&doctor->findings, FINDING_INFO, "selftest", nic->address, NULL,
			     "takes the NIC from the kernel until it is through, some seconds");
		fflush(stdout);
	}
	/* As with clean(). */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	selftest_run(&doctor->findings, doctor->device, what, doctor->force);
}

/* ------------------------------------------------------------------------------------------- */

static void conclude(struct doctor *doctor) {
	struct findings *findings = &doctor->findings;
	const unsigned fail = findings->n[FINDING_FAIL], warn = findings->n[FINDING_WARN];
	const char *what = doctor->device ? doctor->device : "software ports";

	findings_add(findings, fail ? FINDING_FAIL : FINDING_PASS, "verdict", what,
		     fail ? "see the lines with FAIL" : NULL, "%s; %u to mend, %u to know of",
		     fail ? "cannot run" : "can run", fail, warn);
}

enum key { KEY_JSON = 0x200, KEY_CLEAN, KEY_SYSFS, KEY_SELFTEST, KEY_FORCE };

static const struct argp_option own_options[] = {
    {"clean", KEY_CLEAN, NULL, 0,
     "Remove what dead processes left in huge pages; resets cards that may write there", 0},
    {"selftest", KEY_SELFTEST, NULL, 0,
     "Take DEV, have it send frames to itself inside, and compare what comes back", 0},
    {"force", KEY_FORCE, NULL, 0, "With --selftest: take a NIC although it is in use", 0},
    {"json", KEY_JSON, NULL, 0, "One JSON object per line", 0},
    {"sysfs", KEY_SYSFS, "DIR", 0,
     "Another /sys, for tests; then DIR/mounts is /proc/mounts, and DIR has the locks of /run", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state) {
	struct doctor *doctor = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->err_stream = NULL; /* one line for wrong usage, as all programs have it */
		return 0;
	case KEY_JSON:
		doctor->findings.json = true;
		return 0;
	case KEY_CLEAN:
		doctor->clean = true;
		return 0;
	case KEY_SELFTEST:
		doctor->selftest = true;
		return 0;
	case KEY_FORCE:
		doctor->force = true;
		return 0;
	case KEY_SYSFS:
		doctor->sysfs = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (doctor->device) options_usage("%s: a second device; it takes one", arg);
		doctor->device = arg;
		return 0;
	case ARGP_KEY_END:
		if (doctor->clean && doctor->sysfs)
			options_usage("--clean: opens cards, which --sysfs cannot make up");
		if (doctor->selftest && doctor->sysfs)
			options_usage("--selftest: opens DEV, which --sysfs cannot make up");
		if (doctor->selftest && !doctor->device)
			options_usage("--selftest: DEV is missing: a PCI address or soft:NAME");
		if (doctor->force && !doctor->selftest)
			options_usage("--force: is for --selftest, nothing else takes a NIC");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char doc[] =
    "Says whether ixdp can run here, and what to do where it cannot.\n\n"
    "DEV is the PCI address of an Intel 82599 (0000:03:00.0) or a software port "
    "(soft:NAME[,key=value...]), which is the one that is to be used; without it, any software "
    "port.\v"
    "It prints a line per item: PASS, INFO, SKIP (a NIC that is none for ixdp), WARN (something to mend, "
    "but not in the way of DEV) or FAIL (in its way); what was looked at; what was found; and how "
    "to mend it. The last line is the verdict. The items are:\n\n"
    "  nic        cards, and whether ixdp knows them\n"
    "  use        who has a card: driver, interfaces, other programs\n"
    "  iommu      whether addresses are translated for a card\n"
    "  memory     whether there are huge pages on a card's NUMA node\n"
    "  root, pagemap\n"
    "             privileges that cards need\n"
    "  hugepages  how many there are, on each NUMA node\n"
    "  mount      the hugetlbfs, and whether it can be written\n"
    "  leftovers  memory of processes that died; what --clean did about it\n"
    "  software   whether a software port sends and receives\n"
    "  selftest, report\n"
    "             what --selftest found, and what to send in of it\n\n"
    "--selftest takes DEV for some seconds, looks for link, then has the NIC send frames to itself, "
    "inside, of all sizes, in many flows, with VLAN tags and checksums, and compares what comes back "
    "with what was sent, with statistics, and with what its filter should let through. No link is "
    "needed. A NIC that is in use is refused without --force.\n\n"
    "A process that dies leaves its huge pages behind in a folder of the hugetlbfs, as the card may "
    "go on writing there; a mark in the folder names the card. --clean opens each such card and "
    "closes it, which resets it and takes its mark away. That does not work while somebody else uses "
    "the card, or when it is no longer there: the line says so. Folders without marks go then, as "
    "they do whenever a program takes huge pages with ixdp, for the software port here as well. "
    "Apart from that, and without --selftest, nothing is changed, and no card is opened.\n\n"
    "Exit codes: 0 DEV can run, 1 it cannot, 2 wrong usage.";

int main(int argc, char **argv) {
	static const struct argp argp = {
	    .options = own_options, .parser = parse_option, .args_doc = "[DEV]", .doc = doc};
	static struct doctor doctor;
	char mounts[PATH_MAX] = "/proc/mounts";

	options_parse(&argp, argc, argv, &doctor);
	if (run_check_streams()) return EXIT_FAILURE;
	/* A reader that leaves does not end it in the middle of a reset. */
	signal(SIGPIPE, SIG_IGN);
	if (doctor.sysfs) snprintf(mounts, sizeof(mounts), "%s/mounts", doctor.sysfs);
	doctor.locks = doctor.sysfs ? doctor.sysfs : "/run";
	doctor.sysfs = doctor.sysfs ? doctor.sysfs : "/sys";
	doctor.mounts = mounts;
	nics_find(&doctor.nics, doctor.sysfs);
	if (!is_software(doctor.device)) doctor.nic = nics_get(&doctor.nics, doctor.device);

	check_nics(&doctor);
	check_privileges(&doctor);
	check_mount(&doctor);
	check_leftovers(&doctor);
	check_pages(&doctor);
	if (!doctor.selftest && doctor.device && is_software(doctor.device))
		check_asked_port(&doctor);
	selftest_software(&doctor.findings,
			  is_software(doctor.device) ? FINDING_FAIL : FINDING_WARN);
	if (doctor.selftest && (is_software(doctor.device) || (doctor.nic && !doctor.nic->refused)))
		selftest(&doctor);
	conclude(&doctor);
	nics_free(&doctor.nics);
	return report_flush() || options_error_logged() || doctor.findings.n[FINDING_FAIL]
		   ? EXIT_FAILURE
		   : EXIT_SUCCESS;
}
