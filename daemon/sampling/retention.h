/* SPDX-License-Identifier: MIT
 *
 * Units that have ended, kept for a while: for a late finish(), and for readers who ask by trace. Bounded by
 * number, bytes and age; the oldest goes first.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "daemon/profile/unit.h"

/* Units kept at most, whatever the limits say. */
#define RETENTION_MAX_UNITS 4096

struct retention_limits {
	uint32_t units;
	uint64_t bytes;
	uint64_t age_ns;
};

struct retention;

int retention_new(struct retention **ret_retention);
void retention_free(struct retention *retention);
DEFINE_CLEANUP(struct retention, retention_free)

/* Keeps @unit (a reference of its own is taken). */
void retention_keep(struct retention *retention, struct unit_result *unit, uint64_t now_ns,
	const struct retention_limits *limits);

/* Lets go of what is too old or too much. Units may have grown or shrunk since they were kept
 * (unit_result_settle()): some are looked at again each time. */
void retention_expire(struct retention *retention, uint64_t now_ns, const struct retention_limits *limits);

/* The newest unit of @pid, when it was @uid's, that had @handle and was not finished by its client; borrowed.
 * NULL: none. */
struct unit_result *retention_find_handle(struct retention *retention, pid_t pid, uid_t uid, uint64_t handle);

/* The newest unit with this id (0: any) and trace id ("": any), of @uid (ORDER_ANY_UID: any); borrowed. */
struct unit_result *retention_find(
	struct retention *retention, uint64_t unit_id, const char *trace_id, uid_t uid);

/* The i-th newest; NULL past the end. */
struct unit_result *retention_nth(struct retention *retention, size_t i);

/* For a walk in several goes, newest first, while units come and go: the one that was kept last before the
 * @*before-th, which it then is; borrowed. Begin with UINT64_MAX. NULL: no more. */
struct unit_result *retention_walk(struct retention *retention, uint64_t *before);

size_t retention_count(const struct retention *retention);
