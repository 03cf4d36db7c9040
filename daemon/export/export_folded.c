/* SPDX-License-Identifier: MIT
 *
 * Folded stacks, the input of flamegraph.pl and of most viewers: a line a distinct stack, outermost frame
 * first, and how many samples had it. Nodes that differ in the running line alone are one stack, unless lines
 * are asked for; that is a smaller tree, so it is made as one.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/regroup.h"

/* The format's separators can't be part of a name. */
static void append_name(struct text *text, const char *name)
{
	for (const char *rest = name; *rest;) {
		size_t plain = strcspn(rest, ";\r\n");

		text_append_bytes(text, rest, plain);
		rest += plain;
		if (*rest) {
			text_append_bytes(text, *rest == ';' ? ":" : " ", 1);
			rest++;
		}
	}
}

int export_folded(const struct profile *profile, bool lines, struct text *text)
{
	_cleanup_(calltree_freep) struct calltree *tree = NULL;

	int r = export_regroup(profile, lines, &tree);
	if (r < 0)
		return r;
	const struct calltree_node *nodes = calltree_nodes(tree);
	uint32_t count = calltree_count(tree);
	_cleanup_free_ uint32_t *path = malloc(count * sizeof(*path));
	if (!path)
		return -ENOMEM;

	for (uint32_t i = CALLTREE_ROOT + 1; i < count; i++) {
		if (nodes[i].samples == 0)
			continue;
		size_t depth = 0;
		for (uint32_t node = i; node != CALLTREE_ROOT; node = nodes[node].parent)
			path[depth++] = node;
		while (depth-- > 0) {
			const struct calltree_node *node = &nodes[path[depth]];

			append_name(text, profile->frames[node->frame].name);
			if (lines && node->line > 0)
				text_append(text, ":%" PRIu32, node->line);
			if (depth > 0)
				text_append_bytes(text, ";", 1);
		}
		text_append(text, " %" PRIu64 "\n", nodes[i].samples);
	}
	return text->error;
}
