/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of software ports: what they mean, and that each refusal says what is wrong. */
#include "softnic/wire.h"

#include <ixdp/ixdp.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_name_alone(void **state) {
	struct softnic_name name;

	(void)state;
	assert_int_equal(softnic_name_parse(&name, "eth-0_A"), 0);
	assert_string_equal(name.name, "eth-0_A");
	assert_int_equal(name.n_options, 0);
	assert_null(softnic_name_get(&name, "peer"));
	softnic_name_free(&name);
}

static void options_are_found_by_key(void **state) {
	struct softnic_name name;

	(void)state;
	assert_int_equal(softnic_name_parse(&name, "a,peer=gen,rate=200kpps,x=a=b,size=60"), 0);
	assert_string_equal(name.name, "a");
	assert_int_equal(name.n_options, 4);
	assert_string_equal(name.options[0].key, "peer");
	assert_string_equal(softnic_name_get(&name, "peer"), "gen");
	assert_string_equal(softnic_name_get(&name, "rate"), "200kpps");
	assert_string_equal(softnic_name_get(&name, "x"), "a=b");
	assert_string_equal(softnic_name_get(&name, "size"), "60");
	assert_null(softnic_name_get(&name, "flows"));
	softnic_name_free(&name);
}

static void backslashes_protect_separators(void **state) {
	struct softnic_name name;

	(void)state;
	assert_int_equal(softnic_name_parse(&name, "a,x=1\\,2\\:3\\\\,y=\\\\\\,z,w=q\\\\"), 0);
	assert_int_equal(name.n_options, 3);
	assert_string_equal(softnic_name_get(&name, "x"), "1,2:3\\");
	assert_string_equal(softnic_name_get(&name, "y"), "\\,z");
	assert_string_equal(softnic_name_get(&name, "w"), "q\\");
	softnic_name_free(&name);
}

static void values_that_are_split_keep_backslashes_until_then(void **state) {
	struct softnic_name name;

	(void)state;
	assert_int_equal(softnic_name_parse(&name, "a,peer=pcap:x\\:1\\,2:y,fault=z\\:0"), 0);
	assert_string_equal(softnic_name_get(&name, "peer"), "pcap:x\\:1\\,2:y");
	assert_string_equal(softnic_name_get(&name, "fault"), "z\\:0");
	softnic_name_free(&name);
}

static void expect_parts(const char *value, int n, const char *a, const char *b, const char *c) {
	char *copy = strdup(value);
	char *parts[3] = {NULL, NULL, NULL};

	assert_int_equal(softnic_value_split(copy, parts, 3), n);
	assert_string_equal(parts[0], a);
	if (n > 1) assert_string_equal(parts[1], b);
	if (n > 2) assert_string_equal(parts[2], c);
	free(copy);
}

static void values_are_split_at_colons(void **state) {
	(void)state;
	expect_parts("gen", 1, "gen", NULL, NULL);
	expect_parts("pcap:in", 2, "pcap", "in", NULL);
	expect_parts("pcap:in:out", 3, "pcap", "in", "out");
	expect_parts("pcap::out", 3, "pcap", "", "out");
	expect_parts("pcap:", 2, "pcap", "", NULL);
	expect_parts("pcap:C\\:\\\\x\\,y:out", 3, "pcap", "C:\\x,y", "out");
	expect_parts("a\\\\:b", 2, "a\\", "b", NULL);
}

/* Found by fuzz_name: such a backslash was taken to protect the end, and what lies behind was read.
 */
static void a_backslash_at_the_end_protects_nothing(void **state) {
	(void)state;
	expect_parts("a\\", 1, "a\\", NULL, NULL);
	expect_parts("a:b\\\\\\", 2, "a", "b\\\\", NULL);
}

static void too_many_parts_are_refused(void **state) {
	char value[] = "pcap:a:b:c";
	char *parts[3];

	(void)state;
	assert_int_equal(softnic_value_split(value, parts, 3), -EINVAL);
	assert_string_equal(ixdp_error(), "more than 3 parts with ':' between them");
}

/* 58 characters with "soft:" and NUL are the IXDP_NAME_MAX of a port's name. */
#define LONGEST "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefgh"

