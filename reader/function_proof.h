/* SPDX-License-Identifier: MIT
 *
 * Is the function at an address still the one that was named? Compares an entry's key words with memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "symbols/layout.h"
#include "reader/function_table.h"
#include "reader/stack.h"
#include "reader/view.h"

/* Spans that function_proof_spans() gives at most. */
#define FUNCTION_PROOF_SPANS 5

/* Must @entry be proved before it names @frame of this @request? @caller: the frame called another one, so
 * its opline is exact. */
bool function_proof_needed(const struct layout *layout, const struct function_entry *entry,
	const struct raw_frame *frame, remote_addr opline, bool caller, uint32_t request);

/* What function_proof_check() will look at in this @request. Returns their number. */
size_t function_proof_spans(const struct layout *layout, const struct function_entry *entry, uint32_t request,
	struct remote_span spans[static FUNCTION_PROOF_SPANS]);

/* Reads the function's header. If all key words are as they were, *ret_same is true; else it is false, and
 * @entry has the new header and is FUNCTION_IS_FRESH. 0, REMOTE_E_FAULT (the header can't be read), other
 * view_error(). */
int function_proof_check(const struct layout *layout, struct view *view, struct function_entry *entry,
	uint32_t request, bool *ret_same);

/* Notes what the strings of a fresh entry look like, so that it can be proved later, and computes its
 * content: a number that functions with the same opcodes, name, file and line share (the closures that one
 * expression makes), so that they share what is known of their opcodes. 0 or view_error(). */
int function_proof_seal(const struct layout *layout, struct view *view, struct function_entry *entry);

/* The same if all that it takes was read already. False: it was not. */
bool function_proof_try_seal(const struct layout *layout, struct view *view, struct function_entry *entry);

/* Is @opline one of the function's opcodes? */
bool function_has_opline(const struct layout *layout, const struct function_entry *entry, remote_addr opline);
