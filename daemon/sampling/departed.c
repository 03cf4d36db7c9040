/* SPDX-License-Identifier: MIT
 *
 * See departed.h.
 */
#include "daemon/sampling/departed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/cleanup.h"

int calltree_add(struct calltree *into, const struct calltree *from)
{
	const struct calltree_node *nodes = calltree_nodes(from);
	uint32_t count = calltree_count(from);
	_cleanup_free_ uint32_t *places = malloc(count * sizeof(*places));
	int without_room = 0;

	if (!places)
		return -ENOMEM;
	places[0] = CALLTREE_ROOT;
	for (uint32_t i = 0; i < count; i++) {
		struct calltree_node *node;
		bool overflow = false;

		if (i > 0)
			places[i] = calltree_child(
				into, places[nodes[i].parent], nodes[i].frame, nodes[i].line, &overflow);
		without_room += overflow;
		node = calltree_node(into, places[i]);
		node->samples += nodes[i].samples;
		node->wall_ns += nodes[i].wall_ns;
		node->cpu_ns += nodes[i].cpu_ns;
		node->queue_ns += nodes[i].queue_ns;
		node->line_approximate_samples += nodes[i].line_approximate_samples;
	}
	return without_room;
}

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
