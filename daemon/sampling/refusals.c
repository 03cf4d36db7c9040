/* SPDX-License-Identifier: MIT
 *
 * See refusals.h.
 */
#include "daemon/sampling/refusals.h"

#include <stdio.h>
#include <string.h>

void refusals_init(struct refusals *refusals)
{
	*refusals = (struct refusals){.count = 0};
	pthread_mutex_init(&refusals->lock, NULL);
}

void refusals_deinit(struct refusals *refusals)
{
	pthread_mutex_destroy(&refusals->lock);
}

static size_t place_of(const struct refusals *refusals, pid_t pid)
{
	size_t place = 0;

	while (place < refusals->count && refusals->items[place].pid != pid)
		place++;
	return place;
}

void refusals_note(struct refusals *refusals, pid_t pid, const char *why)
{
	size_t place;

	pthread_mutex_lock(&refusals->lock);
	place = place_of(refusals, pid);
	refusals->total += place == refusals->count;
	if (place == REFUSALS_MAX)
		place--; /* the oldest makes room */
	else if (place == refusals->count)
		refusals->count++;
	memmove(&refusals->items[1], &refusals->items[0], place * sizeof(refusals->items[0]));
	refusals->items[0].pid = pid;
	snprintf(refusals->items[0].why, sizeof(refusals->items[0].why), "%s", why);
	pthread_mutex_unlock(&refusals->lock);
}

void refusals_forget(struct refusals *refusals, pid_t pid)
{
	size_t place;

	pthread_mutex_lock(&refusals->lock);
	place = place_of(refusals, pid);
	if (place < refusals->count) {
		refusals->count--;
		memmove(&refusals->items[place], &refusals->items[place + 1],
			(refusals->count - place) * sizeof(refusals->items[0]));
	}
	pthread_mutex_unlock(&refusals->lock);
}

size_t refusals_copy(struct refusals *refusals, struct refusal *ret_items, size_t max)
{
	size_t count;

	pthread_mutex_lock(&refusals->lock);
	count = refusals->count < max ? refusals->count : max;
	memcpy(ret_items, refusals->items, count * sizeof(*ret_items));
	pthread_mutex_unlock(&refusals->lock);
	return count;
}

void refusals_explain(struct refusals *refusals, pid_t pid, char *ret_why, size_t why_bytes)
{
	pthread_mutex_lock(&refusals->lock);
	size_t place = place_of(refusals, pid);
	if (place < refusals->count)
		snprintf(ret_why, why_bytes, "%s", refusals->items[place].why);
	else
		snprintf(ret_why, why_bytes, "process %d: can't be sampled; `cbox-profd doctor %d` says why",
			pid, pid);
	pthread_mutex_unlock(&refusals->lock);
}

uint64_t refusals_total(struct refusals *refusals)
{
	return refusals->total;
}
