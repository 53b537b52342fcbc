/* SPDX-License-Identifier: BSD-3-Clause */
/* ixdp-doctor from end to end: its output, and what it says of cards. */
#include "doctor.h"
#include "program.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <ixdp/ixdp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- as a whole ---------------------------------------------------------------------------- */

static void this_machine_runs_software_ports(void **state) {
	struct program program;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-doctor", "--json"));
	assert_int_equal(program_wait(&program), 0);
	doctor_found(&program, "PASS", "software", "soft:doctor", "1000 came back whole");
	doctor_found(&program, "PASS", "verdict", "software ports", "can run; 0 to mend");
	assert_non_null(doctor_finding(&program, "hugepages", ""));
	assert_int_equal(program.err.len, 0);
	program_free(&program);
}

static void lines_begin_with_a_word_to_grep_for(void **state) {
	struct program program;
	const char *line, *last = NULL;

	(void)state;
	program_start(&program, PROGRAM_ARGS("ixdp-doctor", "--sysfs", root, "nonsense"));
	while ((line = program_line(&program))) {
		assert_non_null(strstr("PASS SKIP WARN FAIL",
				       (char[]){line[0], line[1], line[2], line[3], '\0'}));
		assert_memory_equal(line + 4, "  ", 2);
		last = line;
	}
	assert_non_null(last);
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.out.data, "FAIL  nic nonsense: no such device; fix: lspci"));
	assert_non_null(strstr(program.out.data, "FAIL  verdict nonsense: cannot run; 1 to mend"));
	program_free(&program);
}

static void the_exit_code_is_the_verdict(void **state) {
	static const struct {
		const char *device;
		int code;
		const char *item, *says;
	} cases[] = {
	    {"soft:a", 0, "software", "link is up"},
	    {"soft:a,fault=link-down", 1, "software", "link is down"},
	    {"soft:a,colour=red", 1, "software", "colour"},
	    {"0000:7f:00.0", 1, "nic", "no such device"},
	    {"nonsense", 1, "nic", "no such device"},
	};
	struct program program;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *status = cases[i].code ? "FAIL" : "PASS";

		program_start(&program, PROGRAM_ARGS("ixdp-doctor", "--json", cases[i].device));
		assert_int_equal(program_wait(&program), cases[i].code);
		doctor_found(&program, status, cases[i].item, cases[i].device, cases[i].says);
		doctor_found(&program, status, "verdict", cases[i].device, "");
		program_free(&program);
	}
}

static void wrong_usage_is_one_line(void **state) {
	static const struct {
		const char *args[4];
		const char *named;
	} cases[] = {
	    {{"soft:a", "soft:b"}, "soft:b"},
	    {{"--clean", "--sysfs", "/sys"}, "--clean"},
	    {{"--selftest"}, "--selftest: DEV"},
	    {{"--selftest", "soft:a", "--sysfs=/sys"}, "--selftest"},
	    {{"--force", "soft:a"}, "--force"},
	};
	struct program program;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		program_start(&program, PROGRAM_ARGS("ixdp-doctor", cases[i].args[0],
						     cases[i].args[1], cases[i].args[2]));
		assert_int_equal(program_wait(&program), 2);
		assert_int_equal(program_lines(&program.err), 1);
		assert_non_null(strstr(program.err.data, cases[i].named));
		program_free(&program);
	}
}

static void refuses_a_closed_stdout(void **state) {
	struct program program;

	(void)state;
	program_start_mute(&program, PROGRAM_ARGS("ixdp-doctor"));
	assert_int_equal(program_wait(&program), 1);
	assert_non_null(strstr(program.err.data, "stdout is closed"));
	program_free(&program);
}

/* --- cards --------------------------------------------------------------------------------- */

