/* SPDX-License-Identifier: MIT
 *
 * See ordered.h.
 */
#include "daemon/sampling/ordered.h"

#include <errno.h>
#include <string.h>

#include "daemon/sampling/proc_read.h"

struct ordered *ordered_find(struct ordered_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].selector.pid == pid)
			return &list->items[i];
	return NULL;
}

int ordered_put(struct ordered_list *list, const struct ordered *ordered)
{
	struct ordered *place = ordered_find(list, ordered->selector.pid);

	if (!place) {
		if (list->count == ORDERED_MAX)
			return -E2BIG;
		place = &list->items[list->count++];
	}
	*place = *ordered;
	return 0;
}

bool ordered_remove(struct ordered_list *list, pid_t pid)
{
	struct ordered *place = ordered_find(list, pid);

	if (!place)
		return false;
	list->count--;
	memmove(place, place + 1, (size_t)(&list->items[list->count] - place) * sizeof(*place));
	return true;
}

bool ordered_drop_ended(struct ordered_list *list)
{
	size_t kept = 0, before = list->count;

	for (size_t i = 0; i < before; i++)
		if (proc_is_same(list->items[i].selector.pid, list->items[i].start_time_ticks))
			list->items[kept++] = list->items[i];
	list->count = kept;
	return kept < before;
}
