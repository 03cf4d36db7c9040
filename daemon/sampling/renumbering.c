/* SPDX-License-Identifier: MIT
 *
 * See renumbering.h.
 */
#include "daemon/sampling/renumbering.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void renumbering_forget(struct renumbering *renumbering)
{
	if (renumbering->seen)
		frame_table_free(renumbering->seen);
	free(renumbering->numbers);
	*renumbering = (struct renumbering){0};
}

/* Room for the numbers of all frames of @frames. */
static int meet_table(struct renumbering *renumbering, struct frame_table *frames)
{
	uint32_t count = frame_table_count(frames), *numbers;

	if (renumbering->seen != frames)
		renumbering_forget(renumbering);
	if (count > renumbering->count) {
		numbers = realloc(renumbering->numbers, count * sizeof(*numbers));
		if (!numbers)
			return -ENOMEM;
		memset(numbers + renumbering->count, 0xff, (count - renumbering->count) * sizeof(*numbers));
		renumbering->numbers = numbers;
		renumbering->count = count;
	}
	if (!renumbering->seen)
		renumbering->seen = frame_table_ref(frames);
	return 0;
}

int renumbering_translate(
	struct renumbering *renumbering, struct weighed_tree *tree, struct frame_table *ours)
{
	int r = meet_table(renumbering, tree->frames);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < tree->count; i++) {
		uint32_t *number = &renumbering->numbers[tree->nodes[i].frame];

		if (*number == RENUMBERING_UNMET)
			*number =
				frame_table_intern(ours, frame_table_get(tree->frames, tree->nodes[i].frame));
		tree->nodes[i].frame = *number;
	}
	return 0;
}