static void a_good_machine_passes(void **state) {
	struct program program;

	(void)state;
	bind_to_ixgbe();
	program_start(&program, PROGRAM_ARGS("ixdp-doctor", "--json", "--sysfs", root, "3:0.0"));
	assert_int_equal(program_wait(&program), geteuid() == 0 ? 0 : 1);
	doctor_found(&program, "PASS", "nic", ADDRESS, "8086:10fb");
	doctor_found(&program, "PASS", "use", ADDRESS, "bound to ixgbe");
	doctor_found(&program, "PASS", "iommu", ADDRESS, "none");
	doctor_found(&program, "PASS", "memory", ADDRESS, "node 1, which has 100 free");
	doctor_found(&program, "PASS", "mount", in_root("huge"), "can be written");
	doctor_found(&program, "PASS", "leftovers", in_root("huge"), "none");
	doctor_found(&program, geteuid() == 0 ? "PASS" : "FAIL", "root", "", "");
	assert_untouched();
	program_free(&program);
}

static void says_who_uses_a_card(void **state) {
	(void)state;
	doctor_passes("use", ADDRESS, "no driver");
	bind_to("vfio-pci");
	doctor_in_the_way("use", ADDRESS, "/sys/bus/pci/drivers/vfio-pci/unbind");
	bind_to("uio_pci_generic");
	doctor_in_the_way("use", ADDRESS, "drivers/uio_pci_generic/unbind");
	bind_to("ixgbe");
	doctor_in_the_way("use", ADDRESS, "network namespace");
	set_interface("ixt0", "0x1002\n");
	doctor_passes("use", ADDRESS, "bound to ixgbe");
	set_interface("ixt0", "0x1003\n");
	doctor_in_the_way("use", ADDRESS, "its interface ixt0 is up; ip address flush dev ixt0");
}

static bool has_loopback_address(void) {
	struct ifaddrs *addresses;
	bool found = false;

	assert_int_equal(getifaddrs(&addresses), 0);
	for (struct ifaddrs *a = addresses; a; a = a->ifa_next)
		found |=
		    !strcmp(a->ifa_name, "lo") && a->ifa_addr && a->ifa_addr->sa_family == AF_INET;
	freeifaddrs(addresses);
	return found;
}

/* The flags are made up, the addresses of lo are this machine's. */
static void an_interface_with_an_address_is_used(void **state) {
	(void)state;
	if (!has_loopback_address()) {
		print_message("needs an address on the interface lo\n");
		skip();
	}
	bind_to("ixgbe");
	set_interface("lo", "0x8\n");
	doctor_in_the_way("use", ADDRESS, "its interface lo has an address");
}

static void a_card_in_another_process_is_used(void **state) {
	char path[300];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s", in_root("ixdp-" ADDRESS ".lock"));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	doctor_in_the_way("use", ADDRESS, "fuser");
	close(fd);
	/* Left behind, as always. */
	doctor_passes("use", ADDRESS, "no driver");
}

static void an_iommu_that_translates_is_in_the_way(void **state) {
	(void)state;
	make_folder("kernel/iommu_groups/7");
	assert_int_equal(
	    symlink("../../../../kernel/iommu_groups/7", in_root(DEVICE "/iommu_group")), 0);
	doctor_in_the_way("iommu", ADDRESS, "unknown");
	write_text("kernel/iommu_groups/7/type", "DMA-FQ\n");
	doctor_in_the_way("iommu", ADDRESS, "group type DMA-FQ");
	write_text("kernel/iommu_groups/7/type", "identity\n");
	doctor_passes("iommu", ADDRESS, "identity");
}

static void other_cards_are_named(void **state) {
	struct program program;

	(void)state;
	set_ids(0x8086, 0x1528, 0x0200);
	doctor_run(&program, ADDRESS);
	doctor_found(&program, "FAIL", "nic", ADDRESS, "X540");
	assert_null(doctor_finding(&program, "use", ADDRESS));
	program_free(&program);
	doctor_run(&program, NULL);
	doctor_found(&program, "SKIP", "nic", ADDRESS, "X540");
	doctor_found(&program, "WARN", "nic", "", "no 82599");
	program_free(&program);

	/* What is no NIC at all is none of its business, unless somebody asks. */
	set_ids(0x1234, 0x10FB, 0x0108);
	doctor_run(&program, ADDRESS);
	doctor_found(&program, "FAIL", "nic", ADDRESS, "(class 0108");
	program_free(&program);
	doctor_run(&program, NULL);
	assert_null(doctor_finding(&program, "nic", ADDRESS));
	program_free(&program);
}

