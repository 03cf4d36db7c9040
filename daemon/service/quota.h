/* SPDX-License-Identifier: MIT
 *
 * What one user may take of the service: connections, requests a second, bytes of answers not yet read. Knows
 * no socket and no clock: it is told the time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"

/* Users remembered at once. One is forgotten when it has no connection and its requests of the last second
 * are paid for. */
#define QUOTA_MAX_USERS 1024

struct quota_limits {
	uint32_t connections;         /* of one user at a time */
	uint32_t requests_per_second; /* of one user; as many may come at once. 0: no limit */
	uint64_t pending_bytes;       /* of one user's connections together */
};

struct quota;
struct quota_user;

enum quota_error {
	QUOTA_E_CONNECTIONS = 1, /* the user has as many as allowed */
	QUOTA_E_USERS,           /* the table is full of other users */
};

int quota_new(const struct quota_limits *limits, struct quota **ret_quota);
void quota_free(struct quota *quota);
DEFINE_CLEANUP(struct quota, quota_free)

/* New limits from now on; what was taken under the old ones stays taken. */
void quota_set_limits(struct quota *quota, const struct quota_limits *limits);

/* One connection more for @uid. 0 and *ret_user, valid until quota_disconnect(); or QUOTA_E_…. */
int quota_connect(struct quota *quota, uid_t uid, uint64_t now_ns, struct quota_user **ret_user);
void quota_disconnect(struct quota_user *user);

/* May @user ask once more now, for what counts as @cost requests (a whole second's worth at most)? If so, it
 * is counted. */
bool quota_take_request(struct quota *quota, struct quota_user *user, unsigned cost, uint64_t now_ns);

/* One long answer of a user's at a time. False: there is one. The user is remembered until it has ended. */
bool quota_begin_long(struct quota_user *user);
void quota_end_long(struct quota_user *user);

/* @bytes more are waiting for @user to read them. False, and nothing taken, when that is too much. */
bool quota_take_bytes(struct quota *quota, struct quota_user *user, size_t bytes);
void quota_return_bytes(struct quota_user *user, size_t bytes);
