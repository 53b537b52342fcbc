/* SPDX-License-Identifier: BSD-3-Clause */
/* The software NIC from outside: opening by name, registers, the test's own wire. */
#include "nic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- the test as a wire ----------------------------------------------------------------------- */

static const uint8_t *tap_peek(struct wire *wire, uint64_t now_ns, size_t *len, bool *bad_crc) {
	(void)wire, (void)now_ns, (void)len, (void)bad_crc;
	return NULL;
}

static bool tap_send(struct wire *wire, const uint8_t *frame, size_t len, uint64_t now_ns) {
	struct nic_tap *tap = (struct nic_tap *)wire;

	(void)now_ns;
	if (tap->sent && !tap->sent(frame, len, tap->arg)) return false;
	tap->stats.from_port_packets++;
	tap->stats.from_port_bytes += len;
	return true;
}

static void tap_stats(struct wire *wire, struct ixdp_wire_stats *stats) {
	*stats = ((struct nic_tap *)wire)->stats;
}

static void tap_close(struct wire *wire) { (void)wire; }

static const struct wire_ops tap_ops = {
    .peek = tap_peek, .send = tap_send, .stats = tap_stats, .close = tap_close};

void softnic_tap(struct softnic *nic, bool (*sent)(const uint8_t *frame, size_t len, void *arg),
		 void *arg) {
	struct wire *old;

	nic_lock_take(&nic->lock);
	old = nic->wire;
	nic->tap.wire.ops = &tap_ops;
	nic->tap.sent = sent;
	nic->tap.arg = arg;
	nic->wire = &nic->tap.wire;
	nic_lock_give(&nic->lock);
	if (old && old != &nic->tap.wire) old->ops->close(old);
}

static bool inject(struct softnic *nic, const void *frame, size_t len, bool bad_crc) {
	bool taken;

	nic_lock_take(&nic->lock);
	/* A NIC that is looped back does not hear the wire. */
	taken = NIC_REG(nic, HLREG0) & HLREG0_LPBK || nic_rx_arrive(nic, frame, len, bad_crc);
	nic->tap.stats.to_port_packets++;
	nic->tap.stats.to_port_bytes += len;
	nic_lock_give(&nic->lock);
	return taken;
}

bool softnic_inject(struct softnic *nic, const void *frame, size_t len) {
	return inject(nic, frame, len, false);
}

bool softnic_inject_bad_crc(struct softnic *nic, const void *frame, size_t len) {
	return inject(nic, frame, len, true);
}

void softnic_steer(struct softnic *nic,
		   unsigned (*queue_of)(const uint8_t *frame, size_t len, void *arg), void *arg) {
	nic_lock_take(&nic->lock);
	nic->steer = queue_of;
	nic->steer_arg = arg;
	nic_lock_give(&nic->lock);
}

/* --- the wire --------------------------------------------------------------------------------- */

static bool tx_idle(struct softnic *nic) {
	for (unsigned n = 0; n < NIC_TX_QUEUES; n++)
		if (nic->tx_on[n / 64] >> n % 64 & 1 &&
		    __atomic_load_n(&nic->tx[n].doorbell, __ATOMIC_ACQUIRE) !=
			NIC_REG_N(nic, TDH, n))
			return false;
	return true;
}

int softnic_wire_stats(struct softnic *nic, struct ixdp_wire_stats *stats) {
	uint64_t now = softnic_now_ns(nic);
	size_t len;
	bool bad_crc;

	memset(stats, 0, sizeof(*stats));
	nic_lock_take(&nic->lock);
	nic->wire->ops->stats(nic->wire, stats);
	stats->drained = (!stats->source || stats->exhausted) && nic->fifo.used == 0 &&
			 nic->late_count == 0 && tx_idle(nic) &&
			 !nic->wire->ops->peek(nic->wire, now, &len, &bad_crc);
	nic_lock_give(&nic->lock);
	return 0;
}

void softnic_wire_stop(struct softnic *nic) {
	nic_lock_take(&nic->lock);
	if (nic->wire->ops->stop) nic->wire->ops->stop(nic->wire);
	nic_lock_give(&nic->lock);
}

/* --- registers -------------------------------------------------------------------------------- */

/* A register outside of the table is storage; what touches it should know that it is no more. */
static void log_unknown(struct softnic *nic, uint32_t offset) {
	uint8_t bit = 1 << offset / 4 % 8;

	if (nic->unknown[offset / 4 / 8] & bit) return;
	nic->unknown[offset / 4 / 8] |= bit;
	ixdp_log(IXDP_LOG_INFO, "soft:%s: register 0x%05X is not modelled, it only stores",
		 nic->name, offset);
}

