/* SPDX-License-Identifier: BSD-3-Clause */
#include "doctor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void doctor_set_pages(const char *folder, const char *total, const char *free) {
	char file[200];

	make_folder(folder);
	snprintf(file, sizeof(file), "%s/nr_hugepages", folder);
	write_text(file, total);
	snprintf(file, sizeof(file), "%s/free_hugepages", folder);
	write_text(file, free);
}

int doctor_setup(void **state) {
	char mounts[500];

	tree_setup(state);
	doctor_set_pages(DOCTOR_PAGES, "256\n", "200\n");
	write_text(DOCTOR_PAGES "/resv_hugepages", "0\n");
	doctor_set_pages(DOCTOR_NODE1, "128\n", "100\n");
	make_folder("huge");
	snprintf(mounts, sizeof(mounts),
		 "tmpfs /tmp tmpfs rw 0 0\nhugetlbfs %s hugetlbfs rw,pagesize=2M 0 0\n",
		 in_root("huge"));
	write_text("mounts", mounts);
	return 0;
}

void doctor_run(struct program *program, const char *device) {
	program_start(program, PROGRAM_ARGS("ixdp-doctor", "--json", "--sysfs", root, device));
	program_wait(program);
}

const char *doctor_text(struct json_object *object, const char *name) {
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) ? json_object_get_string(value) : "";
}

struct json_object *doctor_finding(struct program *program, const char *item, const char *about) {
	struct json_object *objects = program_objects(program);

	for (size_t i = 0; i < json_object_array_length(objects); i++) {
		struct json_object *object = json_object_array_get_idx(objects, i);

		if (!strcmp(doctor_text(object, "item"), item) &&
		    !strcmp(doctor_text(object, "about"), about))
			return object;
	}
	return NULL;
}

void doctor_found(struct program *program, const char *status, const char *item, const char *about,
		  const char *says) {
	struct json_object *object = doctor_finding(program, item, about);
	char both[1024];

	if (!object) fail_msg("nothing about %s %s: %s", item, about, program->out.data);
	snprintf(both, sizeof(both), "%s; %s", doctor_text(object, "text"),
		 doctor_text(object, "fix"));
	if (strcmp(doctor_text(object, "status"), status) != 0 || !strstr(both, says))
		fail_msg("not %s with \"%s\": %s", status, says,
			 json_object_to_json_string(object));
	/* Whatever is wrong can be mended. */
	if (!strcmp(status, "WARN")) assert_true(*doctor_text(object, "fix"));
}

void doctor_in_the_way(const char *item, const char *about, const char *says) {
	struct program program;

	doctor_run(&program, ADDRESS);
	doctor_found(&program, "FAIL", item, about, says);
	doctor_found(&program, "FAIL", "verdict", ADDRESS, "cannot run");
	program_free(&program);
	doctor_run(&program, NULL);
	doctor_found(&program, "WARN", item, about, says);
	doctor_found(&program, "PASS", "verdict", "software ports", "can run");
	program_free(&program);
}

void doctor_passes(const char *item, const char *about, const char *says) {
	struct program program;

	doctor_run(&program, ADDRESS);
	doctor_found(&program, "PASS", item, about, says);
	/* Nothing else is amiss; but only root may use a card. */
	if (geteuid() == 0)
		doctor_found(&program, "PASS", "verdict", ADDRESS, "can run; 0 to mend");
	program_free(&program);
}
