/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A made-up sysfs of ordinary files with one 82599 in it, for tests of the sysfs bus. A thread
 * plays the kernel: what is written to `unbind` and `bind` of the driver ixgbe makes the device's
 * `driver` link go and come. Until it is started, what was written stays in these files, for all to
 * see.
 */
#pragma once

#include "bus/bus.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#define ADDRESS "0000:03:00.0"
#define DEVICE "bus/pci/devices/" ADDRESS
#define IXGBE "bus/pci/drivers/ixgbe"

/* Where the device has its capabilities in config space. */
enum { PM_CAP = 0x40, PCIE_CAP = 0xA0 };

extern char root[200];
extern struct ixdp_bus *bus; /* closed by tree_teardown() unless NULL */

extern struct kernel {
	pthread_t thread;
	bool runs;
	atomic_bool stop;
	atomic_uint unbinds, binds; /* of ADDRESS, character for character */
	atomic_uint wrong;	    /* anything else */
} kernel;

/* Around each test. The device is a 10FB without a driver, powered, bus master off. */
int tree_setup(void **state);
int tree_teardown(void **state);

/* Files by their name in the tree. in_root(): the full one, until the thread's next call. */
const char *in_root(const char *file);
void write_at(const char *file, long offset, const void *data, size_t size);
void read_at(const char *file, long offset, void *data, size_t size);
void write_text(const char *file, const char *text);
void make_folder(const char *file);
/* The file is there, and empty. */
bool is_empty(const char *file);

/* 16 bits of config space; vendor, device and class, there and in their files. */
void set_config16(unsigned offset, unsigned value);
unsigned config16(unsigned offset);
void set_ids(unsigned vendor, unsigned device, unsigned class);

/* Adds an interface; flags as sysfs has them, "0x1002\n" is down, "0x1003\n" is up. */
void set_interface(const char *name, const char *flags);

/* Binds it to a driver, made if need be; ixgbe: with an interface ixt0 that is down. */
void bind_to(const char *driver);
void bind_to_ixgbe(void);
bool has_driver(void);

void start_kernel(void);

/* Until the kernel has bound it again. */
void wait_for_driver(void);

/* Bound to ixgbe, as before any open. */
void assert_untouched(void);

/* Opens ADDRESS into bus, or a name that is refused with one line saying why. */
void open_works(bool force);
/* err: positive. */
void open_fails(const char *name, bool force, int err, const char *because);
void close_bus(void);
