/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI addresses as people type them, and what only looks like one. */
#include "sysfs_tree.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void every_usual_form_becomes_the_canonical_one(void **state) {
	static const char *const forms[][2] = {
	    {"0000:03:00.0", "0000:03:00.0"},
	    {"03:00.0", "0000:03:00.0"},
	    {"3:0.0", "0000:03:00.0"},
	    {"0:3:0.0", "0000:03:00.0"},
	    {"0000:AF:1F.7", "0000:af:1f.7"},
	    {"aF:1f.7", "0000:af:1f.7"},
	    {"ffff:ff:1f.7", "ffff:ff:1f.7"},
	    {"10000:e1:00.1", "10000:e1:00.1"},
	    {"00010000:e1:00.1", "10000:e1:00.1"},
	};
	char path[100];

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		/* By each of these addresses there is the same device, for libpci too. */
		snprintf(path, sizeof(path), "bus/pci/devices/%s", forms[i][1]);
		assert_true(symlink(ADDRESS, in_root(path)) == 0 || errno == EEXIST);
		if (bus_open(&bus, forms[i][0], false) < 0)
			fail_msg("%s: %s", forms[i][0], ixdp_error());
		assert_string_equal(bus->name, forms[i][1]);
		close_bus();
	}
}

static void what_is_no_address_is_refused_with_one_line(void **state) {
	static const char *const nonsense[] = {
	    "",
	    ":",
	    ".",
	    "eth0",
	    "03",
	    "03:00",
	    "03:00.",
	    "03:.0",
	    ":00.0",
	    "03:00.00",
	    /* out of range: device, function, digits, domain */
	    "0000:03:20.0",
	    "0000:03:00.8",
	    "0000:03:00.f",
	    "0000:003:00.0",
	    "0000:03:000.0",
	    "000000000:03:00.0",
	    "80000000:03:00.0",
	    "100:00.0",
	    /* what a lenient parser takes */
	    "0x3:00.0",
	    "-3:00.0",
	    "+3:00.0",
	    "*:00.0",
	    "0000:03:00.*",
	    "0:0000:03:00.0",
	    "0000.03:00.0",
	    "0000:03.00:0",
	    /* trailing or leading junk, and paths */
	    " 03:00.0",
	    "03:00.0 ",
	    "03: 00.0",
	    "03:00.0\n",
	    "03:00.0/",
	    "03:00.0x",
	    "/03:00.0",
	    "../0000:03:00.0",
	    "0000:03:00.0/../0000:03:00.1",
	    "03:00.0/../../../../etc/passwd",
	    "/sys/bus/pci/devices/0000:03:00.0",
	    "03:00.0\x7f",
	    "\x80",
	    "0000\n:03:00.0",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		if (bus_open(&bus, nonsense[i], true) != -EINVAL)
			fail_msg("\"%s\" was taken for an address", nonsense[i]);
		assert_non_null(strstr(ixdp_error(), "PCI address"));
		assert_null(strpbrk(ixdp_error(), "\n\x7f\x80"));
		assert_null(bus);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
	    TEST(every_usual_form_becomes_the_canonical_one),
	    TEST(what_is_no_address_is_refused_with_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
