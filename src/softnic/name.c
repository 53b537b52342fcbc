/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of software ports: NAME[,key=value...], a backslash before each comma, colon or backslash
 * that belongs to a value.
 */
#include "wire_kinds.h"

#include "../base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Keys whose values are lists with colons: softnic_value_split() resolves their backslashes. */
static const char *const split_keys[] = {"peer", "fault"};

static const char *const reserved[] = {"gen", "loop", "pcap", "tap", "unix"};

static bool listed(const char *word, const char *const *list, size_t n) {
	for (size_t i = 0; i < n; i++) {
		if (strcmp(word, list[i]) == 0) return true;
	}
	return false;
}

static bool word_only(const char *text) {
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-";

	return *text && text[strspn(text, letters)] == '\0';
}

/* Before anything of it is printed: an error is one line. */
static int check_bytes(const char *text) {
	for (size_t i = 0; text[i]; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
			return ixdp_fail(EINVAL, "port name: control character 0x%02x at byte %zu",
					 (unsigned char)text[i], i);
	}
	return 0;
}

int softnic_port_word(const char *word) {
	if (!word_only(word))
		return ixdp_fail(EINVAL,
				 "port name \"%.64s\": must be letters, digits, '_' or '-', at "
				 "least one",
				 word);
	if (strlen(word) >= IXDP_NAME_MAX - strlen("soft:"))
		return ixdp_fail(EINVAL, "port name \"%.64s\": longer than %zu characters", word,
				 IXDP_NAME_MAX - strlen("soft:") - 1);
	if (listed(word, reserved, sizeof(reserved) / sizeof(*reserved)))
		return ixdp_fail(EINVAL, "port name \"%s\": is the name of a kind of wire", word);
	return 0;
}

/* Ends the part at its first separator that no backslash protects; returns what follows, or NULL.
 */
static char *cut(char *part, char separator) {
	for (; *part; part++) {
		if (*part == '\\' && part[1]) {
			part++;
		} else if (*part == separator) {
			*part = '\0';
			return part + 1;
		}
	}
	return NULL;
}

/* Takes the backslashes out, in place. */
static void resolve(char *value) {
	char *to = value;

	for (const char *from = value; *from; from++) {
		if (*from == '\\' && from[1]) from++;
		*to++ = *from;
	}
	*to = '\0';
}

static int check_escapes(const char *name, const char *key, const char *value) {
	for (; *value; value++) {
		if (*value != '\\') continue;
		value++;
		if (*value == '\0' || !strchr(",:\\", *value))
			return ixdp_fail(EINVAL,
					 "soft:%s: %s=: a backslash stands only before ',', ':' "
					 "or '\\'",
					 name, key);
	}
	return 0;
}

static int parse_option(struct softnic_name *parsed, char *text) {
	struct softnic_option *option = &parsed->options[parsed->n_options];
	char *equals = strchr(text, '=');
	int err;

	if (!equals)
		return ixdp_fail(EINVAL, "soft:%s: option \"%.64s\": no '='", parsed->name, text);
	*equals = '\0';
	if (!word_only(text))
		return ixdp_fail(EINVAL,
				 "soft:%s: option \"%.64s=\": a key is letters, digits, '_' or "
				 "'-', at least one",
				 parsed->name, text);
	if (softnic_name_get(parsed, text))
		return ixdp_fail(EINVAL, "soft:%s: option %.64s= is given twice", parsed->name,
				 text);
	if (equals[1] == '\0')
		return ixdp_fail(EINVAL, "soft:%s: option %.64s= has no value", parsed->name, text);
	err = check_escapes(parsed->name, text, equals + 1);
	if (err) return err;
	option->key = text;
	option->value = equals + 1;
	if (!listed(text, split_keys, sizeof(split_keys) / sizeof(*split_keys)))
		resolve(option->value);
	parsed->n_options++;
	return 0;
}

static int parse_text(struct softnic_name *parsed) {
	char *next = cut(parsed->text, ',');
	int err = softnic_port_word(parsed->text);
	unsigned options = 1;

	if (err) return err;
	strcpy(parsed->name, parsed->text);
	if (!next) return 0;
	for (const char *p = next; *p; p++)
		options += *p == ','; /* a protected comma too: one too many does no harm */
	parsed->n_options = 0;
	parsed->options = calloc(options, sizeof(*parsed->options));
	if (!parsed->options) return ixdp_fail(ENOMEM, "soft:%s: out of memory", parsed->name);
	while (next) {
		char *text = next;

		next = cut(text, ',');
		err = parse_option(parsed, text);
		if (err) return err;
	}
	return 0;
}

int softnic_name_parse(struct softnic_name *parsed, const char *text) {
	int err = check_bytes(text);

	*parsed = (struct softnic_name){0};
	if (err) return err;
	parsed->text = strdup(text);
	if (!parsed->text) return ixdp_fail(ENOMEM, "port name: out of memory");
	err = parse_text(parsed);
	if (err) softnic_name_free(parsed);
	return err;
}

void softnic_name_free(struct softnic_name *parsed) {
	free(parsed->options);
	free(parsed->text);
	*parsed = (struct softnic_name){0};
}

const char *softnic_name_get(const struct softnic_name *parsed, const char *key) {
	for (unsigned i = 0; i < parsed->n_options; i++) {
		if (strcmp(parsed->options[i].key, key) == 0) return parsed->options[i].value;
	}
	return NULL;
}

int softnic_value_split(char *value, char **parts, unsigned max) {
	unsigned n = 0;

	while (value) {
		char *next = cut(value, ':');

		if (n == max)
			return ixdp_fail(EINVAL, "more than %u parts with ':' between them", max);
		resolve(value);
		parts[n++] = value;
		value = next;
	}
	return (int)n;
}
