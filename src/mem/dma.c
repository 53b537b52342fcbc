/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mount may be writable for everybody, so nothing here follows a symbolic link, and a dead
 * process's folder is entered through its descriptor only.
 */
#include "dma.h"
#include "base/error.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <mntent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER "ixdp-" /* what names begin with */
#define MARK "device-"

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static const char *mounts_file = "/proc/mounts";

static struct {
	pthread_mutex_t lock;
	char path[200]; /* of this process's folder; empty: none */
	pid_t pid;	/* that made it: children of fork() inherit all this */
	int dir;	/* the folder; holds the flock */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

void dma_set_mounts_file(const char *path) { mounts_file = path ? path : "/proc/mounts"; }

/* Finds the first hugetlbfs of 2 MiB pages. */
static int find_mount(char *path, size_t size) {
	FILE *mounts = setmntent(mounts_file, "re");
	if (!mounts) return ixdp_fail(errno, "%s: %m", mounts_file);
	struct mntent mount;
	char text[4096];
	bool found = false;
	while (!found && getmntent_r(mounts, &mount, text, sizeof(text)))
		found = !strcmp(mount.mnt_type, "hugetlbfs") && hasmntopt(&mount, "pagesize=2M") &&
			snprintf(path, size, "%s", mount.mnt_dir) < (int)size;
	endmntent(mounts);
	if (found) return 0;
	return ixdp_fail(ENOENT, "%s: no hugetlbfs of 2 MiB pages: run setup-hugetlbfs.sh as root",
			 mounts_file);
}

/* It is gone, or a parent's. */
static void forget_folder(void) {
	close(own.dir);
	*own.path = '\0';
}

static bool have_folder(void) {
	if (*own.path && own.pid != getpid()) forget_folder();
	return *own.path;
}

/* Locked before it gets its name: others take a folder without a lock for a dead process's. */
static int make_folder(void) {
	char mount[sizeof(own.path) - 40], hidden[sizeof(own.path)];
	int err = find_mount(mount, sizeof(mount));
	if (err) return err;
	dma_leftovers_clear(NULL);
	own.pid = getpid();
	snprintf(hidden, sizeof(hidden), "%s/." FOLDER "%d-XXXXXX", mount, own.pid);
	own.dir = mkdtemp(hidden) ? open(hidden, OPEN_DIR) : -1;
	snprintf(own.path, sizeof(own.path), "%s/%s", mount, hidden + strlen(mount) + 2);
	if (own.dir >= 0 && flock(own.dir, LOCK_EX | LOCK_NB) == 0 && rename(hidden, own.path) == 0)
		return 0;
	err = ixdp_fail(
	    errno, "%s: no folder for us: %m: be root, or setup-hugetlbfs.sh --user NAME", mount);
	rmdir(hidden);
	forget_folder();
	return err;
}

/* Makes a file in this process's folder. Returns its descriptor, or -errno with ixdp_error(). */
static int create_file(const char *name) {
	pthread_mutex_lock(&own.lock);
	int fd = have_folder() ? 0 : make_folder();
	if (!fd) {
		fd = openat(own.dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0) fd = ixdp_fail(errno, "%s/%s: %m", own.path, name);
		if (rmdir(own.path) == 0) forget_folder(); /* it had been made for nothing */
	}
	pthread_mutex_unlock(&own.lock);
	return fd;
}

static void remove_file(const char *name) {
	pthread_mutex_lock(&own.lock);
	if (have_folder()) {
		unlinkat(own.dir, name, 0);
		if (rmdir(own.path) == 0) forget_folder(); /* that was the last file */
	}
	pthread_mutex_unlock(&own.lock);
}

int dma_device_begin(const char *device) {
	char mark[100];
	snprintf(mark, sizeof(mark), MARK "%s", device);
	int fd = create_file(mark);
	if (fd >= 0) close(fd);
	return fd >= 0 || fd == -EEXIST ? 0 : fd;
}

void dma_device_end(const char *device) {
	char mark[100];
	snprintf(mark, sizeof(mark), MARK "%s", device);
	remove_file(mark);
}

/* Takes a mark (if any) out of a dead process's folder, and with the last mark all of it. */
static size_t clear_folder(int mount, const char *name, const char *mark) {
	int fd = openat(mount, name, OPEN_DIR);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		close(fd);
		return 0;
	}
	const struct dirent *entry;
	size_t bytes = 0;
	struct stat st;
	/* A hidden one is not locked from the beginning; but nobody takes a minute over that. */
	bool keep = (*name == '.' && !fstat(fd, &st) && st.st_mtime > time(NULL) - 60) ||
		    flock(fd, LOCK_EX | LOCK_NB) != 0;
	if (!keep) unlinkat(fd, mark, 0);
	while (!keep && (entry = readdir(folder)))
		keep = !strncmp(entry->d_name, MARK, strlen(MARK));
	rewinddir(folder);
	while (!keep && (entry = readdir(folder)))
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    unlinkat(fd, entry->d_name, 0) == 0)
			bytes += (size_t)st.st_blocks * 512;
	if (!keep) unlinkat(mount, name, AT_REMOVEDIR);
	closedir(folder);
	return bytes;
}

size_t dma_leftovers_clear(const char *device) {
	char path[sizeof(own.path)], mark[100];
	DIR *mount = find_mount(path, sizeof(path)) ? NULL : opendir(path);
	const struct dirent *entry;
	size_t bytes = 0;
	if (!mount) return 0;
	snprintf(mark, sizeof(mark), MARK "%s", device ? device : "");
	while ((entry = readdir(mount)))
		if (!strncmp(entry->d_name + (*entry->d_name == '.'), FOLDER, strlen(FOLDER)))
			bytes += clear_folder(dirfd(mount), entry->d_name, mark);
	closedir(mount);
	if (bytes)
		ixdp_log(IXDP_LOG_INFO, "%zu MiB of dead processes' huge pages are free",
			 bytes >> 20);
	return bytes;
}

