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

/* fwd: a generator of FRAMES, each forwarded back out; pktgen: FRAMES, each looped back. */
#define FWD "ixdp-fwd", "--json"
#define PKTGEN "ixdp-pktgen", "--json", "--rate", "100kpps", "--count", "2000"
#define CAPTURE "ixdp-capture", "--json", "-w", "/dev/null"
#define GEN "soft:a,peer=gen,rate=100kpps,count=2000,fault="
#define LOOP "soft:a,peer=loop,fault="

struct row {
	const char *args[8];
	int status;
	/* What stderr says, line by line, behind the program's name; patterns of fnmatch(). */
	const char *says[MAX_LINES];
	/* Of the totals, if there are any; or one of those below. */
	bool no_totals;
	int received, sent, rx_dropped;
};

/* Nothing was lost. */
#define ALL .received = FRAMES, .sent = FRAMES
/* It was not started, or has gone. */
#define NONE .status = 1, .no_totals = true
/* Somewhere in the middle. */
#define STUCK .status = 1, .received = ANY, .sent = ANY, .rx_dropped = ANY

/* The README of tests has the same list, for doing it by hand. */
static const struct row rows[] = {
    /* The longest first. */
    {{"ixdp-fwd", "--json", "--duration", "0.1", GEN "link-down"},
     .status = 1,
     .says = {"warning: soft:a: waiting for link",
	      "soft:a: no link after 10 s: LINKS.UP (register 0x042a4) is still clear; cable, "
	      "module, or peer?"}},
    {{PKTGEN, LOOP "link-down"},
     .status = 1,
     .says = {"warning: soft:a: waiting for link",
	      "soft:a: no link after 10 s: LINKS.UP (register 0x042a4) is still clear; cable, "
	      "module, or peer?"}},
    {{FWD, GEN "none"}, ALL},
    {{FWD, GEN "reset-stuck"},
     NONE,
     .says = {"soft:a: CTRL.RST (register 0x00000, bits 0x04000000) is still set after 100 ms"}},
    {{FWD, GEN "eeprom-stuck"},
     NONE,
     .says = {"soft:a: EEC.ARD (register 0x10010, bits 0x00000200) is still clear after 500 ms"}},
    {{FWD, GEN "dmai-stuck"},
     NONE,
     .says = {"soft:a: RDRXCTL.DMAIDONE (register 0x02f00, bits 0x00000008) is still clear after "
	      "500 ms"}},
    /* The driver looks twice at least, however slow the machine. */
    {{FWD, GEN "enable-late:1"}, ALL},
    {{FWD, GEN "enable-late:999999999"},
     NONE,
     .says = {"soft:a: RXDCTL.ENABLE (register 0x01028, bits 0x02000000) is still clear after 10 "
	      "ms"}},
    {{FWD, GEN "enable-never"},
     NONE,
     .says = {"soft:a: RXDCTL.ENABLE (register 0x01028, bits 0x02000000) is still clear after 10 "
	      "ms"}},
    /* Both are met when the port is closed; the reset then ends what did not end by itself. */
    {{FWD, GEN "disable-late:1"}, ALL},
    {{FWD, GEN "disable-never"},
     ALL,
     .says = {"warning: soft:a: RXDCTL.ENABLE (register 0x01028, bits 0x02000000) is still set "
	      "after 10 ms; resetting"}},
    /* On opening, and on closing. */
    {{FWD, GEN "master-stuck"},
     ALL,
     .says = {"warning: soft:a: STATUS.MASTER_ENABLE (register 0x00008, bits 0x00080000) is still "
	      "set after 80 ms; transactions are not pending; flushing and resetting twice",
	      "warning: soft:a: STATUS.MASTER_ENABLE (register 0x00008, bits 0x00080000) is still "
	      "set after 80 ms; transactions are not pending; flushing and resetting twice"}},
    {{FWD, GEN "link-late:300"}, ALL},
    {{FWD, GEN "link-late:3000"}, ALL, .says = {"warning: soft:a: waiting for link"}},
    {{FWD, GEN "link-flap:3:5"}, ALL},
    {{PKTGEN, LOOP "link-flap:3:5"}, ALL},
    {{FWD, GEN "secrx-stuck"},
     NONE,
     .says = {"soft:a: SECRXSTAT.RDY (register 0x08d04, bits 0x00000001) is still clear after 40 "
	      "ms"}},
    /* Whoever leaves AUTOC to the firmware needs no semaphore. */
    {{FWD, GEN "semaphore-held"}, ALL},
    {{FWD, GEN "wrong-mac"},
     NONE,
     .says = {"soft:a: EEPROM bad? Receive address 0 (RAL, RAH) 03:ec:01:86:4c:dc is not a unicast "
	      "address"}},
    {{FWD, GEN "all-ones"},
     NONE,
     .says = {"soft:a: device does not answer: STATUS reads 0xffffffff"}},
    {{FWD, GEN "gone-after:500"},
     NONE,
     .says = {"soft:a: device has gone: LINKS reads 0xffffffff"}},
    {{PKTGEN, LOOP "gone-after:500"},
     NONE,
     .says = {"soft:a: device has gone: LINKS reads 0xffffffff"}},
    {{CAPTURE, GEN "gone-after:500"},
     NONE,
     .says = {"soft:a: device has gone: LINKS reads 0xffffffff"}},
    /* Whoever looks in between finds no length, and has a frame less, which is counted. */
    {{FWD, GEN "torn"}, .received = SOME, .sent = SOME, .rx_dropped = ANY},
    {{FWD, GEN "len-zero:10"}, .received = 1800, .sent = 1800, .rx_dropped = 200},
    {{PKTGEN, LOOP "len-zero:10"}, .received = 1800, .sent = 2000, .rx_dropped = 200},
    {{CAPTURE, GEN "len-zero:1"}, .rx_dropped = 2000},
    {{FWD, GEN "bad-crc:10"}, .received = 1800, .sent = 1800, .rx_dropped = 200},
    {{PKTGEN, LOOP "bad-crc:10"}, .received = 1800, .sent = 2000, .rx_dropped = 200},
    {{FWD, GEN "dd-late:20"}, ALL},
    {{PKTGEN, LOOP "dd-late:20"}, ALL},
    {{FWD, GEN "tx-stop"},
     STUCK,
     .says = {"soft:a: does not send: tx_packets stays at 0, 511 more are in its TX rings; given "
	      "up after 2 s"}},
    {{PKTGEN, LOOP "tx-stop"},
     STUCK,
     .says = {"soft:a: does not send: tx_packets stays at 0, 511 more are in its TX rings; given "
	      "up after 2 s"}},
    /* As quiet as a line on which nothing comes: what waits for room is not lost ... */
    {{"ixdp-fwd", "--json", "--duration", "0.3", GEN "rx-stop"}, .status = 0},
    {{PKTGEN, LOOP "rx-stop"},
     .status = 1,
     .sent = FRAMES,
     .says = {"soft:a: does not receive: rx_packets stays at 0, more are on its wire; given up "
	      "after 2 s"}},
    /* ... and what does not wait is counted, once the port receives. */
    {{"ixdp-fwd", "--json", "--duration", "0.3", "soft:a,peer=gen,drop=on,fault=rx-stop"},
     .rx_dropped = SOME},
    {{FWD, GEN "rs-hang:31"}, ALL},
    {{FWD, GEN "rs-hang:20"},
     STUCK,
     .says = {"warning: soft:a: TDT?0?: descriptor 20: more descriptors without RS than "
	      "fault=rs-hang says (0x15): the queue hangs",
	      "soft:a: does not send: tx_packets stays at 20, * more are in its TX rings; given up "
	      "after 2 s"}},
    {{FWD, GEN "iommu:100"},
     STUCK,
     .says = {"warning: soft:a: ?D*?0?: * (fault=iommu)",
	      "warning: soft:a: ?D*?0?: * (fault=iommu)",
	      "soft:a: does not send: tx_packets stays at *, * more are in its TX rings; given up "
	      "after 2 s"}},
    /* Descriptor, buffer, descriptor ...: it strikes buffers, of which the card does not tell. */
    {{CAPTURE, GEN "iommu:100"},
     .received = FRAMES,
     .says = {"warning: soft:a: RDBAL?0?: DMA write of 60 bytes at 0x* refused by the IOMMU "
	      "(fault=iommu)"}},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char *device_of(const struct row *row) {
	unsigned n = 0;

	while (n + 1 < sizeof(row->args) / sizeof(row->args[0]) && row->args[n + 1])
		n++;
	return row->args[n];
}

static const char *fault_of(const struct row *row) { return strstr(device_of(row), "fault=") + 6; }

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
		char pattern[400];

		snprintf(pattern, sizeof(pattern), "%s: %s", row->args[0], row->says[i]);
		line = next_line(&at);
		if (!line || fnmatch(pattern, line, 0))
			fail_msg("%s:\n  must say: %s\n  but says: %s", device_of(row), pattern,
				 line ? line : "nothing");
	}
	if ((line = next_line(&at)))
		fail_msg("%s: has this to say as well: %s", device_of(row), line);
	free(copy);
}

