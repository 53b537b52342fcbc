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
	int mount;	 /* the directory that it lies in */
	int dir;	 /* itself; holds the flock */
	unsigned files;	 /* memory files and marks: with the last one the folder goes */
	unsigned serial; /* of the next memory file */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

void dma_set_mounts_file(const char *path)
{
	mounts_file = path ? path : "/proc/mounts";
}

static bool has_2m_pages(const struct mntent *mount)
{
	const char *option = hasmntopt(mount, "pagesize");
	struct statfs fs;

	if (option) {
		option += strlen("pagesize=");
		return strcspn(option, ",") == 2 && !strncmp(option, "2M", 2);
	}
	return statfs(mount->mnt_dir, &fs) == 0 && fs.f_bsize == DMA_HUGE_PAGE;
}

/* Opens the next hugetlbfs of 2 MiB pages; -1 when it may not be entered, -ENOENT at the end. */
static int next_mount(FILE *mounts, char *path, size_t size)
{
	struct mntent mount;
	char text[4096];

	while (getmntent_r(mounts, &mount, text, sizeof(text))) {
		if (strcmp(mount.mnt_type, "hugetlbfs") || !has_2m_pages(&mount) ||
		    snprintf(path, size, "%s", mount.mnt_dir) >= (int)size)
			continue;
		return open(path, OPEN_DIR);
	}
	return -ENOENT;
}

/* Opens the first hugetlbfs that this process may use. Returns its descriptor or -errno. */
static int usable_mount(char *path, size_t size)
{
	FILE *mounts = setmntent(mounts_file, "re");
	char seen[sizeof(own.path)] = "";
	int fd;

	if (!mounts)
		return ixdp_fail(errno, "%s: %s", mounts_file, strerror(errno));
	while ((fd = next_mount(mounts, path, size)) != -ENOENT) {
		if (fd >= 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
			break;
		snprintf(seen, sizeof(seen), "%s", path);
		if (fd >= 0)
			close(fd);
	}
	endmntent(mounts);
	if (fd >= 0)
		return fd;
	if (*seen)
		return ixdp_fail(EACCES,
				 "%s: hugetlbfs is not writable for this user: run as root, or run "
				 "setup-hugetlbfs.sh --user NAME",
				 seen);
	return ixdp_fail(
	    ENOENT, "%s: no hugetlbfs with 2 MiB pages is mounted: run setup-hugetlbfs.sh as root",
	    mounts_file);
}

/* When this process started, in ticks since boot: tells it from others that had its pid. */
static unsigned long long start_time(void)
{
	FILE *stat = fopen("/proc/self/stat", "re");
	char line[1024] = "";
	const char *field;

	if (!stat)
		return 0;
	if (!fgets(line, sizeof(line), stat))
		*line = '\0';
	fclose(stat);
	field = strrchr(line, ')'); /* ends field 2, which may have blanks in it */
	for (int i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field, NULL, 10) : 0;
}

static void before_fork(void)
{
	pthread_mutex_lock(&own.lock);
}

static void parent_after_fork(void)
{
	pthread_mutex_unlock(&own.lock);
}

/* The folder is the parent's alone: its lock must not outlive it in us. */
static void child_after_fork(void)
{
	if (*own.path) {
		close(own.dir);
		close(own.mount);
		*own.path = '\0';
	}
	pthread_mutex_unlock(&own.lock);
}

static void register_fork_handlers(void)
{
	pthread_atfork(before_fork, parent_after_fork, child_after_fork);
}

/*
 * Makes the folder under another name and locks it before it gets its own: others take a folder
 * without a lock for a dead process's.
 */
static int make_folder(int mount, const char *name)
{
	char unlocked[64];
	int dir;

	snprintf(unlocked, sizeof(unlocked), ".%s", name);
	if (mkdirat(mount, unlocked, 0700))
		return -1;
	dir = openat(mount, unlocked, OPEN_DIR);
	if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0 &&
	    renameat(mount, unlocked, mount, name) == 0)
		return dir;
	int err = errno;
	if (dir >= 0)
		close(dir);
	unlinkat(mount, unlocked, AT_REMOVEDIR);
	errno = err;
	return -1;
}

/* Makes this process's folder unless it is there. Lock held. Returns 0 or -errno. */
static int own_folder_open(void)
{
	static pthread_once_t fork_handlers = PTHREAD_ONCE_INIT;
	char mount_path[sizeof(own.path) - 60], name[60];
	int mount, dir;

	if (*own.path)
		return 0;
	pthread_once(&fork_handlers, register_fork_handlers);
	mount = usable_mount(mount_path, sizeof(mount_path));
	if (mount < 0)
		return mount;
	dma_leftovers_clear(NULL);

	snprintf(name, sizeof(name), FOLDER_PREFIX "%d-%llu", getpid(), start_time());
	dir = make_folder(mount, name);
	if (dir < 0) {
		int err = errno;
		close(mount);
		return ixdp_fail(err, "%s/%s: cannot make this folder: %s", mount_path, name,
				 strerror(err));
	}
	snprintf(own.path, sizeof(own.path), "%s/%s", mount_path, name);
	own.mount = mount;
	own.dir = dir;
	own.files = 0;
	return 0;
}

