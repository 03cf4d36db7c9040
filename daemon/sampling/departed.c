/* SPDX-License-Identifier: MIT
 *
 * See departed.h.
 */
#include "daemon/sampling/departed.h"

#include <stdio.h>
#include <string.h>

struct departed_group *departed_group(
	struct departed *departed, const char *pool, uid_t uid, uint32_t max_nodes)
{
	struct departed_group *group;

	for (size_t i = 0; i < departed->count; i++) {
		group = &departed->groups[i];
		if (group->uid == uid && strcmp(group->pool, pool) == 0)
			return group;
	}
	if (departed->count == DEPARTED_MAX_GROUPS)
		return NULL;
	group = &departed->groups[departed->count];
	*group = (struct departed_group){.uid = uid, .begin_ns = UINT64_MAX};
	snprintf(group->pool, sizeof(group->pool), "%s", pool);
	if (calltree_new(max_nodes, &group->tree) < 0)
		return NULL;
	departed->count++;
	return group;
}

size_t departed_reset(struct departed *departed, const char *pool)
{
	size_t count = departed->count, kept = 0;

	for (size_t i = 0; i < departed->count; i++) {
		struct departed_group *group = &departed->groups[i];

		if (!pool[0] || strcmp(group->pool, pool) == 0)
			calltree_free(group->tree);
		else
			departed->groups[kept++] = *group;
	}
	departed->count = kept;
	return count - kept;
}