static void check_total(const struct row *row, struct json_object *final, const char *name,
			int value) {
	const int64_t is = json_int(final, name);

	if (value == SOME ? is <= 0 : value != ANY && is != value)
		fail_msg("%s: %s must be %d: %s", device_of(row), name, value,
			 json_object_to_json_string(final));
}

static void check_totals(const struct row *row, struct program *program) {
	struct json_object *final;

	if (row->no_totals) {
		if (program->out.len) fail_msg("%s: totals: %s", device_of(row), program->out.data);
		return;
	}
	final = program_final(program, "soft:a");
	check_total(row, final, "rx_packets", row->received);
	check_total(row, final, "tx_packets", row->sent);
	check_total(row, final, "rx_dropped", row->rx_dropped);
	/* Nothing is lost but what is counted. */
	if (row->status == 0 && !strstr(device_of(row), "drop=on"))
		assert_int_equal(json_int(final, "rx_packets") + json_int(final, "rx_dropped"),
				 json_int(final, "wire_tx_packets"));
	assert_int_equal(json_int(final, "tx_packets"), json_int(final, "wire_rx_packets"));
}

static void check_row(const struct row *row, struct program *program) {
	const int status = program_wait(program);

	if (status != row->status)
		fail_msg("%s: exits with %d: %s", device_of(row), status, program->err.data);
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
		if (i < ROWS) program_start(&programs[i], rows[i].args);
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
		list_add(&tested, fault_of(&rows[i]), SIZE_MAX);
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
