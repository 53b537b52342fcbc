/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"
#include "pci.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads 1 to `digits` hexadecimal digits and the character that must end them. */
static bool number(const char **text, unsigned digits, char end, unsigned *value) {
	size_t n = strspn(*text, "0123456789abcdefABCDEF");

	if (n == 0 || n > digits || (*text)[n] != end)
		return false;
	*value = (unsigned)strtoul(*text, NULL, 16);
	*text += n + 1;
	return true;
}

/* libpci has a parser too, but that one takes wildcards, signs and whatever follows the number. */
int pci_name_parse(struct pci_device *dev, const char *text) {
	const char *rest = text;
	bool has_domain = strchr(text, ':') != strrchr(text, ':');
	int shown = 0;

	*dev = (struct pci_device){.dir = -1, .lock = -1, .driver_dir = -1};
	/* libpci has domains as int. */
	if ((!has_domain || (number(&rest, 8, ':', &dev->domain) && dev->domain <= INT32_MAX)) &&
	    number(&rest, 2, ':', &dev->bus) && number(&rest, 2, '.', &dev->slot) &&
	    dev->slot <= 0x1F && number(&rest, 1, '\0', &dev->function) && dev->function <= 7) {
		snprintf(dev->name, sizeof(dev->name), "%04x:%02x:%02x.%x", dev->domain, dev->bus,
			 dev->slot, dev->function);
		return 0;
	}
	while (shown < 40 && isprint((unsigned char)text[shown]))
		shown++;
	return ixdp_fail(EINVAL,
			 "\"%.*s\": neither a PCI address (like 0000:03:00.0, device up to 1f, "
			 "function up to 7) nor a software port (soft:NAME)",
			 shown, text);
}
