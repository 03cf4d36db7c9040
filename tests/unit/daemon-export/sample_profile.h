/* SPDX-License-Identifier: MIT
 *
 * Profiles written down as paths, for the tests of all formats.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/profile/profile.h"

#define MS 1000000ull

struct charge {
	const char *path; /* "main|a@7|b": outermost first, @ gives the running line (else 1) */
	uint64_t samples, wall_ms, cpu_ms;
};

/* A profile with these charges; functions are declared in /srv/app/<name>.php, line 10. */
static inline struct profile *profile_of(const struct charge *charges, size_t count)
{
	_cleanup_(frame_table_freep) struct frame_table *frames = NULL;
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	struct profile *profile = NULL;

	assert_int_equal(frame_table_new(1000, 1 << 20, &frames), 0);
	assert_int_equal(calltree_new(1000, &tree), 0);
	for (size_t i = 0; i < count; i++) {
		_cleanup_free_ char *copy = strdup(charges[i].path);
		uint32_t node = CALLTREE_ROOT;
		char *rest = NULL;

		for (char *name = strtok_r(copy, "|", &rest); name; name = strtok_r(NULL, "|", &rest)) {
			char file[1024] = "", *at = strchr(name, '@');
			struct function_name function = {.name = name, .file = file};
			bool overflow;

			if (at)
				*at++ = 0;
			if (name[0] == '<') {
				function.kind = FUNCTION_INTERNAL;
			} else {
				snprintf(file, sizeof(file), "/srv/app/%s.php", name);
				function.line = 10;
			}
			node = calltree_child(tree, node, frame_table_intern(frames, &function),
				at ? (uint32_t)atoi(at) : 1, &overflow);
			assert_false(overflow);
		}
		calltree_node(tree, node)->samples += charges[i].samples;
		calltree_node(tree, node)->wall_ns += charges[i].wall_ms * MS;
		calltree_node(tree, node)->cpu_ns += charges[i].cpu_ms * MS;
	}
	assert_int_equal(profile_from_calltree(tree, frames, &profile), 0);
	profile->period_ns = 10 * MS;
	return profile;
}

#define PROFILE_OF(...)                            \
	profile_of((struct charge[]){__VA_ARGS__}, \
		sizeof((struct charge[]){__VA_ARGS__}) / sizeof(struct charge))
