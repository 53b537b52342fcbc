/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process keeps on the hugetlbfs, and what a dead one has left there.
 *
 *	<mount>/ixdp-<pid>-<start time>/	flock'ed while its process lives
 *		mem-0, mem-1 ...		huge pages
 *		device-0000:03:00.0 ...		marks: this device may write into them
 *
 * The mount may be writable for everybody, so nothing here follows a symbolic link, and a folder
 * is entered through its descriptor only.
 */
#include "leftovers.h"

#include "base/error.h"
#include "dma.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FOLDER_PREFIX "ixdp-"
#define MARK_PREFIX "device-"

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
enum { CREATE = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };

static const char *mounts_file = "/proc/mounts";

/* This process's folder; path is empty while there is none. */
static struct {
	pthread_mutex_t lock;
	char path[200];
	pid_t pid;	 /* of the process that made it: children of fork() inherit all this */
	int mount;	 /* the directory that it lies in */
	int dir;	 /* itself; holds the flock */
	unsigned files;	 /* memory files and marks: with the last one the folder goes */
	unsigned serial; /* of the next memory file */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

void dma_set_mounts_file(const char *path) {
	mounts_file = path ? path : "/proc/mounts";
}

static bool has_2m_pages(const struct mntent *mount) {
	const char *option = hasmntopt(mount, "pagesize");
	struct statfs fs;

	if (option)
		return !strncmp(option, "pagesize=2M", strcspn(option, ","));
	return statfs(mount->mnt_dir, &fs) == 0 && fs.f_bsize == DMA_HUGE_PAGE;
}

/* Opens the first hugetlbfs of 2 MiB pages. Returns its descriptor or -errno. */
static int open_mount(char *path, size_t size) {
	FILE *mounts = setmntent(mounts_file, "re");
	struct mntent mount;
	char text[4096];
	int fd = -ENOENT;

	if (!mounts)
		return ixdp_fail(errno, "%s: %s", mounts_file, strerror(errno));
	while (fd == -ENOENT && getmntent_r(mounts, &mount, text, sizeof(text)))
		if (!strcmp(mount.mnt_type, "hugetlbfs") && has_2m_pages(&mount) &&
		    snprintf(path, size, "%s", mount.mnt_dir) < (int)size)
			fd = open(path, OPEN_DIR);
	endmntent(mounts);
	if (fd == -ENOENT)
		return ixdp_fail(ENOENT,
				 "%s: no hugetlbfs with 2 MiB pages is mounted: run "
				 "setup-hugetlbfs.sh as root",
				 mounts_file);
	return fd >= 0 ? fd : ixdp_fail(errno, "%s: %s", path, strerror(errno));
}

/* When this process started, in ticks since boot: tells it from others that had its pid. */
static unsigned long long start_time(void) {
	FILE *stat = fopen("/proc/self/stat", "re");
	unsigned long long ticks = 0;

	if (!stat)
		return 0;
	/* Field 22; the second one is a name in parentheses. */
	if (fscanf(stat,
		   "%*d (%*[^)]) %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%*s %*s %*s %*s %llu",
		   &ticks) != 1)
		ticks = 0;
	fclose(stat);
	return ticks;
}

/*
 * Makes this process's folder. It is locked before it gets its name: others take a folder without a
 * lock for a dead process's. Returns its descriptor, or -1 with errno.
 */
static int make_folder(int mount, const char *name) {
	char unlocked[64];
	int dir, err;

	snprintf(unlocked, sizeof(unlocked), ".%s", name);
	if (mkdirat(mount, unlocked, 0700))
		return -1;
	dir = openat(mount, unlocked, OPEN_DIR);
	if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0 &&
	    renameat(mount, unlocked, mount, name) == 0)
		return dir;
	err = errno;
	if (dir >= 0)
		close(dir);
	unlinkat(mount, unlocked, AT_REMOVEDIR);
	errno = err;
	return -1;
}

/* Whether this process has a folder. What a parent had is forgotten. Lock held. */
static bool have_folder(void) {
	if (*own.path && own.pid != getpid()) {
		close(own.dir);
		close(own.mount);
		*own.path = '\0';
	}
	return *own.path;
}

/* Makes this process's folder unless it has one. Lock held. Returns 0 or -errno. */
static int need_folder(void) {
	char mount_path[sizeof(own.path) - 60], name[60];
	int err;

	if (have_folder())
		return 0;
	own.mount = open_mount(mount_path, sizeof(mount_path));
	if (own.mount < 0)
		return own.mount;
	dma_leftovers_clear(NULL);

	own.pid = getpid();
	own.files = 0;
	snprintf(name, sizeof(name), FOLDER_PREFIX "%d-%llu", own.pid, start_time());
	own.dir = make_folder(own.mount, name);
	if (own.dir < 0) {
		err = errno;
		close(own.mount);
		return ixdp_fail(
		    err, "%s/%s: cannot make this folder: %s%s", mount_path, name, strerror(err),
		    err != EACCES ? "" : ": run as root, or setup-hugetlbfs.sh --user NAME");
	}
	snprintf(own.path, sizeof(own.path), "%s/%s", mount_path, name);
	return 0;
}