/* The register at an offset and where it is stored. NULL: not in the table. */
static const struct nic_reg *locate(uint32_t *offset, unsigned *n) {
	const struct nic_reg *reg;

	*offset = *offset % NIC_BAR_SIZE & ~UINT32_C(3);
	reg = nic_reg_find(*offset, n);
	if (reg) *offset = nic_reg_offset(reg, *n);
	return reg;
}

static uint32_t read_register(struct softnic *nic, uint32_t offset) {
	unsigned n;
	const struct nic_reg *reg = locate(&offset, &n);
	uint32_t *stored = &nic->regs[offset / 4];
	uint32_t value = *stored;

	if (!reg) {
		log_unknown(nic, offset);
		return value;
	}
	if (reg->read) return reg->read(nic, n, value);
	if (reg->access == NIC_RC) *stored = 0;
	return value;
}

static void write_register(struct softnic *nic, uint32_t offset, uint32_t value) {
	unsigned n;
	const struct nic_reg *reg = locate(&offset, &n);
	uint32_t *stored = &nic->regs[offset / 4];

	if (!reg) {
		log_unknown(nic, offset);
		*stored = value;
		return;
	}
	nic_strict_write(nic, reg, offset, value);
	if (reg->write)
		reg->write(nic, n, value);
	else if (reg->access == NIC_RW)
		*stored = (*stored & reg->fixed) | (value & ~reg->fixed);
	else if (reg->access == NIC_W1S)
		*stored |= value;
	else if (reg->access == NIC_W1C)
		*stored &= ~value;
}

static void call_hook(struct softnic *nic, const struct softnic_hooks *hooks, bool write,
		      uint32_t reg, uint32_t value) {
	if (hooks->access) hooks->access(nic, write, reg, value, hooks->arg);
}

/* The hook runs outside of the lock, so that it may use the NIC. */
uint32_t softnic_read32(struct softnic *nic, uint32_t reg) {
	struct softnic_hooks hooks;
	uint32_t value = UINT32_MAX;

	nic_lock_take(&nic->lock);
	hooks = nic->hooks;
	if (!nic_fault(nic, FAULT_ALL_ONES)) value = read_register(nic, reg);
	nic_lock_give(&nic->lock);
	call_hook(nic, &hooks, false, reg, value);
	return value;
}

void softnic_write32(struct softnic *nic, uint32_t reg, uint32_t value) {
	struct softnic_hooks hooks;

	nic_lock_take(&nic->lock);
	hooks = nic->hooks;
	if (!nic_fault(nic, FAULT_ALL_ONES)) write_register(nic, reg, value);
	nic_lock_give(&nic->lock);
	call_hook(nic, &hooks, true, reg, value);
}

/* Where a register's value is: a tail's is its doorbell. */
static uint32_t *storage(struct softnic *nic, uint32_t offset) {
	volatile uint32_t *doorbell;

	unsigned n;

	locate(&offset, &n);
	doorbell = softnic_doorbell(nic, offset);
	return doorbell ? (uint32_t *)doorbell : &nic->regs[offset / 4];
}

uint32_t softnic_peek(struct softnic *nic, uint32_t reg) {
	uint32_t value;

	nic_lock_take(&nic->lock);
	value = __atomic_load_n(storage(nic, reg), __ATOMIC_RELAXED);
	nic_lock_give(&nic->lock);
	return value;
}

void softnic_poke(struct softnic *nic, uint32_t reg, uint32_t value) {
	nic_lock_take(&nic->lock);
	__atomic_store_n(storage(nic, reg), value, __ATOMIC_RELAXED);
	nic_filter_addresses(nic);
	nic_lock_give(&nic->lock);
}

volatile uint32_t *softnic_doorbell(struct softnic *nic, uint32_t reg) {
	for (unsigned n = 0; n < NIC_RX_QUEUES; n++)
		if (reg == NIC_RXQ_REG(RDT, n)) return &nic->rx[n].doorbell;
	for (unsigned n = 0; n < NIC_TX_QUEUES; n++)
		if (reg == REG_N(TDT, n)) return &nic->tx[n].doorbell;
	return NULL;
}

void softnic_bus_master(struct softnic *nic, bool on) {
	nic_lock_take(&nic->lock);
	nic->bus_master = on;
	nic_lock_give(&nic->lock);
}

void softnic_set_hooks(struct softnic *nic, const struct softnic_hooks *hooks) {
	nic_lock_take(&nic->lock);
	nic->hooks = hooks ? *hooks : (struct softnic_hooks){0};
	nic_lock_give(&nic->lock);
}

