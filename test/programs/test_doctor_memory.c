/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-doctor from end to end: huge pages, and what dead processes left in them. */
#include "doctor.h"
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <ixdp/ixdp.h>
#include <mntent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- huge pages ---------------------------------------------------------------------------- */

static void counts_pages_of_machine_and_nodes(void **state) {
	struct program program;

	(void)state;
	write_text(DOCTOR_PAGES "/resv_hugepages", "199\n");
	doctor_set_pages("devices/system/node/node5/hugepages/hugepages-2048kB", "7\n", "7\n");
	doctor_run(&program, NULL);
	doctor_found(&program, "WARN", "hugepages", "", "256 of 2 MiB, 1 free");
	doctor_found(&program, "PASS", "hugepages", "node1", "128 of 2 MiB, 100 free");
	doctor_found(&program, "PASS", "hugepages", "node5", "7 of 2 MiB, 7 free");
	assert_null(doctor_finding(&program, "hugepages", "node0"));
	program_free(&program);
}

static void a_node_without_pages_is_in_the_way_of_its_card(void **state) {
	(void)state;
	doctor_set_pages(DOCTOR_NODE1, "10\n", "2\n");
	doctor_in_the_way("memory", ADDRESS, "node 1, which has 2 free");
	/* 10 there, 5 needed, 2 free. */
	doctor_in_the_way("memory", ADDRESS, "setup-hugetlbfs.sh --pages 13");
	/* A card of no node takes them from anywhere. */
	write_text(DEVICE "/numa_node", "-1\n");
	doctor_passes("memory", ADDRESS, "any node, which has 200 free");
}

static void without_a_hugetlbfs_no_card_runs(void **state) {
	(void)state;
	write_text("mounts", "hugetlbfs /nonexistent hugetlbfs rw,pagesize=1024M 0 0\n");
	doctor_in_the_way("mount", "", "setup-hugetlbfs.sh");
}

static void the_mount_must_be_there(void **state) {
	struct program program;

	(void)state;
	write_text("mounts", "hugetlbfs /nonexistent hugetlbfs rw,pagesize=2M 0 0\n");
	doctor_run(&program, ADDRESS);
	doctor_found(&program, "FAIL", "mount", "/nonexistent", "No such file");
	program_free(&program);
}

static void the_mount_must_be_writable(void **state) {
	(void)state;
	if (geteuid() == 0) {
		print_message("root may write everywhere: nothing to test\n");
		skip();
	}
	chmod(in_root("huge"), 0555);
	doctor_in_the_way("mount", in_root("huge"), "--user NAME");
}

/* What the doctor says a port needs is what one takes. */
static void a_port_needs_so_many_pages(void **state) {
	struct ixdp_pool_stats stats;
	struct json_object *object;
	struct ixdp_port *port;
	struct program program;
	long needed = 0, bytes = 0;
	char line[500];
	FILE *maps;

	(void)state;
	doctor_run(&program, NULL);
	object = doctor_finding(&program, "hugepages", "");
	assert_non_null(object);
	assert_int_equal(sscanf(strstr(doctor_text(object, "text"), "needs"), "needs %ld", &needed),
			 1);
	program_free(&program);

	assert_int_equal(ixdp_open(&port, "soft:a", NULL), 0);
	ixdp_pool_get_stats(ixdp_port_pool(port), &stats);
	if (!stats.huge_pages) {
		ixdp_close(port);
		print_message("no huge pages here\n");
		skip();
	}
	maps = fopen("/proc/self/maps", "re");
	while (fgets(line, sizeof(line), maps)) {
		unsigned long begin, end;

		if (strstr(line, "/ixdp-") && strstr(line, "/mem-") &&
		    sscanf(line, "%lx-%lx", &begin, &end) == 2)
			bytes += (long)(end - begin);
	}
	fclose(maps);
	ixdp_close(port);
	assert_int_equal(bytes, needed * 2 * 1024 * 1024);
}

/* --- leftovers ----------------------------------------------------------------------------- */

