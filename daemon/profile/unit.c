/* SPDX-License-Identifier: MIT
 *
 * A unit's result owns what it collected, as a tree or as a profile; everything else in it is plain. The lock
 * is for those who want to see the profile, which of them comes first makes it; the sampler never takes it.
 */
#include <stdlib.h>

#include "daemon/profile/unit.h"

static void note_bytes(struct unit_result *unit)
{
	size_t bytes = sizeof(*unit);

	if (unit->has_tree)
		bytes += weighed_tree_bytes(&unit->tree);
	if (unit->profile)
		bytes += profile_bytes(unit->profile);
	atomic_store_explicit(&unit->bytes, bytes, memory_order_relaxed);
}

struct unit_result *unit_result_new(const struct unit_result *value)
{
	struct unit_result *unit = malloc(sizeof(*unit));

	if (!unit)
		return NULL;
	*unit = *value;
	atomic_init(&unit->references, 1);
	pthread_mutex_init(&unit->lock, NULL);
	note_bytes(unit);
	return unit;
}

struct unit_result *unit_result_ref(struct unit_result *unit)
{
	atomic_fetch_add_explicit(&unit->references, 1, memory_order_relaxed);
	return unit;
}

static int make_profile(struct unit_result *unit)
{
	int r = weighed_tree_settle(&unit->tree);

	if (r < 0)
		return r;
	r = weighed_tree_profile(&unit->tree, &unit->profile);
	if (r < 0)
		return r;
	unit->profile->period_ns = unit->period_ns;
	unit->profile->duration_ns = unit->duration_ns;
	unit->profile->accounting = unit->accounting;
	unit->has_tree = false;
	weighed_tree_deinit(&unit->tree);
	note_bytes(unit);
	return 0;
}

int unit_result_settle(struct unit_result *unit)
{
	int r = 0;

	pthread_mutex_lock(&unit->lock);
	if (unit->has_tree)
		r = make_profile(unit);
	pthread_mutex_unlock(&unit->lock);
	return r;
}

size_t unit_result_bytes(const struct unit_result *unit)
{
	return atomic_load_explicit(&unit->bytes, memory_order_relaxed);
}

void unit_result_free(struct unit_result *unit)
{
	if (atomic_fetch_sub_explicit(&unit->references, 1, memory_order_acq_rel) > 1)
		return;
	if (unit->profile)
		profile_free(unit->profile);
	weighed_tree_deinit(&unit->tree);
	pthread_mutex_destroy(&unit->lock);
	free(unit);
}
