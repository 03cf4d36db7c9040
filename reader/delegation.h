/* SPDX-License-Identifier: MIT
 *
 * Generators that delegate with `yield from`: which frames a placeholder frame stands for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "symbols/layout.h"
#include "reader/stack.h"
#include "reader/view.h"

/* Generators in one chain of `yield from`. Past it the chain is taken for corrupt. */
#define DELEGATION_MAX_LEVELS 1024

/* Is @frame (one without a function) the execute_fake of a generator (Zend/zend_generators.h)? */
bool delegation_is_placeholder(const struct layout *layout, const struct raw_frame *frame);

/* The execute_data of the generators between the one that runs (whose frame is @inner) and @outermost, which
 * somebody iterates, innermost first: room for DELEGATION_MAX_LEVELS. 0, STACK_E_CORRUPT, or view_error(). */
int delegation_frames(struct view *view, const struct layout *layout, remote_addr outermost,
	remote_addr inner, remote_addr *ret_frames, size_t *ret_count);
