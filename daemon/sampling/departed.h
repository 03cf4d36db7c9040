/* SPDX-License-Identifier: MIT
 *
 * What targets that are gone leave behind: their windows, added up by pool and uid, so that a profile of a
 * pool whose workers come and go is whole.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/profile/accounting.h"
#include "daemon/profile/calltree.h"

/* Pools (times uids) remembered; past it the windows of further ones go with their targets. */
#define DEPARTED_MAX_GROUPS 256

struct departed_group {
	char pool[64];
	uid_t uid;
	struct calltree *tree;
	struct accounting accounting;
	uint64_t begin_ns; /* of the earliest window in it */
};

struct departed {
	struct departed_group groups[DEPARTED_MAX_GROUPS];
	size_t count;
};

/* The group of a pool and uid, made if need be. NULL: no memory, or past the bound. */
struct departed_group *departed_group(
	struct departed *departed, const char *pool, uid_t uid, uint32_t max_nodes);

/* Forgets the groups of @pool ("": all). Returns how many there were. */
size_t departed_reset(struct departed *departed, const char *pool);
