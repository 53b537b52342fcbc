/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DMA memory: its files outlive a process that is killed until no device can write into them, and
 * each way of not getting any has its own error. Most tests make do with a folder that a made-up
 * /proc/mounts calls a hugetlbfs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <ixdp/ixdp.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/dma.h"

static char dir[64];	 /* of this test */
static char huge[100];	 /* in it: the hugetlbfs, as it were */
static char mounts[100]; /* in it: the made-up /proc/mounts */
static unsigned warnings;

static void count_warnings(enum ixdp_log_level level, const char *line, void *arg) {
	(void)line, (void)arg;
	warnings += level == IXDP_LOG_WARNING;
}

static void write_mounts(const char *lines) {
	FILE *file = fopen(mounts, "w");

	assert_non_null(file);
	fputs(lines, file);
	fclose(file);
}

static int set_up(void **state) {
	char line[200];

	(void)state;
	strcpy(dir, "/tmp/ixdp-dma-XXXXXX");
	if (!mkdtemp(dir) || chmod(dir, 0755)) return -1;
	snprintf(huge, sizeof(huge), "%s/huge", dir);
	snprintf(mounts, sizeof(mounts), "%s/mounts", dir);
	if (mkdir(huge, 0755)) return -1;
	snprintf(line, sizeof(line),
		 "proc /proc proc rw 0 0\nnodev %s hugetlbfs rw,relatime,pagesize=2M 0 0\n", huge);
	write_mounts(line);
	dma_set_mounts_file(mounts);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int tear_down(void **state) {
	(void)state;
	dma_set_mounts_file(NULL);
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static bool exists(const char *path) {
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool is_empty(const char *path) {
	DIR *folder = opendir(path);
	unsigned entries = 0;

	if (!folder) return false;
	while (readdir(folder))
		entries++;
	closedir(folder);
	return entries == 2; /* "." and ".." */
}

/* Another process that has memory, marked for up to two devices, until it is killed. */
struct other {
	pid_t pid;
	char path[256]; /* of its memory file */
};

static struct other start_other(const char *device, const char *device2) {
	struct other other = {0};
	struct dma_mem *mem;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	other.pid = fork();
	assert_true(other.pid >= 0);
	if (!other.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test fail */
		if (dma_alloc(&mem, 1, -1, false) || (device && dma_device_begin(device)) ||
		    (device2 && dma_device_begin(device2)) ||
		    write(ends[1], mem->path, sizeof(mem->path)) != sizeof(mem->path))
			_exit(1);
		close(ends[1]);
		for (;;)
			pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], other.path, sizeof(other.path)), sizeof(other.path));
	close(ends[0]);
	assert_true(exists(other.path));
	return other;
}

static void kill_other(const struct other *other) {
	assert_int_equal(kill(other->pid, SIGKILL), 0);
	assert_int_equal(waitpid(other->pid, NULL, 0), other->pid);
}

static void no_mount_is_named(void **state) {
	struct dma_mem *mem = NULL;

	(void)state;
	write_mounts("proc /proc proc rw 0 0\nnodev /huge1G hugetlbfs rw,pagesize=1024M 0 0\n");
	assert_int_equal(dma_alloc(&mem, 1, -1, false), -ENOENT);
	assert_non_null(strstr(ixdp_error(), mounts));
	assert_non_null(strstr(ixdp_error(), "setup-hugetlbfs.sh"));
	assert_int_equal(dma_device_begin("0000:03:00.0"), -ENOENT);
	assert_int_equal(dma_leftovers_clear("0000:03:00.0"), 0);
	dma_set_mounts_file("/nonexistent/mounts");
	assert_int_equal(dma_alloc(&mem, 1, -1, false), -ENOENT);
	assert_non_null(strstr(ixdp_error(), "/nonexistent/mounts"));
	assert_null(mem);
}

static void a_mount_of_others_is_named(void **state) {
	struct dma_mem *mem;

	(void)state;
	assert_int_equal(chmod(huge, 0555), 0);
	if (geteuid() == 0) assert_int_equal(seteuid(65534), 0);
	assert_int_equal(dma_alloc(&mem, 1, -1, false), -EACCES);
	assert_non_null(strstr(ixdp_error(), huge));
	assert_non_null(strstr(ixdp_error(), "--user"));
	if (getuid() == 0) assert_int_equal(seteuid(0), 0);
}

static void a_node_that_does_not_exist_is_named(void **state) {
	struct dma_mem *mem;

	(void)state;
	assert_int_equal(dma_alloc(&mem, 1, 999, false), -EINVAL);
	assert_non_null(strstr(ixdp_error(), "999"));
	assert_int_equal(dma_alloc(&mem, 1, 999, true), -EINVAL);
	assert_int_equal(dma_alloc(&mem, 1, -2, true), -EINVAL);
	assert_int_equal(dma_alloc(&mem, 1, 1 << 20, true), -EINVAL);
}

static void too_few_pages_are_counted(void **state) {
	long needed = 0, available = -1, pages = 0;
	struct dma_mem *mem;
	int err;

	(void)state;
	dma_set_mounts_file(NULL);
	err = dma_alloc(&mem, (size_t)1 << 40, -1, false);
	if (err == -ENOENT || err == -EACCES) {
		print_message("no hugetlbfs for this user: %s\n", ixdp_error());
		skip();
	}
	assert_int_equal(err, -ENOMEM);
	assert_int_equal(sscanf(ixdp_error(),
				"too few huge pages: %ld of 2 MiB needed, %ld free: "
				"run setup-hugetlbfs.sh --pages %ld",
				&needed, &available, &pages),
			 3);
	assert_int_equal(needed, 1 << 19);
	assert_in_range(available, 0, needed - 1);
	assert_true(pages >= needed);

	assert_int_equal(dma_alloc(&mem, (size_t)1 << 40, 0, false), -ENOMEM);
	assert_non_null(strstr(ixdp_error(), " 524288 of 2 MiB needed"));
	assert_non_null(strstr(ixdp_error(), " free on NUMA node 0 ("));
	assert_non_null(strstr(ixdp_error(), " on all nodes)"));
}

/*
 * Pages may be reserved, and yet not to be had at the first touch: those of another node. A tmpfs
 * that is too small behaves like that on any machine.
 */
static void pages_missing_at_first_touch_are_an_error_not_a_signal(void **state) {
	enum { FAILED, GOOD, CANNOT_TRY };
	struct dma_mem *mem;
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("tmpfs", huge, "tmpfs", 0, "size=1m,mode=0777"))
			_exit(CANNOT_TRY);
		bool refused = dma_alloc(&mem, 1, -1, false) == -ENOMEM &&
			       strstr(ixdp_error(), "1 of 2 MiB needed");
		_exit(refused && is_empty(huge) ? GOOD : FAILED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT_TRY) {
		print_message("this user may not mount a tmpfs\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), GOOD);
}

static void huge_pages_are_aligned_zeroed_and_on_their_node(void **state) {
	unsigned long nodes[16] = {0};
	struct dma_mem *mem;
	int policy;

	(void)state;
	dma_set_mounts_file(NULL);
	if (dma_alloc(&mem, DMA_HUGE_PAGE + 1, 0, false)) {
		print_message("no huge pages for this user: %s\n", ixdp_error());
		skip();
	}
	assert_true(mem->huge);
	assert_int_equal(mem->numa_node, 0);
	assert_int_equal(mem->size, 2 * DMA_HUGE_PAGE);
	assert_int_equal((uintptr_t)mem->addr % DMA_HUGE_PAGE, 0);
	for (size_t i = 0; i < mem->size; i++)
		assert_int_equal(mem->addr[i], 0);
	assert_int_equal(syscall(SYS_get_mempolicy, &policy, nodes, 1024, mem->addr, MPOL_F_ADDR),
			 0);
	assert_int_equal(policy, MPOL_BIND);
	assert_int_equal(nodes[0], 1);
	memset(mem->addr, 0xff, mem->size);
	dma_free(mem);
}

static void without_huge_pages_ordinary_ones_do_with_one_warning(void **state) {
	struct dma_mem *first, *second;

	(void)state;
	write_mounts("");
	warnings = 0;
	assert_int_equal(dma_alloc(&first, 5000, -1, true), 0);
	assert_int_equal(dma_alloc(&second, 1, -1, true), 0);
	assert_int_equal(warnings, 1);
	assert_false(first->huge);
	assert_string_equal(first->path, "");
	assert_true(first->size >= 5000);
	assert_int_equal(first->size % (size_t)sysconf(_SC_PAGESIZE), 0);
	for (size_t i = 0; i < first->size; i++)
		assert_int_equal(first->addr[i], 0);
	memset(first->addr, 0xff, first->size);
	dma_free(first);
	dma_free(second);
}

static void files_are_private_and_go_with_the_memory(void **state) {
	struct dma_mem *first, *second;
	struct stat st;

	(void)state;
	assert_int_equal(dma_alloc(&first, 1, -1, false), 0);
	assert_int_equal(dma_alloc(&second, 1, -1, false), 0);
	assert_string_not_equal(first->path, second->path);
	assert_int_equal(stat(first->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, DMA_HUGE_PAGE);
	*strrchr(first->path, '/') = '\0';
	assert_int_equal(stat(first->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	first->path[strlen(first->path)] = '/';
	dma_free(first);
	assert_true(exists(second->path));
	dma_free(second);
	assert_true(is_empty(huge));
}

static void a_mark_keeps_the_folder_until_the_device_is_quiet(void **state) {
	struct dma_mem *mem;

	(void)state;
	assert_int_equal(dma_alloc(&mem, 1, -1, false), 0);
	assert_int_equal(dma_device_begin("0000:03:00.0"), 0);
	dma_free(mem);
	assert_false(is_empty(huge));
	dma_device_end("0000:03:00.0");
	assert_true(is_empty(huge));
}

static void memory_of_a_killed_process_stays_until_its_device_is_reset(void **state) {
	struct other other = start_other("0000:03:00.0", NULL);
	struct dma_mem *mem;

	(void)state;
	kill_other(&other);
	assert_true(exists(other.path));
	assert_int_equal(dma_alloc(&mem, 1, -1, false), 0); /* sweeps */
	assert_true(exists(other.path));
	assert_int_equal(dma_leftovers_clear("0000:04:00.0"), 0);
	assert_true(exists(other.path));
	assert_int_equal(dma_leftovers_clear("0000:03:00.0"), DMA_HUGE_PAGE);
	assert_false(exists(other.path));
	assert_true(exists(mem->path));
	dma_free(mem);
	assert_true(is_empty(huge));
}

static void huge_pages_of_a_killed_process_stay_too(void **state) {
	struct dma_mem *mem;
	struct other other;
	char device[40];

	(void)state;
	dma_set_mounts_file(NULL);
	if (dma_alloc(&mem, 2 * DMA_HUGE_PAGE, -1, false)) {
		print_message("no huge pages for this user: %s\n", ixdp_error());
		skip();
	}
	dma_free(mem);
	snprintf(device, sizeof(device), "test-%d", getpid()); /* no other test's */
	other = start_other(device, NULL);
	kill_other(&other);
	assert_true(exists(other.path));
	assert_true(dma_leftovers_clear(device) >= DMA_HUGE_PAGE);
	assert_false(exists(other.path));
}

static void two_devices_must_both_be_reset(void **state) {
	struct other other = start_other("0000:03:00.0", "0000:03:00.1");

	(void)state;
	kill_other(&other);
	assert_int_equal(dma_leftovers_clear("0000:03:00.1"), 0);
	assert_true(exists(other.path));
	assert_int_equal(dma_leftovers_clear("0000:03:00.0"), DMA_HUGE_PAGE);
	assert_true(is_empty(huge));
}

static void a_living_process_keeps_its_memory(void **state) {
	struct other marked = start_other("0000:03:00.0", NULL), bare = start_other(NULL, NULL);
	struct dma_mem *mem;

	(void)state;
	assert_int_equal(dma_alloc(&mem, 1, -1, false), 0);
	assert_int_equal(dma_device_begin("0000:03:00.0"), 0);
	assert_int_equal(dma_leftovers_clear("0000:03:00.0"), 0);
	assert_true(exists(marked.path));
	assert_true(exists(bare.path));
	assert_true(exists(mem->path));
	kill_other(&marked);
	assert_int_equal(dma_leftovers_clear("0000:03:00.0"), DMA_HUGE_PAGE);
	assert_true(exists(bare.path));
	assert_true(exists(mem->path));
	kill_other(&bare);
	dma_device_end("0000:03:00.0");
	dma_free(mem);
}

static void what_no_device_writes_into_is_swept_by_the_next_process(void **state) {
	struct other other = start_other(NULL, NULL);
	struct dma_mem *mem;

	(void)state;
	kill_other(&other);
	assert_true(exists(other.path));
	assert_int_equal(dma_alloc(&mem, 1, -1, false), 0);
	assert_false(exists(other.path));
	dma_free(mem);
	assert_true(is_empty(huge));
}

static void a_dead_process_that_had_our_pid_is_dead(void **state) {
	char folder[200];

	(void)state;
	snprintf(folder, sizeof(folder), "%s/ixdp-%d-1", huge, getpid());
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(dma_leftovers_clear("0000:03:00.0"), 0);
	assert_false(exists(folder));
}

/* A process was killed before its folder had its name, or is about to give it one. */
static void a_hidden_folder_is_swept_once_it_is_old(void **state) {
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	char folders[2][200];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(folders[i], sizeof(folders[i]), "%s/.ixdp-%d-%u", huge, getpid(), i);
		assert_int_equal(mkdir(folders[i], 0700), 0);
	}
	assert_int_equal(utimensat(AT_FDCWD, folders[0], old, 0), 0);
	assert_int_equal(dma_leftovers_clear(NULL), 0);
	assert_false(exists(folders[0]));
	assert_true(exists(folders[1]));
	rmdir(folders[1]);
}

static void a_forked_child_leaves_its_parents_files(void **state) {
	struct dma_mem *mem, *own;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(dma_alloc(&mem, 1, -1, false), 0);
	assert_int_equal(dma_device_begin("0000:03:00.0"), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dma_device_end("0000:03:00.0");
		bool ok = dma_alloc(&own, 1, -1, false) == 0 && strcmp(own->path, mem->path) != 0;
		/* Files are removed by name: none that the parent has used comes back. */
		ok = ok && atoi(strrchr(own->path, '-') + 1) > atoi(strrchr(mem->path, '-') + 1);
		dma_free(mem);
		ok = ok && exists(own->path);
		dma_free(own);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(exists(mem->path));
	dma_free(mem);
	assert_false(is_empty(huge)); /* the mark */
	dma_device_end("0000:03:00.0");
	assert_true(is_empty(huge));
}

static void symbolic_links_lead_nowhere(void **state) {
	char path[200], precious[220];

	(void)state;
	snprintf(path, sizeof(path), "%s/victim", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(precious, sizeof(precious), "%s/mem-0", path);
	close(creat(precious, 0600));

	char folder_link[200], file_link[220];
	snprintf(folder_link, sizeof(folder_link), "%s/ixdp-1-1", huge);
	assert_int_equal(symlink(path, folder_link), 0);
	snprintf(path, sizeof(path), "%s/ixdp-2-2", huge);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(file_link, sizeof(file_link), "%s/mem-0", path);
	assert_int_equal(symlink(precious, file_link), 0);

	dma_leftovers_clear("0000:03:00.0");
	assert_true(exists(precious));
	assert_true(exists(folder_link));
	assert_false(exists(path));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
	    TEST(no_mount_is_named),
	    TEST(a_mount_of_others_is_named),
	    TEST(a_node_that_does_not_exist_is_named),
	    TEST(too_few_pages_are_counted),
	    TEST(pages_missing_at_first_touch_are_an_error_not_a_signal),
	    TEST(huge_pages_are_aligned_zeroed_and_on_their_node),
	    TEST(without_huge_pages_ordinary_ones_do_with_one_warning),
	    TEST(files_are_private_and_go_with_the_memory),
	    TEST(a_mark_keeps_the_folder_until_the_device_is_quiet),
	    TEST(memory_of_a_killed_process_stays_until_its_device_is_reset),
	    TEST(huge_pages_of_a_killed_process_stay_too),
	    TEST(two_devices_must_both_be_reset),
	    TEST(a_living_process_keeps_its_memory),
	    TEST(what_no_device_writes_into_is_swept_by_the_next_process),
	    TEST(a_dead_process_that_had_our_pid_is_dead),
	    TEST(a_hidden_folder_is_swept_once_it_is_old),
	    TEST(a_forked_child_leaves_its_parents_files),
	    TEST(symbolic_links_lead_nowhere),
	};

	ixdp_log_set(count_warnings, NULL, IXDP_LOG_WARNING);
	return cmocka_run_group_tests_name("dma", tests, NULL, NULL);
}
