/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the software NIC: its name, its address, its options. */
#include "nic_rig.h"

#include <errno.h>

static void address_follows_from_name_or_option(void **state) {
	struct softnic *a, *b, *c;

	(void)state;
	softnic_set_stepped(true);
	assert_int_equal(softnic_open(&a, "a"), 0);
	assert_int_equal(softnic_open(&b, "b"), 0);
	assert_int_equal(softnic_open(&c, "c,mac=02:00:00:00:AB:01"), 0);
	assert_int_equal(softnic_read32(a, REG_RAL) & 0xFF, 0x02);
	assert_true(softnic_read32(a, REG_RAL) != softnic_read32(b, REG_RAL) ||
		    softnic_read32(a, REG_RAH) != softnic_read32(b, REG_RAH));
	assert_int_equal(softnic_read32(c, REG_RAL), 0x00000002);
	assert_int_equal(softnic_read32(c, REG_RAH), 0x800001AB);
	softnic_close(c);
	softnic_close(b);
	softnic_close(a);
}

static void bad_options_are_refused_by_name(void **state) {
	static const char *const bad[][2] = {
	    {"x,mac=01:00:00:00:00:01", "mac=01"},
	    {"x,mac=00:00:00:00:00:00", "mac=00"},
	    {"x,mac=02:00:00:00:00", "mac=02"},
	    {"x,mac=02:00:00:00:00:0g", "mac=02"},
	    {"x,mac=02-00-00-00-00-01", "mac=02"},
	    {"x,strict=maybe", "strict=maybe"},
	    {"x,colour=red", "colour"},
	    {"x,fault=gremlin", "gremlin"},
	    {"x,fault=enable-late", "POLLS"},
	    {"x,fault=enable-late:x", "POLLS"},
	    {"x,fault=enable-late:0", "POLLS"},
	    {"x,fault=torn:3", "torn"},
	    {"x,fault=torn+", "''"},
	};

	(void)state;
	softnic_set_stepped(true);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct softnic *nic;

		assert_int_equal(softnic_open(&nic, bad[i][0]), -EINVAL);
		if (!strstr(ixdp_error(), bad[i][1]) || !strstr(ixdp_error(), "soft:x"))
			fail_msg("%s: %s", bad[i][0], ixdp_error());
		assert_null(softnic_find("x"));
	}
}

static void a_name_is_given_once(void **state) {
	struct softnic *first, *second;

	(void)state;
	softnic_set_stepped(true);
	assert_int_equal(softnic_open(&first, "same"), 0);
	softnic_tap(first, NULL, NULL); /* whatever its wire is */
	assert_int_equal(softnic_open(&second, "same"), -EBUSY);
	assert_non_null(strstr(ixdp_error(), "same"));
	assert_ptr_equal(softnic_find("same"), first);
	assert_string_equal(softnic_name(first), "same");
	assert_null(softnic_find("sam"));
	softnic_close(first);
	assert_null(softnic_find("same"));
	assert_int_equal(softnic_open(&second, "same"), 0);
	softnic_close(second);
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(address_follows_from_name_or_option),
	    cmocka_unit_test(bad_options_are_refused_by_name),
	    cmocka_unit_test(a_name_is_given_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
