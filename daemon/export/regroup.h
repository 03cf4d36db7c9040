/* SPDX-License-Identifier: MIT
 *
 * A profile's nodes by (parent, function), without the running line: the tree that most outputs show.
 */
#pragma once

#include "daemon/profile/profile.h"

/* Frames keep the numbers they have in @profile. With @lines the tree is the profile's own. */
int export_regroup(const struct profile *profile, bool lines, struct calltree **ret_tree);
