/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every fault of the software NIC by command line: the program recovers, with counters that say
 * what happened, or says in one line which register, bit or counter it was, and exits with 1. It
 * ends in bounded time either way, and leaves no huge page behind.
 */
#include "program.h"

#include <dirent.h>
#include <fnmatch.h>
#include <mntent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ANY = -1, SOME = -2 };
enum { FRAMES = 2000, MAX_LINES = 3, TOGETHER = 3 };

/* Frames that go round: from a generator through ixdp-fwd, from ixdp-pktgen over a loop. */
#define FWD .program = "ixdp-fwd", .device = "soft:a,peer=gen,rate=100kpps,count=2000"
#define PKTGEN                                                                                     \
	.program = "ixdp-pktgen", .device = "soft:a,peer=loop",                                    \
	.args = {"--rate", "100kpps", "--count", "2000"}
#define CAPTURE                                                                                    \
	.program = "ixdp-capture", .device = "soft:a,peer=gen,rate=100kpps,count=2000",            \
	.args = {"-w", "/dev/null"}

struct row {
	const char *fault, *program, *device, *args[4];
	int status;
	/* What stderr says, line by line, behind program and port; patterns of fnmatch(). */
	const char *says[MAX_LINES];
	/* Of the totals, if there are any; or one of those above. */
	bool no_totals;
	int received, sent, rx_dropped;
	int uncounted; /* sent, but not counted by the NIC */
};

/* Nothing was lost. */
#define ALL .received = FRAMES, .sent = FRAMES
/* It was not started, or has gone. */
#define NONE .status = 1, .no_totals = true
/* Somewhere in the middle. */
#define STUCK .status = 1, .received = ANY, .sent = ANY, .rx_dropped = ANY

#define NO_LINK                                                                                    \
	"no link after 10 s: LINKS.UP (register 0x042a4) is still clear; cable, module, or peer?"
#define NO_ENABLE "RXDCTL.ENABLE (register 0x01028, bits 0x02000000) is still clear after 10 ms"
#define NO_DISABLE                                                                                 \
	"RXDCTL.ENABLE (register 0x01028, bits 0x02000000) is still set after 10 ms; resetting"
#define MASTER                                                                                     \
	"STATUS.MASTER_ENABLE (register 0x00008, bits 0x00080000) is still set after 80 ms; "      \
	"transactions are not pending; flushing and resetting twice"
#define NO_MAC "EEPROM bad? Receive address 0 (RAL, RAH) 03:ec:01:86:4c:dc is not a unicast address"
#define RS_HANG                                                                                    \
	"TDT?0?: descriptor 20: more descriptors without RS than fault=rs-hang says (0x15): the "  \
	"queue hangs"
#define NOTHING_SENT                                                                               \
	"does not send: tx_packets stays at 0, 511 more are in its TX rings; given up after 2 s"
#define NO_MORE_SENT                                                                               \
	"does not send: tx_packets stays at *, * more are in its TX rings; given up after 2 s"
#define NOTHING_RECEIVED                                                                           \
	"does not receive: rx_packets stays at 0, more are on its wire; given up after 2 s"
#define REFUSED "RDBAL?0?: DMA write of 60 bytes at 0x* refused by the IOMMU (fault=iommu)"