/* Removes this process's folder if nothing is in it. Lock held. */
static void own_folder_close_if_empty(void)
{
	if (own.files)
		return;
	unlinkat(own.mount, strrchr(own.path, '/') + 1, AT_REMOVEDIR);
	close(own.dir);
	close(own.mount);
	*own.path = '\0';
}

/* Makes a file in this process's folder. Lock held. Returns its descriptor or -errno. */
static int own_file_create(const char *name)
{
	int err = own_folder_open();
	int fd;

	if (err)
		return err;
	fd = openat(own.dir, name, CREATE, 0600);
	if (fd >= 0)
		own.files++;
	else
		fd = ixdp_fail(errno, "%s/%s: cannot make this file: %s", own.path, name,
			       strerror(errno));
	own_folder_close_if_empty();
	return fd;
}

int dma_file_create(char *path, size_t size)
{
	char name[20];
	int fd;

	pthread_mutex_lock(&own.lock);
	snprintf(name, sizeof(name), "mem-%u", own.serial++);
	fd = own_file_create(name);
	if (fd >= 0)
		snprintf(path, size, "%s/%s", own.path, name);
	pthread_mutex_unlock(&own.lock);
	return fd;
}

static void own_file_remove(const char *name)
{
	if (unlinkat(own.dir, name, 0) == 0)
		own.files--;
	own_folder_close_if_empty();
}

void dma_file_remove(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t folder = (size_t)(name - path);

	pthread_mutex_lock(&own.lock);
	if (folder == strlen(own.path) && !strncmp(path, own.path, folder))
		own_file_remove(name + 1);
	pthread_mutex_unlock(&own.lock);
}

static bool mark_name(char *name, size_t size, const char *device)
{
	return *device && !strchr(device, '/') &&
	       snprintf(name, size, MARK_PREFIX "%s", device) < (int)size;
}

int dma_device_begin(const char *device)
{
	char mark[200];
	int fd;

	if (!mark_name(mark, sizeof(mark), device))
		return ixdp_fail(EINVAL, "\"%s\": not the name of a device", device);
	pthread_mutex_lock(&own.lock);
	fd = own_file_create(mark);
	pthread_mutex_unlock(&own.lock);
	if (fd >= 0)
		close(fd);
	return fd == -EEXIST || fd >= 0 ? 0 : fd;
}

void dma_device_end(const char *device)
{
	char mark[200];

	if (!mark_name(mark, sizeof(mark), device))
		return;
	pthread_mutex_lock(&own.lock);
	if (*own.path)
		own_file_remove(mark);
	pthread_mutex_unlock(&own.lock);
}

static bool has_marks(DIR *folder)
{
	const struct dirent *entry;

	rewinddir(folder);
	while ((entry = readdir(folder)))
		if (!strncmp(entry->d_name, MARK_PREFIX, strlen(MARK_PREFIX)))
			return true;
	return false;
}

/* Removes the files of a folder. Returns the bytes that they had. */
static size_t remove_files(DIR *folder)
{
	const struct dirent *entry;
	size_t bytes = 0;
	struct stat st;

	rewinddir(folder);
	while ((entry = readdir(folder)))
		if (fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && unlinkat(dirfd(folder), entry->d_name, 0) == 0)
			bytes += (size_t)st.st_blocks * 512;
	return bytes;
}

/* Takes a mark (if any) out of a dead process's folder, and with the last mark all of it. */
static size_t clear_folder(int mount, const char *name, const char *mark)
{
	int fd = openat(mount, name, OPEN_DIR);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	size_t bytes = 0;

	if (!folder) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		if (mark)
			unlinkat(fd, mark, 0);
		if (!has_marks(folder)) {
			bytes = remove_files(folder);
			unlinkat(mount, name, AT_REMOVEDIR);
		}
	}
	closedir(folder);
	return bytes;
}

/* Clears all folders of a mount. Takes over its descriptor. */
static size_t clear_mount(int fd, const char *mark)
{
	DIR *mount = fdopendir(fd);
	const struct dirent *entry;
	size_t bytes = 0;

	if (!mount) {
		close(fd);
		return 0;
	}
	while ((entry = readdir(mount)))
		if (!strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)))
			bytes += clear_folder(fd, entry->d_name, mark);
	closedir(mount);
	return bytes;
}

size_t dma_leftovers_clear(const char *device)
{
	FILE *mounts = setmntent(mounts_file, "re");
	char path[sizeof(own.path)], mark[200];
	size_t bytes = 0;
	int fd;

	if (!mounts)
		return 0;
	if (device && !mark_name(mark, sizeof(mark), device))
		device = NULL;
	while ((fd = next_mount(mounts, path, sizeof(path))) != -ENOENT)
		if (fd >= 0)
			bytes += clear_mount(fd, device ? mark : NULL);
	endmntent(mounts);
	if (bytes)
		ixdp_log(IXDP_LOG_INFO, "%zu bytes of huge pages that dead processes left are free",
			 bytes);
	return bytes;
}
