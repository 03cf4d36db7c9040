/* SPDX-License-Identifier: MIT
 *
 * Quotas belong to a user, not to a connection: whoever may open one connection may open many, and a limit
 * that is reset by reconnecting is none. So the table outlives the connections, and since uids are 32 bits
 * wide and a hostile host of containers may have many, it is a fixed array; a user of whom nothing has to be
 * remembered gives its place to the next. Looking through it takes a microsecond, once a connection.
 *
 * Requests are counted with a token bucket kept in time: each request costs 1 s / requests_per_second, or a
 * multiple of that, of a credit that grows with the clock up to one second. Nothing ticks, and a changed
 * limit holds at once.
 */
#include "daemon/service/quota.h"

#include <errno.h>

#define SECOND_NS UINT64_C(1000000000)

struct quota_user {
	uid_t uid;
	bool known; /* the place is taken */
	uint32_t connections;
	bool has_long; /* an answer under way */
	uint64_t pending_bytes;
	uint64_t credit_ns; /* at most a second, as of credited_ns */
	uint64_t credited_ns;
};

struct quota {
	struct quota_limits limits;
	struct quota_user users[QUOTA_MAX_USERS];
};

int quota_new(const struct quota_limits *limits, struct quota **ret_quota)
{
	struct quota *quota = calloc(1, sizeof(*quota));

	if (!quota)
		return -ENOMEM;
	quota->limits = *limits;
	*ret_quota = quota;
	return 0;
}

void quota_free(struct quota *quota)
{
	free(quota);
}

void quota_set_limits(struct quota *quota, const struct quota_limits *limits)
{
	quota->limits = *limits;
}

static void grow_credit(struct quota_user *user, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns > user->credited_ns ? now_ns - user->credited_ns : 0;

	user->credited_ns = now_ns;
	if (elapsed_ns > SECOND_NS - user->credit_ns)
		user->credit_ns = SECOND_NS;
	else
		user->credit_ns += elapsed_ns;
}

/* With a full bucket and no connection it is like a user never seen. */
static bool is_forgettable(struct quota_user *user, uint64_t now_ns)
{
	if (user->connections > 0 || user->has_long)
		return false;
	grow_credit(user, now_ns);
	return user->credit_ns == SECOND_NS;
}

static struct quota_user *find_or_add(struct quota *quota, uid_t uid, uint64_t now_ns)
{
	struct quota_user *place = NULL;

	for (size_t i = 0; i < QUOTA_MAX_USERS; i++) {
		struct quota_user *user = &quota->users[i];

		if (user->known && user->uid == uid)
			return user;
		if (!place && (!user->known || is_forgettable(user, now_ns)))
			place = user;
	}
	if (place)
		*place = (struct quota_user){
			.uid = uid, .known = true, .credit_ns = SECOND_NS, .credited_ns = now_ns};
	return place;
}

int quota_connect(struct quota *quota, uid_t uid, uint64_t now_ns, struct quota_user **ret_user)
{
	struct quota_user *user = find_or_add(quota, uid, now_ns);

	if (!user)
		return QUOTA_E_USERS;
	if (user->connections >= quota->limits.connections)
		return QUOTA_E_CONNECTIONS;
	user->connections++;
	*ret_user = user;
	return 0;
}

void quota_disconnect(struct quota_user *user)
{
	user->connections--;
}

bool quota_take_request(struct quota *quota, struct quota_user *user, unsigned cost, uint64_t now_ns)
{
	uint64_t cost_ns;

	if (quota->limits.requests_per_second == 0)
		return true;
	cost_ns = SECOND_NS / quota->limits.requests_per_second * cost;
	if (cost_ns > SECOND_NS)
		cost_ns = SECOND_NS;
	grow_credit(user, now_ns);
	if (user->credit_ns < cost_ns)
		return false;
	user->credit_ns -= cost_ns;
	return true;
}

bool quota_begin_long(struct quota_user *user)
{
	if (user->has_long)
		return false;
	user->has_long = true;
	return true;
}

void quota_end_long(struct quota_user *user)
{
	user->has_long = false;
}

bool quota_take_bytes(struct quota *quota, struct quota_user *user, size_t bytes)
{
	if (user->pending_bytes > quota->limits.pending_bytes ||
		bytes > quota->limits.pending_bytes - user->pending_bytes)
		return false;
	user->pending_bytes += bytes;
	return true;
}

void quota_return_bytes(struct quota_user *user, size_t bytes)
{
	user->pending_bytes -= bytes;
}
