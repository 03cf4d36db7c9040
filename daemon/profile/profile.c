/* SPDX-License-Identifier: MIT
 *
 * Making profiles of trees, by copying the nodes and only those frames they use. A profile points at nothing
 * outside itself, which is what lets it cross from thread to thread to whoever asked.
 */
#include <errno.h>
#include <string.h>

#include "daemon/profile/profile.h"

#define NOT_USED UINT32_MAX

size_t profile_bytes(const struct profile *profile)
{
	size_t bytes = sizeof(*profile) + profile->node_count * sizeof(*profile->nodes) +
		       profile->frame_count * sizeof(*profile->frames);

	for (size_t i = 0; i < profile->frame_count; i++)
		bytes += strlen(profile->frames[i].name) + strlen(profile->frames[i].file) + 2;
	return bytes;
}

void profile_free(struct profile *profile)
{
	free(profile->frames);
	free(profile->nodes);
	free(profile->text);
	free(profile);
}

/* A tree that outlived a clear of the table has numbers the table does not know. */
static uint32_t known_frame(uint32_t frame, uint32_t table_count)
{
	return frame < table_count ? frame : FRAME_OTHER;
}

/* Numbers the frames that @nodes use by first appearance: *ret_numbers maps the table's numbers to the
 * profile's, *ret_used lists the table's. The root's frame is always number 0. */
static int number_frames(const struct calltree_node *nodes, uint32_t node_count, uint32_t table_count,
	uint32_t **ret_numbers, uint32_t **ret_used, size_t *ret_used_count)
{
	_cleanup_free_ uint32_t *numbers = malloc(table_count * sizeof(*numbers));
	_cleanup_free_ uint32_t *used = malloc(table_count * sizeof(*used));
	size_t used_count = 0;

	if (!numbers || !used)
		return -ENOMEM;
	memset(numbers, 0xff, table_count * sizeof(*numbers));
	for (uint32_t i = 0; i < node_count; i++) {
		uint32_t frame = known_frame(nodes[i].frame, table_count);

		if (numbers[frame] == NOT_USED) {
			numbers[frame] = (uint32_t)used_count;
			used[used_count++] = frame;
		}
	}
	*ret_numbers = TAKE(numbers);
	*ret_used = TAKE(used);
	*ret_used_count = used_count;
	return 0;
}

static char *copy_text(char **cursor, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = memcpy(*cursor, text, bytes);

	*cursor += bytes;
	return copy;
}

static int copy_frames(struct profile *profile, const struct frame_table *table, const uint32_t *used)
{
	size_t text_bytes = 0;
	const char *file = NULL;

	/* The table shares one text among neighbours of the same file; so does the copy. */
	for (size_t i = 0; i < profile->frame_count; i++) {
		const struct function_name *name = frame_table_get(table, used[i]);

		text_bytes += strlen(name->name) + 1 + (name->file != file ? strlen(name->file) + 1 : 0);
		file = name->file;
	}
	profile->frames = calloc(profile->frame_count, sizeof(*profile->frames));
	profile->text = malloc(text_bytes);
	if (!profile->frames || !profile->text)
		return -ENOMEM;

	char *cursor = profile->text;
	file = NULL;
	for (size_t i = 0; i < profile->frame_count; i++) {
		const struct function_name *name = frame_table_get(table, used[i]);

		profile->frames[i] = *name;
		profile->frames[i].name = copy_text(&cursor, name->name);
		profile->frames[i].file =
			name->file != file ? copy_text(&cursor, name->file) : profile->frames[i - 1].file;
		file = name->file;
	}
	return 0;
}

int profile_from_nodes(const struct calltree_node *nodes, uint32_t count, const struct frame_table *frames,
	struct profile **ret_profile)
{
	/* Another thread may be adding to it; what @nodes have is there. */
	uint32_t table_count = frame_table_count(frames);
	_cleanup_free_ uint32_t *numbers = NULL, *used = NULL;
	_cleanup_(profile_freep) struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return -ENOMEM;
	profile->node_count = count;
	int r = number_frames(nodes, count, table_count, &numbers, &used, &profile->frame_count);
	if (r < 0)
		return r;
	r = copy_frames(profile, frames, used);
	if (r < 0)
		return r;
	profile->nodes = malloc(profile->node_count * sizeof(*profile->nodes));
	if (!profile->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < profile->node_count; i++)
		profile->nodes[i] = (struct profile_node){
			.parent = i == CALLTREE_ROOT ? CALLTREE_ROOT : nodes[i].parent,
			.frame = numbers[known_frame(nodes[i].frame, table_count)],
			.line = nodes[i].line,
			.samples = nodes[i].samples,
			.wall_ns = nodes[i].wall_ns,
			.cpu_ns = nodes[i].cpu_ns,
			.queue_ns = nodes[i].queue_ns,
		};
	*ret_profile = TAKE(profile);
	return 0;
}

int profile_from_calltree(
	const struct calltree *tree, const struct frame_table *frames, struct profile **ret_profile)
{
	return profile_from_nodes(calltree_nodes(tree), calltree_count(tree), frames, ret_profile);
}

struct profile_node profile_sum(const struct profile *profile)
{
	struct profile_node sum = {0};

	for (size_t i = 0; i < profile->node_count; i++) {
		sum.samples += profile->nodes[i].samples;
		sum.wall_ns += profile->nodes[i].wall_ns;
		sum.cpu_ns += profile->nodes[i].cpu_ns;
		sum.queue_ns += profile->nodes[i].queue_ns;
	}
	return sum;
}
