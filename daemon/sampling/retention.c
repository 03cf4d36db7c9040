/* SPDX-License-Identifier: MIT
 *
 * A ring of references, newest last. Look-ups walk it: it holds a few hundred units, and is asked when a
 * client was late or a person asks.
 */
#include "daemon/sampling/retention.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sampling/engine.h"

/* Units whose size is looked at again at a time. */
#define WEIGHED_AGAIN 256

struct entry {
	struct unit_result *unit;
	/* A client may ask for units all day: what they are looked up by lies together. */
	uint64_t handle, unit_id;
	pid_t pid;
	uid_t uid;
	char trace_id[33];
	bool finished_by_client;
	uint64_t kept_ns;
	size_t bytes;
};

struct retention {
	struct entry entries[RETENTION_MAX_UNITS];
	size_t oldest, count;
	uint64_t kept_total; /* the newest is the kept_total-th */
	uint64_t bytes;
	size_t weighed; /* the entry that was weighed last */
};

static struct entry *nth_oldest(struct retention *retention, size_t i)
{
	return &retention->entries[(retention->oldest + i) % RETENTION_MAX_UNITS];
}

static void drop_oldest(struct retention *retention)
{
	struct entry *entry = nth_oldest(retention, 0);

	retention->bytes -= entry->bytes;
	unit_result_free(entry->unit);
	*entry = (struct entry){0};
	retention->oldest = (retention->oldest + 1) % RETENTION_MAX_UNITS;
	retention->count--;
}

int retention_new(struct retention **ret_retention)
{
	struct retention *retention = calloc(1, sizeof(*retention));

	if (!retention)
		return -ENOMEM;
	*ret_retention = retention;
	return 0;
}

void retention_free(struct retention *retention)
{
	while (retention->count)
		drop_oldest(retention);
	free(retention);
}

static void weigh_some(struct retention *retention)
{
	for (size_t i = 0; i < WEIGHED_AGAIN && i < retention->count; i++) {
		struct entry *entry = nth_oldest(retention, retention->weighed++ % retention->count);
		size_t bytes = unit_result_bytes(entry->unit);

		retention->bytes += bytes - entry->bytes;
		entry->bytes = bytes;
	}
}

static void drop_excess(struct retention *retention, uint64_t now_ns, const struct retention_limits *limits)
{
	while (retention->count && (retention->count > limits->units || retention->bytes > limits->bytes ||
					   now_ns - nth_oldest(retention, 0)->kept_ns > limits->age_ns))
		drop_oldest(retention);
}

void retention_expire(struct retention *retention, uint64_t now_ns, const struct retention_limits *limits)
{
	weigh_some(retention);
	drop_excess(retention, now_ns, limits);
}

void retention_keep(struct retention *retention, struct unit_result *unit, uint64_t now_ns,
	const struct retention_limits *limits)
{
	struct entry *entry;

	if (retention->count == RETENTION_MAX_UNITS)
		drop_oldest(retention);
	entry = nth_oldest(retention, retention->count++);
	*entry = (struct entry){
		.unit = unit_result_ref(unit),
		.handle = unit->handle,
		.unit_id = unit->unit_id,
		.pid = unit->pid,
		.uid = unit->uid,
		.finished_by_client = unit->finished_by_client,
		.kept_ns = now_ns,
		.bytes = unit_result_bytes(unit),
	};
	memcpy(entry->trace_id, unit->trace_id, sizeof(entry->trace_id));
	retention->kept_total++;
	retention->bytes += entry->bytes;
	drop_excess(retention, now_ns, limits);
}

struct unit_result *retention_find_handle(struct retention *retention, pid_t pid, uid_t uid, uint64_t handle)
{
	for (size_t i = retention->count; i-- > 0;) {
		const struct entry *entry = nth_oldest(retention, i);

		if (entry->handle == handle && entry->pid == pid && entry->uid == uid &&
			!entry->finished_by_client)
			return entry->unit;
	}
	return NULL;
}

struct unit_result *retention_find(
	struct retention *retention, uint64_t unit_id, const char *trace_id, uid_t uid)
{
	for (size_t i = retention->count; i-- > 0;) {
		const struct entry *entry = nth_oldest(retention, i);

		if (uid != ORDER_ANY_UID && entry->uid != uid)
			continue;
		if (unit_id && entry->unit_id != unit_id)
			continue;
		if (trace_id[0] && strcmp(entry->trace_id, trace_id) != 0)
			continue;
		return entry->unit;
	}
	return NULL;
}

struct unit_result *retention_nth(struct retention *retention, size_t i)
{
	return i < retention->count ? nth_oldest(retention, retention->count - 1 - i)->unit : NULL;
}

struct unit_result *retention_walk(struct retention *retention, uint64_t *before)
{
	uint64_t newest = retention->kept_total, oldest = newest - retention->count + 1;
	uint64_t number = *before > newest ? newest : *before - 1;

	if (number < oldest || retention->count == 0)
		return NULL;
	*before = number;
	return nth_oldest(retention, number - oldest)->unit;
}

size_t retention_count(const struct retention *retention)
{
	return retention->count;
}
