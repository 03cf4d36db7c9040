/* SPDX-License-Identifier: MIT
 *
 * See known.h.
 */
#include "daemon/sampling/known.h"

#include <stdlib.h>
#include <string.h>

void known_deinit(struct known_list *list)
{
	free(list->items);
	*list = (struct known_list){0};
}

struct known *known_find(const struct known_list *list, pid_t pid, size_t *ret_place)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->items[middle].identity.pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_place = low;
	return low < list->count && list->items[low].identity.pid == pid ? &list->items[low] : NULL;
}

struct known *known_insert(struct known_list *list, size_t place, const struct discovered *identity)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 16;
		struct known *items = realloc(list->items, room * sizeof(*items));

		if (!items)
			return NULL;
		list->items = items;
		list->room = room;
	}
	memmove(&list->items[place + 1], &list->items[place], (list->count - place) * sizeof(*list->items));
	list->count++;
	list->items[place] = (struct known){.identity = *identity};
	return &list->items[place];
}

void known_remove(struct known_list *list, size_t place)
{
	memmove(&list->items[place], &list->items[place + 1],
		(list->count - place - 1) * sizeof(*list->items));
	list->count--;
}

struct coverage known_coverage(
	const struct known_list *list, pid_t pid, size_t configured_count, size_t ordered)
{
	struct coverage coverage = {.pool = ""};

	for (size_t i = 0; i < list->count; i++) {
		const struct known *known = &list->items[i];

		if (known->state != KNOWN_ATTACHED ||
			(known->identity.pid != pid && known->identity.master_pid != pid))
			continue;
		coverage.total++;
		coverage.configured += known->identity.selector < configured_count;
		coverage.ordered += known->identity.selector == ordered;
		coverage.pool = known->identity.pool;
	}
	return coverage;
}
