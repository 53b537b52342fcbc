/* SPDX-License-Identifier: BSD-3-Clause */
#include "huge.h"

#include "sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <ixdp/ixdp.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_PREFIX "ixdp-"
#define MARK_PREFIX "device-"
#define MEMORY_PREFIX "mem-"

enum { OPEN_DIR = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

struct huge_pages huge_pages_count(const char *sysfs, int node) {
	char folder[300];

	if (node < 0)
		snprintf(folder, sizeof(folder), "%s/kernel/mm/hugepages/hugepages-2048kB", sysfs);
	else
		snprintf(folder, sizeof(folder),
			 "%s/devices/system/node/node%d/hugepages/hugepages-2048kB", sysfs, node);

	const long promised = sysfs_number("%s/resv_hugepages", folder);

	return (struct huge_pages){
	    .total = sysfs_number("%s/nr_hugepages", folder),
	    .free = sysfs_number("%s/free_hugepages", folder) - (promised > 0 ? promised : 0),
	};
}

long huge_pages_needed(void) {
	const long per_page = HUGE_PAGE / IXDP_BUFFER_STRIDE;
	struct ixdp_config config;

	ixdp_config_init(&config);
	/* The pool that ports share has room for two of them. One more page is for rings. */
	return (2 * (long)ixdp_pool_needed(&config) + per_page - 1) / per_page + 1;
}

bool huge_mount_find(char *path, size_t size, const char *mounts) {
	FILE *file = setmntent(mounts, "re");
	const struct mntent *mount;

	*path = '\0';
	while (file && !*path && (mount = getmntent(file)))
		if (!strcmp(mount->mnt_type, "hugetlbfs") && hasmntopt(mount, "pagesize=2M"))
			snprintf(path, size, "%s", mount->mnt_dir);
	if (file) endmntent(file);
	return *path;
}

static bool begins_with(const char *name, const char *prefix) {
	return !strncmp(name, prefix, strlen(prefix));
}

static void read_folder(struct huge_folder *folder, DIR *dir) {
	const struct dirent *entry;
	struct stat st;

	while ((entry = readdir(dir))) {
		const char *mark = entry->d_name + strlen(MARK_PREFIX);

		if (begins_with(entry->d_name, MEMORY_PREFIX) &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			folder->bytes += (size_t)st.st_size;
		if (begins_with(entry->d_name, MARK_PREFIX) && folder->n_marks < HUGE_MAX_MARKS)
			snprintf(folder->marks[folder->n_marks++], sizeof(folder->marks[0]), "%.*s",
				 (int)sizeof(folder->marks[0]) - 1, mark);
	}
}

/* The mount may be anybody's to write to, so a folder is entered through its descriptor only. */
static struct huge_folder look(int mount, const char *name) {
	const int fd = openat(mount, name, OPEN_DIR);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct huge_folder folder = {.readable = dir};

	snprintf(folder.name, sizeof(folder.name), "%.*s", (int)sizeof(folder.name) - 1, name);
	if (!dir) {
		if (fd >= 0) close(fd);
		return folder;
	}
	/* Whoever sweeps meanwhile takes the folder for a living process's, and leaves it. */
	folder.alive = flock(fd, LOCK_SH | LOCK_NB) < 0;
	read_folder(&folder, dir);
	closedir(dir);
	return folder;
}

void huge_folders_each(const char *mount, void (*fn)(void *arg, const struct huge_folder *folder),
		       void *arg) {
	DIR *dir = opendir(mount);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (!begins_with(entry->d_name, FOLDER_PREFIX)) continue;
		const struct huge_folder folder = look(dirfd(dir), entry->d_name);

		fn(arg, &folder);
	}
	if (dir) closedir(dir);
}