/* A count of huge pages, of the machine (node -1) or a node; 0 where it is not counted. */
static long count_pages(int node, const char *what) {
	char dir[64] = "/sys/kernel/mm", path[128];
	long count = 0;
	if (node >= 0) snprintf(dir, sizeof(dir), "/sys/devices/system/node/node%d", node);
	snprintf(path, sizeof(path), "%s/hugepages/hugepages-2048kB/%s", dir, what);
	FILE *file = fopen(path, "re");
	if (!file) return 0;
	if (fscanf(file, "%ld", &count) != 1) count = 0;
	fclose(file);
	return count;
}

static int fail_too_few(const struct dma_mem *mem) {
	int node = mem->numa_node;
	long needed = (long)(mem->size / DMA_HUGE_PAGE);
	long all = count_pages(-1, "free_hugepages") - count_pages(-1, "resv_hugepages");
	long here = node < 0 ? all : count_pages(node, "free_hugepages");
	long missing = needed > here ? needed - here : 0; /* 0: it is the mount or a cgroup */
	char where[80] = "";
	if (node >= 0)
		snprintf(where, sizeof(where), " on NUMA node %d (%ld on all nodes)", node, all);
	return ixdp_fail(ENOMEM,
			 "too few huge pages: %ld of 2 MiB needed, %ld free%s: run "
			 "setup-hugetlbfs.sh --pages %ld, or see limits of mount and cgroup",
			 needed, here, where, count_pages(node, "nr_hugepages") + missing);
}

static int bind_to_node(const struct dma_mem *mem) {
	enum { BITS = 8 * sizeof(unsigned long), MAX_NODES = 1024 /* of any kernel */ };
	unsigned long nodes[MAX_NODES / BITS] = {0};
	if (mem->numa_node < 0) return 0;
	nodes[mem->numa_node / BITS] = 1ul << mem->numa_node % BITS;
	/* The kernel takes one off the number of bits. */
	return (int)syscall(SYS_mbind, mem->addr, mem->size, MPOL_BIND, nodes, MAX_NODES + 1, 0);
}

/*
 * mmap() reserves pages or fails; but those may be on other nodes than the one we bind to, where
 * the first touch would end in SIGBUS: so the kernel touches them, and returns an error instead.
 * fallocate() would not do: on hugetlbfs it knows nothing of mbind().
 */
static int map_huge(struct dma_mem *mem) {
	static atomic_uint serial; /* goes on in a child: it does not remove a file of its parent */
	char name[20];
	snprintf(name, sizeof(name), "mem-%u", atomic_fetch_add(&serial, 1));
	int fd = create_file(name);
	if (fd < 0) return fd;
	/* From here on there is a file in the folder: own.path stays. */
	snprintf(mem->path, sizeof(mem->path), "%s/%s", own.path, name);
	mem->addr = MAP_FAILED;
	if (ftruncate(fd, (off_t)mem->size) == 0)
		mem->addr = mmap(NULL, mem->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool good = mem->addr != MAP_FAILED && bind_to_node(mem) == 0 &&
		    madvise(mem->addr, mem->size, MADV_POPULATE_WRITE) == 0;
	int err = good ? 0 : errno;
	close(fd);
	if (good) return 0;
	if (mem->addr != MAP_FAILED) munmap(mem->addr, mem->size);
	remove_file(name);
	/* From mmap(); from madvise(): "would have been SIGBUS". */
	if (err == ENOMEM || err == EFAULT) return fail_too_few(mem);
	return ixdp_fail(err, "%s: cannot map %zu bytes (needs Linux 5.14): %s", mem->path,
			 mem->size, strerror(err));
}

/* Only the CPU and software ports see these, so any node is as good. */
static int map_ordinary(struct dma_mem *mem, size_t size) {
	static atomic_flag warned = ATOMIC_FLAG_INIT;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (!atomic_flag_test_and_set(&warned))
		ixdp_log(IXDP_LOG_WARNING, "ordinary pages instead of huge ones: %s", ixdp_error());
	size = (size + page - 1) / page * page;
	*mem = (struct dma_mem){.size = size, .numa_node = mem->numa_node};
	mem->addr = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem->addr != MAP_FAILED) return 0;
	return ixdp_fail(ENOMEM, "cannot map %zu bytes: %m", size);
}

int dma_alloc(struct dma_mem **mem, size_t size, int numa_node, bool ordinary) {
	char node[64];
	snprintf(node, sizeof(node), "/sys/devices/system/node/node%d", numa_node);
	if (numa_node != -1 && access(node, F_OK))
		return ixdp_fail(EINVAL, "NUMA node %d: there is no %s", numa_node, node);
	struct dma_mem *made = calloc(1, sizeof(*made));
	if (!made) return ixdp_fail(ENOMEM, "out of memory");
	made->size = (size + DMA_HUGE_PAGE - 1) / DMA_HUGE_PAGE * DMA_HUGE_PAGE;
	made->huge = true;
	made->numa_node = numa_node;
	int err = map_huge(made);
	if (err && ordinary) err = map_ordinary(made, size);
	if (err)
		free(made);
	else
		*mem = made;
	return err;
}

void dma_free(struct dma_mem *mem) {
	munmap(mem->addr, mem->size);
	if (mem->huge) remove_file(strrchr(mem->path, '/') + 1);
	free(mem->phys);
	free(mem);
}
