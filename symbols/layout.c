/* SPDX-License-Identifier: MIT
 *
 * The columns of layout.def as tables, one a version. Nothing here knows a number of its own: the whole table
 * is built by one inclusion of layout.def, each row of which initialises its member in all the versions at
 * once.
 */
#include "symbols/layout.h"

#include <string.h>

static const struct layout layouts[] = {
	[0].version = "7.4",
	[1].version = "8.0",
	[2].version = "8.1",
	[3].version = "8.2",
	[4].version = "8.3",
	[5].version = "8.4",
	[6].version = "8.5",
	[7].version = "8.6",
/* clang-format off */
#define COLUMNS(member, php74, php80, php81, php82, php83, php84, php85, php86)                              \
	[0].member = (php74), [1].member = (php80), [2].member = (php81), [3].member = (php82),              \
	[4].member = (php83), [5].member = (php84), [6].member = (php85), [7].member = (php86),
/* clang-format on */
#define STRUCTURE(prefix, c_name)
#define FIELD(prefix, name, path, ...) COLUMNS(prefix##_##name, __VA_ARGS__)
#define CONSTANT(name, ...) COLUMNS(name, __VA_ARGS__)
#include "symbols/layout.def"
#undef STRUCTURE
#undef FIELD
#undef CONSTANT
#undef COLUMNS
};

/* The version ids (PHP_VERSION_ID / 100) of the tables, in their order. */
static const unsigned layout_series[] = {704, 800, 801, 802, 803, 804, 805, 806};

_Static_assert(sizeof(layouts) / sizeof(layouts[0]) == sizeof(layout_series) / sizeof(layout_series[0]),
	"a version id for each table");

/* The names of the members, in the order in which struct layout holds them. */
static const struct {
	const char *name;
	size_t offset;
} layout_members[] = {
#define STRUCTURE(prefix, c_name)
#define FIELD(prefix, name, path, ...) {#prefix "." path, offsetof(struct layout, prefix##_##name)},
#define CONSTANT(name, ...) {#name, offsetof(struct layout, name)},
#include "symbols/layout.def"
#undef STRUCTURE
#undef FIELD
#undef CONSTANT
};

const struct layout *layout_for_version(unsigned version_id)
{
	for (size_t i = 0; i < sizeof(layout_series) / sizeof(layout_series[0]); i++)
		if (layout_series[i] == version_id / 100)
			return &layouts[i];
	return NULL;
}

const char *layout_known_versions(void)
{
	return "7.4 to 8.6";
}

static uint32_t member_of(const struct layout *layout, size_t index)
{
	uint32_t value;

	memcpy(&value, (const char *)layout + layout_members[index].offset, sizeof(value));
	return value;
}

int layout_difference(const struct layout *a, const struct layout *b, size_t *iterator,
	const char **ret_field, uint32_t *ret_a, uint32_t *ret_b)
{
	while (*iterator < sizeof(layout_members) / sizeof(layout_members[0])) {
		size_t index = (*iterator)++;
		uint32_t in_a = member_of(a, index), in_b = member_of(b, index);

		if (in_a == in_b)
			continue;
		*ret_field = layout_members[index].name;
		*ret_a = in_a;
		*ret_b = in_b;
		return 1;
	}
	return 0;
}