/* The README of tests has the same list, for doing it by hand. */
static const struct row rows[] = {
    /* The longest first. "W: " stands for a warning of the driver or the NIC. */
    {"link-down", FWD, .args = {"--duration", "0.1"}, .status = 1,
     .says = {"W: waiting for link", NO_LINK}},
    {"link-down", PKTGEN, .status = 1, .says = {"W: waiting for link", NO_LINK}},
    {"none", FWD, ALL},
    {"reset-stuck", FWD, NONE,
     .says = {"CTRL.RST (register 0x00000, bits 0x04000000) is still set after 100 ms"}},
    {"eeprom-stuck", FWD, NONE,
     .says = {"EEC.ARD (register 0x10010, bits 0x00000200) is still clear after 500 ms"}},
    {"dmai-stuck", FWD, NONE,
     .says = {"RDRXCTL.DMAIDONE (register 0x02f00, bits 0x00000008) is still clear after 500 ms"}},
    /* The driver looks twice at least, however slow the machine. */
    {"enable-late:1", FWD, ALL},
    {"enable-late:999999999", FWD, NONE, .says = {NO_ENABLE}},
    {"enable-never", FWD, NONE, .says = {NO_ENABLE}},
    /* Both are met when the port is closed; the reset then ends what did not end by itself. */
    {"disable-late:1", FWD, ALL},
    {"disable-never", FWD, ALL, .says = {"W: " NO_DISABLE}},
    /* On opening, and on closing. */
    {"master-stuck", FWD, ALL, .says = {"W: " MASTER, "W: " MASTER}},
    {"link-late:300", FWD, ALL},
    {"link-late:3000", FWD, ALL, .says = {"W: waiting for link"}},
    {"link-flap:3:5", FWD, ALL},
    {"link-flap:3:5", PKTGEN, ALL},
    {"secrx-stuck", FWD, NONE,
     .says = {"SECRXSTAT.RDY (register 0x08d04, bits 0x00000001) is still clear after 40 ms"}},
    /* Whoever leaves AUTOC to the firmware needs no semaphore. */
    {"semaphore-held", FWD, ALL},
    {"stale-counters", FWD, ALL},
    /* Only who looks at content, counts, or queues notices these: see ixdp-doctor --selftest. */
    {"corrupt:10", FWD, ALL},
    {"miscount:10", FWD, .received = FRAMES, .sent = 1800, .uncounted = 200},
    {"no-rss", FWD, ALL},
    {"no-offload", FWD, ALL},
    {"no-filter", FWD, ALL},
    {"wrong-mac", FWD, NONE, .says = {NO_MAC}},
    {"all-ones", FWD, NONE, .says = {"device does not answer: STATUS reads 0xffffffff"}},
    {"gone-after:500", FWD, NONE, .says = {"device has gone: LINKS reads 0xffffffff"}},
    {"gone-after:500", PKTGEN, NONE, .says = {"device has gone: LINKS reads 0xffffffff"}},
    {"gone-after:500", CAPTURE, NONE, .says = {"device has gone: LINKS reads 0xffffffff"}},
    /* Whoever looks in between finds no length, and has a frame less, which is counted. */
    {"torn", FWD, .received = SOME, .sent = SOME, .rx_dropped = ANY},
    {"len-zero:10", FWD, .received = 1800, .sent = 1800, .rx_dropped = 200},
    {"len-zero:10", PKTGEN, .received = 1800, .sent = 2000, .rx_dropped = 200},
    {"len-zero:1", CAPTURE, .rx_dropped = 2000},
    {"bad-crc:10", FWD, .received = 1800, .sent = 1800, .rx_dropped = 200},
    {"bad-crc:10", PKTGEN, .received = 1800, .sent = 2000, .rx_dropped = 200},
    {"dd-late:20", FWD, ALL},
    {"dd-late:20", PKTGEN, ALL},
    {"tx-stop", FWD, STUCK, .says = {NOTHING_SENT}},
    {"tx-stop", PKTGEN, STUCK, .says = {NOTHING_SENT}},
    /* As quiet as a line on which nothing comes: what waits for room is not lost ... */
    {"rx-stop", FWD, .args = {"--duration", "0.3"}},
    {"rx-stop", PKTGEN, .status = 1, .sent = FRAMES, .says = {NOTHING_RECEIVED}},
    /* ... and what does not wait is counted, once the port receives. */
    {"rx-stop", .program = "ixdp-fwd", .device = "soft:a,peer=gen,drop=on",
     .args = {"--duration", "0.3"}, .rx_dropped = SOME},
    {"rs-hang:31", FWD, ALL},
    {"rs-hang:20", FWD, STUCK, .says = {"W: " RS_HANG, NO_MORE_SENT}},
    {"iommu:100", FWD, STUCK, .says = {"W: * (fault=iommu)", "W: * (fault=iommu)", NO_MORE_SENT}},
    /* It strikes buffers here, and of that the card does not tell the driver. */
    {"iommu:100", CAPTURE, .received = FRAMES, .says = {"W: " REFUSED}},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* --- what is left behind ------------------------------------------------------------------ */

/* Folders of a process on any hugetlbfs. */
static unsigned count_leftovers(pid_t pid) {
	FILE *mounts = setmntent("/proc/mounts", "re");
	const struct mntent *mount;
	char name[40];
	unsigned count = 0;

	snprintf(name, sizeof(name), "ixdp-%d-", pid);
	while (mounts && (mount = getmntent(mounts))) {
		DIR *dir = strcmp(mount->mnt_type, "hugetlbfs") ? NULL : opendir(mount->mnt_dir);
		const struct dirent *entry;

		while (dir && (entry = readdir(dir)))
			count +=
			    !strncmp(entry->d_name + (*entry->d_name == '.'), name, strlen(name));
		if (dir) closedir(dir);
	}
	if (mounts) endmntent(mounts);
	return count;
}

/* --- a row -------------------------------------------------------------------------------- */

/* The next line that is not about huge pages, which this machine need not have. */
static const char *next_line(char **at) {
	const char *line;

	do
		line = strsep(at, "\n");
	while (line && (!*line || strstr(line, "ordinary pages instead of huge ones")));
	return line;
}

static void check_stderr(const struct row *row, const char *text) {
	char *copy = strdup(text), *at = copy;
	const char *line;

	for (unsigned i = 0; i < MAX_LINES && row->says[i]; i++) {
		const bool warns = !strncmp(row->says[i], "W: ", 3);
		char pattern[400];

		snprintf(pattern, sizeof(pattern), "%s: %ssoft:a: %s", row->program,
			 warns ? "warning: " : "", row->says[i] + (warns ? 3 : 0));
		line = next_line(&at);
		if (!line || fnmatch(pattern, line, 0))
			fail_msg("%s:\n  must say: %s\n  but says: %s", row->fault, pattern,
				 line ? line : "nothing");
	}
	if ((line = next_line(&at))) fail_msg("%s: has this to say as well: %s", row->fault, line);
	free(copy);
}

static void check_total(const struct row *row, struct json_object *final, const char *name,
			int value) {
	const int64_t is = json_int(final, name);

	if (value == SOME ? is <= 0 : value != ANY && is != value)
		fail_msg("%s: %s must be %d: %s", row->fault, name, value,
			 json_object_to_json_string(final));
}

static void check_totals(const struct row *row, struct program *program) {
	struct json_object *final;

	if (row->no_totals) {
		if (program->out.len) fail_msg("%s: totals: %s", row->fault, program->out.data);
		return;
	}
	final = program_final(program, "soft:a");
	check_total(row, final, "rx_packets", row->received);
	check_total(row, final, "tx_packets", row->sent);
	check_total(row, final, "rx_dropped", row->rx_dropped);
	/* Nothing is lost but what is counted. */
	if (row->status == 0 && !strstr(row->device, "drop=on"))
		assert_int_equal(json_int(final, "rx_packets") + json_int(final, "rx_dropped"),
				 json_int(final, "wire_tx_packets"));
	assert_int_equal(json_int(final, "tx_packets") + row->uncounted,
			 json_int(final, "wire_rx_packets"));
}

static void start_row(const struct row *row, struct program *program) {
	const char *argv[8] = {row->program, "--json"};
	char device[100];
	unsigned n = 2;

	for (unsigned i = 0; i < sizeof(row->args) / sizeof(row->args[0]) && row->args[i]; i++)
		argv[n++] = row->args[i];
	snprintf(device, sizeof(device), "%s,fault=%s", row->device, row->fault);
	argv[n] = device;
	program_start(program, argv);
}

static void check_row(const struct row *row, struct program *program) {
	const int status = program_wait(program);

	if (status != row->status)
		fail_msg("%s: exits with %d: %s", row->fault, status, program->err.data);
	check_stderr(row, program->err.data);
	check_totals(row, program);
	assert_int_equal(count_leftovers(program->pid), 0);
	program_free(program);
}

/* Most of the time is waited for something that never comes; so some wait together. */
static void every_fault_ends_well_or_is_named(void **state) {
	struct program programs[ROWS];

	(void)state;
	for (unsigned i = 0; i < ROWS + TOGETHER; i++) {
		if (i >= TOGETHER) check_row(&rows[i - TOGETHER], &programs[i - TOGETHER]);
		if (i < ROWS) start_row(&rows[i], &programs[i]);
	}
}

/* --- the list of faults ------------------------------------------------------------------- */

enum { MAX_FAULTS = 64 };

struct list {
	char names[MAX_FAULTS][32];
	unsigned n;
};

/* Adds a name of len bytes, up to its colon; the same again is not added. */
static void list_add(struct list *list, const char *name, size_t len) {
	const size_t end = strcspn(name, ": `,\n");

	len = len < end ? len : end;
	assert_true(len > 0 && len < sizeof(list->names[0]));
	for (unsigned i = 0; i < list->n; i++)
		if (strlen(list->names[i]) == len && !strncmp(list->names[i], name, len)) return;
	assert_true(list->n < MAX_FAULTS);
	memcpy(list->names[list->n++], name, len);
}

static void assert_same(const struct list *list, const struct list *known, const char *where) {
	for (unsigned i = 0; i < known->n; i++) {
		bool found = false;

		for (unsigned k = 0; k < list->n; k++)
			found |= !strcmp(list->names[k], known->names[i]);
		if (!found) fail_msg("%s lacks the fault %s", where, known->names[i]);
	}
	if (list->n != known->n) fail_msg("%s has more faults than the software NIC", where);
}

/* What the NIC itself says that there are. */
static void ask_for_faults(struct list *list) {
	struct program program;
	const char *at;

	program_start(&program, PROGRAM_ARGS("ixdp-fwd", "soft:a,fault=?"));
	assert_int_equal(program_wait(&program), 1);
	at = strstr(program.err.data, "there are: ");
	assert_non_null(at);
	for (at += strlen("there are: "); at; at = strstr(at, ", ") ? strstr(at, ", ") + 2 : NULL)
		list_add(list, at, SIZE_MAX);
	program_free(&program);
}

/* Names in backquotes at the beginning of the rows of tables below a heading. */
static void read_table(struct list *list, const char *file, const char *heading) {
	char path[4096], line[2000];
	bool below = false;
	FILE *text;

	snprintf(path, sizeof(path), "%s/%s", getenv("IXDP_SOURCE"), file);
	text = fopen(path, "re");
	assert_non_null(text);
	while (fgets(line, sizeof(line), text)) {
		if (!strncmp(line, heading, strlen(heading)))
			below = true;
		else if (below && *line == '#')
			break;
		for (const char *at = line + 2; below && !strncmp(line, "| `", 3) && *at == '`';) {
			list_add(list, at + 1, SIZE_MAX);
			at = strchr(at + 1, '`') + 1;
			if (!strncmp(at, ", ", 2)) at += 2;
		}
	}
	fclose(text);
}

/* The items of the manual page's section. */
static void read_manual(struct list *list) {
	char path[4096], line[2000];
	bool below = false;
	FILE *text;

	snprintf(path, sizeof(path), "%s/examples/man/ixdp.7", getenv("IXDP_SOURCE"));
	text = fopen(path, "re");
	assert_non_null(text);
	while (fgets(line, sizeof(line), text)) {
		if (!strncmp(line, ".Sh ", 4)) below = !strcmp(line, ".Sh FAULTS\n");
		if (below && !strncmp(line, ".It Cm ", 7)) list_add(list, line + 7, SIZE_MAX);
	}
	fclose(text);
}

static void all_lists_of_faults_are_the_same(void **state) {
	struct list nic = {0}, tested = {0}, readme = {0}, tests = {0}, manual = {0};

	(void)state;
	ask_for_faults(&nic);
	assert_true(nic.n > 20);
	for (unsigned i = 0; i < ROWS; i++)
		list_add(&tested, rows[i].fault, SIZE_MAX);
	assert_same(&tested, &nic, "the table of this test");
	read_table(&readme, "src/softnic/README.md", "| Fault |");
	assert_same(&readme, &nic, "src/softnic/README.md");
	read_table(&tests, "test/README.md", "## Faults");
	assert_same(&tests, &nic, "test/README.md");
	read_manual(&manual);
	assert_same(&manual, &nic, "examples/man/ixdp.7");
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_fault_ends_well_or_is_named),
	    cmocka_unit_test(all_lists_of_faults_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