static void nonsense_is_refused_by_name(void **state) {
	static const struct {
		const char *text;
		const char *error;
	} bad[] = {
	    {"", "port name \"\": must be letters, digits, '_' or '-', at least one"},
	    {",peer=gen", "port name \"\": must be letters, digits, '_' or '-', at least one"},
	    {"a b", "port name \"a b\": must be letters, digits, '_' or '-', at least one"},
	    {"a:b", "port name \"a:b\": must be letters, digits, '_' or '-', at least one"},
	    {"a\\,b", "port name \"a\\,b\": must be letters, digits, '_' or '-', at least one"},
	    {"../a", "port name \"../a\": must be letters, digits, '_' or '-', at least one"},
	    {"\xc3\xa4",
	     "port name \"\xc3\xa4\": must be letters, digits, '_' or '-', at least one"},
	    {"gen", "port name \"gen\": is the name of a kind of wire"},
	    {"loop,x=1", "port name \"loop\": is the name of a kind of wire"},
	    {"pcap", "port name \"pcap\": is the name of a kind of wire"},
	    {"tap", "port name \"tap\": is the name of a kind of wire"},
	    {"unix", "port name \"unix\": is the name of a kind of wire"},
	    {LONGEST "i", "port name \"" LONGEST "i\": longer than 58 characters"},
	    {"a,", "soft:a: option \"\": no '='"},
	    {"a,,x=1", "soft:a: option \"\": no '='"},
	    {"a,x=1,", "soft:a: option \"\": no '='"},
	    {"a,peer", "soft:a: option \"peer\": no '='"},
	    {"a,=x", "soft:a: option \"=\": a key is letters, digits, '_' or '-', at least one"},
	    {"a,p\\,q=x",
	     "soft:a: option \"p\\,q=\": a key is letters, digits, '_' or '-', at least one"},
	    {"a,x=", "soft:a: option x= has no value"},
	    {"a,x=1,y=2,x=3", "soft:a: option x= is given twice"},
	    {"a,peer=gen,peer=gen", "soft:a: option peer= is given twice"},
	    {"a,x=1\\", "soft:a: x=: a backslash stands only before ',', ':' or '\\'"},
	    {"a,x=\\n", "soft:a: x=: a backslash stands only before ',', ':' or '\\'"},
	    {"a,peer=pcap:\\x", "soft:a: peer=: a backslash stands only before ',', ':' or '\\'"},
	    {"a\n", "port name: control character 0x0a at byte 1"},
	    {"a,x=\x7f", "port name: control character 0x7f at byte 4"},
	    {"a,x=\x1b[2J", "port name: control character 0x1b at byte 4"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct softnic_name name;

		assert_int_equal(softnic_name_parse(&name, bad[i].text), -EINVAL);
		assert_string_equal(ixdp_error(), bad[i].error);
	}
}

static void the_longest_name_is_taken(void **state) {
	struct softnic_name name;

	(void)state;
	assert_int_equal(softnic_name_parse(&name, LONGEST ",x=1"), 0);
	assert_string_equal(name.name, LONGEST);
	softnic_name_free(&name);
}

static void any_bytes_are_harmless(void **state) {
	static const char letters[] = "ab,=:\\\\,x\n";
	uint64_t random = 1;

	(void)state;
	for (unsigned i = 0; i < 50000; i++) {
		struct softnic_name name;
		char text[24];
		unsigned len;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		len = random >> 59;
		len = len < sizeof(text) ? len : sizeof(text) - 1;
		for (unsigned c = 0; c < len; c++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			text[c] = letters[(random >> 33) % (sizeof(letters) - 1)];
		}
		text[len] = '\0';
		if (softnic_name_parse(&name, text) == 0) softnic_name_free(&name);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_name_alone),
	    cmocka_unit_test(options_are_found_by_key),
	    cmocka_unit_test(backslashes_protect_separators),
	    cmocka_unit_test(values_that_are_split_keep_backslashes_until_then),
	    cmocka_unit_test(values_are_split_at_colons),
	    cmocka_unit_test(a_backslash_at_the_end_protects_nothing),
	    cmocka_unit_test(too_many_parts_are_refused),
	    cmocka_unit_test(nonsense_is_refused_by_name),
	    cmocka_unit_test(the_longest_name_is_taken),
	    cmocka_unit_test(any_bytes_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
