/* SPDX-License-Identifier: MIT
 *
 * From a view to raw frames: the chain of execute_data, leaf first, through VM stack pages, generators and
 * fibers. Knows addresses, not names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/layout.h"
#include "reader/stack_pages.h"
#include "reader/view.h"

/* The frames kept of one stack. A deeper one keeps the innermost and outermost halves. */
#define STACK_MAX_FRAMES 1024
/* What is walked frame by frame: 20,000 frames of the usual 96 bytes. Of a deeper stack the frames in between
 * are not looked at; what is known of them is that they are there. */
#define STACK_MAX_WALKED_BYTES (2u << 20)
#define STACK_MAX_WALKED_PAGES 64
#define STACK_MAX_WALK 25000 /* frames, wherever they lie */
/* What a walk may read beyond what was predicted. The view allows more, for what comes after the walk. */
#define STACK_MAX_FETCHES 1024
#define STACK_MAX_FETCHED_BYTES (4u << 20)

enum {
	STACK_E_IDLE = 32, /* current_execute_data is 0 */
	STACK_E_CORRUPT, /* a cycle, an address outside user space, misaligned: what was walked so far is kept
			  */
	STACK_E_UNVOUCHED, /* too little of the main span was read twice: it is to be read again, all of it
			    * twice */
};

struct raw_frame {
	remote_addr execute_data;
	remote_addr prev; /* prev_execute_data */
	remote_addr func; /* zend_function; never 0 (frames without are stepped over) */
	remote_addr opline;
	remote_addr run_time_cache;
	remote_addr called_object_or_class; /* This.value.obj; 0 if none */
	uint32_t call_info;                 /* This.u1.type_info: ZEND_CALL_* */
	bool generator;
};

struct raw_stack {
	struct raw_frame frames[STACK_MAX_FRAMES]; /* leaf first */
	size_t count;
	size_t omitted;       /* frames left out of the middle */
	size_t omitted_after; /* index in frames[] behind which they are left out; the last one: the outer end
				 could not be reached */
	bool omitted_at_least; /* there are more of them: too many to be walked */
	size_t joined;     /* the outermost frames, which are not in frames[] but in struct outer_frames */
	size_t look_count; /* and those of them that need a look: behind the others in frames[] */
	uint16_t look_at[STACK_MAX_FRAMES]; /* where these stand, counted from the outer end; inner ones first
					     */
	size_t doubtful; /* the innermost frames, up to the last one that changed between the copies or, since
			  * it is a generator's, was read only once: if the stack is torn, they may be of
			  * another moment than those outside of them */
	size_t used_bytes;   /* of the innermost VM stack page: what to predict next time */
	size_t steady_bytes; /* of those the part that need not be read twice */
	bool whole;          /* the outer end was reached */
	bool switching;   /* PHP is putting another stack on: the words are some of one, some of the other */
	remote_addr page; /* EG(vm_stack): where the innermost page starts */
	remote_addr page_end; /* EG(vm_stack_end) */
};

struct outer_frames;

/* Walks from EG(current_execute_data) as @view's guard words have it. @pages is the target's. What @outer
 * (NULL: nothing) has verified in this view is not walked but joined. A stack too deep to be walked is no
 * error: it has its two ends, or at least the inner one. 0, STACK_E_*, VIEW_E_TORN (also if the frames are
 * not the same in both copies of the main span), REMOTE_E_*, negative errno. On any but 0 and STACK_E_IDLE,
 * @ret_stack holds the frames that were reached. */
int stack_walk(struct view *view, const struct layout *layout, struct stack_pages *pages,
	const struct outer_frames *outer, struct raw_stack *ret_stack);
