/* SPDX-License-Identifier: MIT
 *
 * What to do about a full frame table: names of code that nobody runs any more (last month's releases) make
 * room for those that run now.
 */
#pragma once

#include "daemon/sampling/sampler.h"

/* Forgets the frames that no living tree has a node of, and has readers name all functions anew. What is
 * retained or was handed over has its names with it. -ENOMEM: all is as it was. */
int frame_pruning_run(struct sampler *sampler);