/* Makes a file as a hugetlbfs allows it: nothing can be written into one. */
static void add_file(const char *folder, const char *name, off_t size) {
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "huge/%s/%s", folder, name);
	fd = open(in_root(path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

static void add_leftover(const char *folder, unsigned mib, const char *mark) {
	char path[100];

	snprintf(path, sizeof(path), "huge/%s", folder);
	make_folder(path);
	add_file(folder, "mem-0", (off_t)mib << 20);
	if (mark) add_file(folder, mark, 0);
}

static void tells_the_dead_from_the_living(void **state) {
	struct program program;
	int fd;

	(void)state;
	add_leftover("ixdp-1-1", 4, NULL);
	add_leftover("ixdp-2-2", 6, "device-0000:03:00.0");
	add_file("ixdp-2-2", "device-0000:03:00.1", 0);
	add_leftover("ixdp-3-3", 8, "device-0000:05:00.0");
	fd = open(in_root("huge/ixdp-3-3"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	add_leftover("other", 2, NULL);

	doctor_run(&program, ADDRESS);
	doctor_found(&program, "WARN", "leftovers", "ixdp-1-1", "dead; 4 MiB, into which no card");
	doctor_found(&program, "WARN", "leftovers", "ixdp-2-2", "dead; 6 MiB, into which may");
	doctor_found(&program, "WARN", "leftovers", "ixdp-2-2", "0000:03:00.0");
	doctor_found(&program, "WARN", "leftovers", "ixdp-2-2", "0000:03:00.1");
	doctor_found(&program, "PASS", "leftovers", "ixdp-3-3", "lives, has 8 MiB, cards: 0000:05");
	assert_null(doctor_finding(&program, "leftovers", "other"));
	assert_null(doctor_finding(&program, "leftovers", in_root("huge")));
	program_free(&program);
	close(fd);
	/* Looking does not touch. */
	assert_true(is_empty("huge/ixdp-2-2/device-0000:03:00.0"));
	assert_int_equal(access(in_root("huge/ixdp-1-1/mem-0"), F_OK), 0);
}

static void names_on_the_mount_are_not_trusted(void **state) {
	struct program program;

	(void)state;
	make_folder("elsewhere");
	assert_int_equal(symlink("../elsewhere", in_root("huge/ixdp-4-4")), 0);
	add_leftover("ixdp-5\nPASS  verdict\x1b[2J", 2, NULL);
	doctor_run(&program, NULL);
	doctor_found(&program, "WARN", "leftovers", "ixdp-4-4", "cannot be looked into");
	program_free(&program);
	program_start(&program, PROGRAM_ARGS("ixdp-doctor", "--sysfs", root));
	assert_int_equal(program_wait(&program), 0);
	assert_non_null(strstr(program.out.data, "WARN  leftovers ixdp-5?PASS  verdict?[2J: "));
	program_free(&program);
}

/* A hugetlbfs of this test's own at root/huge, in a mount namespace that goes with it. */
static bool mount_own_hugetlbfs(void) {
	FILE *mounts;
	struct mntent *mount_point;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) return false;
	mounts = setmntent("/proc/self/mounts", "re");
	while ((mount_point = getmntent(mounts)))
		if (!strcmp(mount_point->mnt_type, "hugetlbfs"))
			umount2(mount_point->mnt_dir, MNT_DETACH);
	endmntent(mounts);
	return mount("hugetlbfs", in_root("huge"), "hugetlbfs", 0, "pagesize=2M") == 0;
}

static void clean_removes_what_no_card_may_write_into(void **state) {
	struct program program;
	int fd;

	(void)state;
	if (!mount_own_hugetlbfs()) {
		print_message("needs root, to mount a hugetlbfs: %s\n", strerror(errno));
		skip();
	}
	add_leftover("ixdp-1-1", 4, NULL);
	add_leftover("ixdp-2-2", 6, "device-7fff:ff:1f.7");
	add_leftover("ixdp-3-3", 8, "device-7fff:ff:1f.6");
	fd = open(in_root("huge/ixdp-3-3"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);

	program_start(&program, PROGRAM_ARGS("ixdp-doctor", "--json", "--clean"));
	assert_int_equal(program_wait(&program), 0);
	doctor_found(&program, "PASS", "clean", in_root("huge"), "1 of 2 folders");
	doctor_found(&program, "WARN", "clean", "7fff:ff:1f.7", "remove by hand");
	doctor_found(&program, "WARN", "leftovers", "ixdp-2-2", "into which may still write");
	doctor_found(&program, "PASS", "leftovers", "ixdp-3-3", "lives");
	assert_null(doctor_finding(&program, "clean", "7fff:ff:1f.6"));
	assert_null(doctor_finding(&program, "leftovers", "ixdp-1-1"));
	program_free(&program);
	assert_int_not_equal(access(in_root("huge/ixdp-1-1"), F_OK), 0);
	assert_int_equal(access(in_root("huge/ixdp-2-2/device-7fff:ff:1f.7"), F_OK), 0);
	assert_int_equal(access(in_root("huge/ixdp-3-3/mem-0"), F_OK), 0);
	close(fd);
}

static int unmount_teardown(void **state) {
	umount2(in_root("huge"), MNT_DETACH);
	return tree_teardown(state);
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, doctor_setup, tree_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
	    ON_MACHINE(counts_pages_of_machine_and_nodes),
	    ON_MACHINE(a_node_without_pages_is_in_the_way_of_its_card),
	    ON_MACHINE(without_a_hugetlbfs_no_card_runs),
	    ON_MACHINE(the_mount_must_be_there),
	    ON_MACHINE(the_mount_must_be_writable),
	    ON_MACHINE(a_port_needs_so_many_pages),
	    ON_MACHINE(tells_the_dead_from_the_living),
	    ON_MACHINE(names_on_the_mount_are_not_trusted),
	    cmocka_unit_test_setup_teardown(clean_removes_what_no_card_may_write_into, doctor_setup,
					    unmount_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
