/* SPDX-License-Identifier: MIT
 *
 * The readers that the oracle compares, behind one face: each says what became of a look at the process, and
 * which functions it saw, in the same words.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "daemon/profile/frame_table.h"
#include "reader/stack.h"

enum witness_kind {
	WITNESS_NEVER,    /* ours, from whichever CPU it happens to be on */
	WITNESS_AUTO,     /* ours, as shipped: from the target's CPU where a snapshot tears */
	WITNESS_BLOCKING, /* ours, while the target is stopped */
	WITNESS_NAIVE,    /* frame by frame, see naive_reader.h */
	WITNESS_KINDS
};

extern const char *const witness_names[WITNESS_KINDS];

enum witness_outcome {
	WITNESS_ACCEPTED,   /* at the first try */
	WITNESS_RETRIED,    /* accepted, after it had torn */
	WITNESS_UNCHANGED,  /* proved not to have run since: the stack is the last one, which was not read */
	WITNESS_TORN,       /* @frames: what of it is proved */
	WITNESS_IDLE,       /* no PHP function runs */
	WITNESS_UNREADABLE, /* see @error */
	WITNESS_GONE,
	WITNESS_OUTCOMES
};

extern const char *const witness_outcome_names[WITNESS_OUTCOMES];

struct witness_account {
	enum witness_outcome outcome;
	int error;    /* of WITNESS_UNREADABLE: a negative errno, or 0 for memory that made no sense */
	bool refuted; /* WITNESS_UNCHANGED, but its stack is another now, and it still has not run */
	uint32_t frames[STACK_MAX_FRAMES + 1]; /* numbers in the frame table, leaf first */
	size_t count;
};

struct witness;

/* On failure says why on stderr. */
int witness_open(enum witness_kind kind, pid_t pid, struct witness **ret_witness);
void witness_close(struct witness *witness);
DEFINE_CLEANUP(struct witness, witness_close)

/* One look. @ret_account->frames is set for all outcomes with a stack. */
void witness_look(struct witness *witness, struct witness_account *ret_account);

const struct frame_table *witness_frames(const struct witness *witness);
