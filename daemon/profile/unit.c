/* SPDX-License-Identifier: MIT
 *
 * A unit's result owns its profile; everything else in it is plain.
 */
#include <stdlib.h>

#include "daemon/profile/unit.h"

struct unit_result *unit_result_new(const struct unit_result *value)
{
	struct unit_result *unit = malloc(sizeof(*unit));

	if (!unit)
		return NULL;
	*unit = *value;
	atomic_init(&unit->references, 1);
	return unit;
}

struct unit_result *unit_result_ref(struct unit_result *unit)
{
	atomic_fetch_add_explicit(&unit->references, 1, memory_order_relaxed);
	return unit;
}

size_t unit_result_bytes(const struct unit_result *unit)
{
	return sizeof(*unit) + (unit->profile ? profile_bytes(unit->profile) : 0);
}

void unit_result_free(struct unit_result *unit)
{
	if (atomic_fetch_sub_explicit(&unit->references, 1, memory_order_acq_rel) > 1)
		return;
	if (unit->profile)
		profile_free(unit->profile);
	free(unit);
}