static void a_machine_without_pci_runs_software_ports(void **state) {
	char bus_folder[300];
	struct program program;

	(void)state;
	snprintf(bus_folder, sizeof(bus_folder), "%s", in_root("bus"));
	assert_int_equal(rename(bus_folder, in_root("no-bus")), 0);
	program_start(&program, PROGRAM_ARGS("ixdp-doctor", "--json", "--sysfs", root));
	assert_int_equal(program_wait(&program), 0);
	doctor_found(&program, "WARN", "nic", "", "no list of PCI devices");
	program_free(&program);
}

/* --- ids ----------------------------------------------------------------------------------- */

/* All relatives of the 82599 have ids in 10E0 to 10FF or in 1500 to 15FF. */
enum { IDS = 0x20 + 0x100 };

static unsigned id_of(unsigned i) { return i < 0x20 ? 0x10E0 + i : 0x1500 + i - 0x20; }

static const char *address_of(unsigned id) {
	static char address[24];

	snprintf(address, sizeof(address), "0001:%02x:%02x.%x", id >> 8, id >> 3 & 0x1F, id & 7);
	return address;
}

static void add_device(unsigned id) {
	static const char *const files[] = {"vendor", "device", "class"};
	const unsigned values[] = {0x8086, id, 0x020000};
	char file[100], text[20];

	snprintf(file, sizeof(file), "bus/pci/devices/%s", address_of(id));
	make_folder(file);
	for (unsigned i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), "bus/pci/devices/%s/%s", address_of(id), files[i]);
		snprintf(text, sizeof(text), "0x%04x\n", values[i]);
		write_text(file, text);
	}
	snprintf(file, sizeof(file), "bus/pci/devices/%s/config", address_of(id));
	write_at(file, 255, "", 1);
}

/* The doctor has a list of its own, which would be wrong some day if nobody looked. */
static void knows_the_ids_that_the_library_knows(void **state) {
	struct json_object *objects;
	struct program program;
	unsigned compared = 0, good = 0;

	(void)state;
	for (unsigned i = 0; i < IDS; i++)
		add_device(id_of(i));
	doctor_run(&program, NULL);
	objects = program_objects(&program);
	for (size_t i = 0; i < json_object_array_length(objects); i++) {
		struct json_object *object = json_object_array_get_idx(objects, i);
		const char *address = doctor_text(object, "about");

		if (strcmp(doctor_text(object, "item"), "nic") != 0 ||
		    strncmp(address, "0001:", 5) != 0)
			continue;
		/* One that it knows has no registers here, so it is refused for that. */
		assert_true(bus_open(&bus, address, false) < 0);
		const bool supported = !strstr(ixdp_error(), "(class ");
		const char *text = doctor_text(object, "text");

		assert_string_equal(doctor_text(object, "status"), supported ? "PASS" : "SKIP");
		if (!supported)
			assert_string_equal(strstr(text, ") is "), strstr(ixdp_error(), ") is "));
		compared++;
		good += supported;
	}
	assert_int_equal(compared, IDS);
	assert_true(good > 10);
	program_free(&program);
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, doctor_setup, tree_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(this_machine_runs_software_ports),
	    ON_MACHINE(lines_begin_with_a_word_to_grep_for),
	    cmocka_unit_test(the_exit_code_is_the_verdict),
	    cmocka_unit_test(wrong_usage_is_one_line),
	    cmocka_unit_test(refuses_a_closed_stdout),
	    ON_MACHINE(a_good_machine_passes),
	    ON_MACHINE(says_who_uses_a_card),
	    ON_MACHINE(an_interface_with_an_address_is_used),
	    ON_MACHINE(a_card_in_another_process_is_used),
	    ON_MACHINE(an_iommu_that_translates_is_in_the_way),
	    ON_MACHINE(other_cards_are_named),
	    ON_MACHINE(a_machine_without_pci_runs_software_ports),
	    ON_MACHINE(knows_the_ids_that_the_library_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