int softnic_fault(struct softnic *nic, const char *fault) {
	int err;

	nic_lock_take(&nic->lock);
	err = nic_fault_set(nic, fault);
	nic_lock_give(&nic->lock);
	return err;
}

const char *softnic_name(const struct softnic *nic) { return nic->name; }

/* --- open and close ----------------------------------------------------------------------------
 */

/* Without mac= a locally administered address that follows from the name: the same in every run. */
static void default_mac(const char *name, uint8_t mac[6]) {
	uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001B3;
	for (int i = 0; i < 6; i++)
		mac[i] = hash >> 8 * i;
	mac[0] = 0x02;
}

static int parse_mac(const char *text, uint8_t mac[6]) {
	static const char digits[] = "0123456789abcdefABCDEF";
	uint8_t any = 0;

	if (strlen(text) != 17) return -1;
	for (int i = 0; i < 6; i++, text += 3) {
		if (strspn(text, digits) < 2 || (i < 5 && text[2] != ':')) return -1;
		mac[i] = strtoul(text, NULL, 16);
		any |= mac[i];
	}
	return mac[0] & 1 || any == 0 ? -1 : 0;
}

/* The keys of the NIC itself. */
static int configure(struct softnic *nic, const struct softnic_name *name) {
	const char *mac = softnic_name_get(name, "mac");
	const char *strict = softnic_name_get(name, "strict");
	const char *fault = softnic_name_get(name, "fault");

	for (unsigned i = 0; i < name->n_options; i++) {
		const char *key = name->options[i].key;

		if (strcmp(key, "mac") != 0 && strcmp(key, "strict") != 0 &&
		    strcmp(key, "fault") != 0 && !wire_knows(key))
			return ixdp_fail(EINVAL, "soft:%s: unknown option '%s'", nic->name, key);
	}
	default_mac(nic->name, nic->mac);
	if (mac && parse_mac(mac, nic->mac) != 0)
		return ixdp_fail(EINVAL,
				 "soft:%s: mac=%s is not a unicast address like 02:00:00:00:00:01",
				 nic->name, mac);
	nic->strict = !strict || strcmp(strict, "on") == 0;
	if (strict && !nic->strict && strcmp(strict, "off") != 0)
		return ixdp_fail(EINVAL, "soft:%s: strict=%s: say on or off", nic->name, strict);
	return fault ? nic_fault_set(nic, fault) : 0;
}

static void destroy(struct softnic *nic) {
	if (nic->wire) nic->wire->ops->close(nic->wire);
	free(nic->fifo.data);
	free(nic->regions);
	pthread_mutex_destroy(&nic->lock.turnstile);
	pthread_mutex_destroy(&nic->lock.mutex);
	free(nic);
}

static struct softnic *create(const struct softnic_name *name) {
	struct softnic *nic = aligned_alloc(_Alignof(struct softnic), sizeof(*nic));

	if (!nic) return NULL;
	memset(nic, 0, sizeof(*nic));
	memcpy(nic->name, name->name, sizeof(nic->name));
	nic->fifo.data = malloc(2 * NIC_FIFO_MAX);
	if (!nic->fifo.data || nic_lock_init(&nic->lock) != 0) {
		free(nic->fifo.data);
		free(nic);
		return NULL;
	}
	return nic;
}

/* Within nic_life_begin() and nic_life_end(): nobody else opens or closes. */
static int open_named(struct softnic **opened, const struct softnic_name *name) {
	struct softnic *nic;
	int err;

	if (softnic_find(name->name))
		return ixdp_fail(EBUSY, "soft:%s: a software NIC of this name is open already",
				 name->name);
	nic = create(name);
	if (!nic) return ixdp_fail(ENOMEM, "soft:%s: out of memory", name->name);
	err = configure(nic, name);
	if (!err) {
		nic_reset(nic);
		nic_link_up(nic);
		NIC_REG(nic, EICR) = 0;
		err = wire_open(&nic->wire, nic, name, nic->mac);
	}
	if (!err) err = nic_attach(nic);
	if (err)
		destroy(nic);
	else
		*opened = nic;
	return err;
}

int softnic_open(struct softnic **nic, const char *name) {
	struct softnic_name parsed;
	int err = softnic_name_parse(&parsed, name);

	if (err) return err;
	nic_life_begin();
	err = open_named(nic, &parsed);
	nic_life_end();
	softnic_name_free(&parsed);
	return err;
}

void softnic_close(struct softnic *nic) {
	nic_life_begin();
	nic_detach(nic);
	destroy(nic);
	nic_life_end();
}