/* Removes this process's folder if nothing is in it. Lock held. */
static void drop_folder_if_empty(void) {
	if (own.files)
		return;
	unlinkat(own.mount, strrchr(own.path, '/') + 1, AT_REMOVEDIR);
	close(own.dir);
	close(own.mount);
	*own.path = '\0';
}

/* Makes a file in this process's folder. Lock held. Returns its descriptor or -errno. */
static int create_file(const char *name) {
	int err = need_folder();
	int fd;

	if (err)
		return err;
	fd = openat(own.dir, name, CREATE, 0600);
	if (fd >= 0)
		own.files++;
	else
		fd = ixdp_fail(errno, "%s/%s: cannot make this file: %s", own.path, name,
			       strerror(errno));
	drop_folder_if_empty();
	return fd;
}

/* Removes a file from this process's folder, which exists. Lock held. */
static void remove_file(const char *name) {
	if (unlinkat(own.dir, name, 0) == 0)
		own.files--;
	drop_folder_if_empty();
}

int dma_file_create(char *path, size_t size) {
	char name[20];
	int fd;

	pthread_mutex_lock(&own.lock);
	snprintf(name, sizeof(name), "mem-%u", own.serial++);
	fd = create_file(name);
	if (fd >= 0)
		snprintf(path, size, "%s/%s", own.path, name);
	pthread_mutex_unlock(&own.lock);
	return fd;
}

void dma_file_remove(const char *path) {
	const char *name = strrchr(path, '/') + 1;

	pthread_mutex_lock(&own.lock);
	if (have_folder() && !strncmp(path, own.path, (size_t)(name - 1 - path)))
		remove_file(name);
	pthread_mutex_unlock(&own.lock);
}

int dma_device_begin(const char *device) {
	char mark[100];
	int fd;

	snprintf(mark, sizeof(mark), MARK_PREFIX "%s", device);
	pthread_mutex_lock(&own.lock);
	fd = create_file(mark);
	pthread_mutex_unlock(&own.lock);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EEXIST ? 0 : fd;
}

void dma_device_end(const char *device) {
	char mark[100];

	snprintf(mark, sizeof(mark), MARK_PREFIX "%s", device);
	pthread_mutex_lock(&own.lock);
	if (have_folder())
		remove_file(mark);
	pthread_mutex_unlock(&own.lock);
}

/* Takes over the descriptor (or the failure to open one). */
static DIR *to_dir(int fd) {
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool has_marks(DIR *folder) {
	const struct dirent *entry;

	while ((entry = readdir(folder)))
		if (!strncmp(entry->d_name, MARK_PREFIX, strlen(MARK_PREFIX)))
			return true;
	return false;
}

/* Removes the files of a folder. Returns the bytes that they had. */
static size_t remove_files(DIR *folder) {
	const struct dirent *entry;
	size_t bytes = 0;
	struct stat st;

	rewinddir(folder);
	while ((entry = readdir(folder)))
		if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    unlinkat(dirfd(folder), entry->d_name, 0) == 0)
			bytes += (size_t)st.st_blocks * 512;
	return bytes;
}

/* Takes a mark (if any) out of a dead process's folder, and with the last mark all of it. */
static size_t clear_folder(int mount, const char *name, const char *mark) {
	int fd = openat(mount, name, OPEN_DIR);
	DIR *folder = to_dir(fd);
	size_t bytes = 0;

	if (!folder)
		return 0;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		unlinkat(fd, mark, 0);
		if (!has_marks(folder)) {
			bytes = remove_files(folder);
			unlinkat(mount, name, AT_REMOVEDIR);
		}
	}
	closedir(folder);
	return bytes;
}

size_t dma_leftovers_clear(const char *device) {
	char path[sizeof(own.path)], mark[100];
	int fd = open_mount(path, sizeof(path));
	DIR *mount = to_dir(fd);
	const struct dirent *entry;
	size_t bytes = 0;

	if (!mount)
		return 0;
	snprintf(mark, sizeof(mark), MARK_PREFIX "%s", device ? device : "");
	while ((entry = readdir(mount)))
		if (!strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)))
			bytes += clear_folder(fd, entry->d_name, mark);
	closedir(mount);
	if (bytes)
		ixdp_log(IXDP_LOG_INFO, "%zu MiB of huge pages that dead processes left are free",
			 bytes >> 20);
	return bytes;
}
