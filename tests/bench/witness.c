/* SPDX-License-Identifier: MIT
 *
 * Ours goes through the steps of target_tick() (has it run? is it running? snapshot), so that the proof of
 * rest is on trial together with the snapshot: when it says that the process has not run since the last look,
 * the stack is read all the same and must be the last one, unless the process ran meanwhile.
 */
#include "tests/bench/witness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/php_process.h"
#include "tests/bench/naive_reader.h"

#define MAX_FRAMES 65536
#define MAX_FRAME_BYTES (32U << 20)

const char *const witness_names[WITNESS_KINDS] = {
	[WITNESS_NEVER] = "never",
	[WITNESS_AUTO] = "auto",
	[WITNESS_BLOCKING] = "blocking",
	[WITNESS_NAIVE] = "naive",
};

const char *const witness_outcome_names[WITNESS_OUTCOMES] = {
	[WITNESS_ACCEPTED] = "accepted",
	[WITNESS_RETRIED] = "retried",
	[WITNESS_UNCHANGED] = "unchanged",
	[WITNESS_TORN] = "torn",
	[WITNESS_IDLE] = "idle",
	[WITNESS_UNREADABLE] = "unreadable",
	[WITNESS_GONE] = "gone",
};

static const struct php_process_options options[WITNESS_KINDS] = {
	[WITNESS_NEVER] = {.placement = PLACEMENT_NEVER},
	[WITNESS_AUTO] = {.placement = PLACEMENT_AUTO},
	[WITNESS_BLOCKING] = {.placement = PLACEMENT_NEVER, .blocking = true},
	[WITNESS_NAIVE] = {.placement = PLACEMENT_NEVER},
};

struct witness {
	enum witness_kind kind;
	struct frame_table *table;
	struct frame_names names;
	struct php_process *process;

	struct php_sample sample;
	struct activity_clocks clocks; /* as of the last look */
	bool proved;                   /* it was blocked then */
	struct witness_account last;   /* of which this was found */

	struct naive_reader naive;
};

static uint32_t intern(void *context, const struct function_name *name)
{
	return frame_table_intern(context, name);
}

int witness_open(enum witness_kind kind, pid_t pid, struct witness **ret_witness)
{
	_cleanup_(witness_closep) struct witness *witness = calloc(1, sizeof(*witness));
	char why[256] = "";
	int r;

	if (!witness || frame_table_new(MAX_FRAMES, MAX_FRAME_BYTES, &witness->table) < 0)
		return -ENOMEM;
	witness->kind = kind;
	witness->names = (struct frame_names){.intern = intern, .context = witness->table};
	r = php_process_open(pid, &witness->names, &options[kind], &witness->process, why, sizeof(why));
	if (r != 0) {
		fprintf(stderr, "process %d: %s\n", (int)pid, why);
		return r < 0 ? r : -EINVAL;
	}
	witness->naive.pid = pid;
	witness->naive.binary = php_process_binary(witness->process);
	*ret_witness = TAKE(witness);
	return 0;
}

void witness_close(struct witness *witness)
{
	php_process_close(witness->process);
	if (witness->table)
		frame_table_free(witness->table);
	free(witness);
}

const struct frame_table *witness_frames(const struct witness *witness)
{
	return witness->table;
}

static void copy_stack(const struct php_sample *sample, struct witness_account *account)
{
	account->count = 0;
	for (size_t i = 0; i < sample->count; i++) {
		account->frames[account->count++] = sample->frames[i].name_id;
		if (sample->omitted > 0 && i == sample->omitted_after)
			account->frames[account->count++] = FRAME_TRUNCATED;
	}
}

static void take_sample(struct witness *witness, struct witness_account *account)
{
	int answer = php_process_sample(witness->process, &witness->sample);

	account->count = 0;
	switch (answer) {
	case 0:
		account->outcome = witness->sample.retries > 0 ? WITNESS_RETRIED : WITNESS_ACCEPTED;
		copy_stack(&witness->sample, account);
		break;
	case PHP_PROCESS_E_TORN:
		account->outcome = WITNESS_TORN;
		copy_stack(&witness->sample, account);
		break;
	case PHP_PROCESS_E_IDLE:
		account->outcome = WITNESS_IDLE;
		break;
	case PHP_PROCESS_E_GONE:
		account->outcome = WITNESS_GONE;
		break;
	default:
		account->outcome = WITNESS_UNREADABLE;
		account->error = answer < 0 ? answer : 0;
	}
}

static bool is_same_stack(const struct witness_account *a, const struct witness_account *b)
{
	return a->count == b->count && memcmp(a->frames, b->frames, a->count * sizeof(a->frames[0])) == 0;
}

/* It is said not to have run. Then it shows the stack of the last look, or has run by now. */
static void try_proof(struct witness *witness, struct witness_account *account)
{
	struct activity_clocks after;

	take_sample(witness, account);
	account->refuted = !is_same_stack(account, &witness->last) &&
			   activity_read_clocks(php_process_activity(witness->process), &after) == 0 &&
			   after.switch_ins == witness->clocks.switch_ins;
	memcpy(account->frames, witness->last.frames, witness->last.count * sizeof(account->frames[0]));
	account->count = witness->last.count;
	account->outcome = witness->last.outcome == WITNESS_IDLE ? WITNESS_IDLE : WITNESS_UNCHANGED;
}

static void look_as_the_sampler(struct witness *witness, struct witness_account *account)
{
	struct activity *activity = php_process_activity(witness->process);
	struct activity_syscall syscall;
	struct activity_clocks clocks;

	if (activity_read_clocks(activity, &clocks) < 0) {
		account->outcome = WITNESS_GONE;
		return;
	}
	if (witness->proved && clocks.switch_ins == witness->clocks.switch_ins) {
		try_proof(witness, account);
		return;
	}
	witness->clocks = clocks;
	witness->proved = activity_read_syscall(activity, &syscall) == 0 && syscall.blocked;
	take_sample(witness, account);
	witness->proved = witness->proved && account->outcome != WITNESS_UNREADABLE;
	witness->last.outcome = account->outcome;
	witness->last.count = account->count;
	memcpy(witness->last.frames, account->frames, account->count * sizeof(account->frames[0]));
}

/* In the words of reader/function.c. How a file was included is not told apart. */
static uint32_t name_of(struct witness *witness, const struct naive_frame *frame, bool outermost)
{
	char name[2 * NAIVE_TEXT_BYTES + 2];
	struct function_name function = {.name = name, .file = frame->file, .line = frame->line_start};

	if (frame->function[0] == '\0')
		function.name = outermost ? "{main}" : "include";
	else
		snprintf(name, sizeof(name), "%s%s%s", frame->class_name, frame->class_name[0] ? "::" : "",
			frame->function);
	return frame_table_intern(witness->table, &function);
}

static void look_naively(struct witness *witness, struct witness_account *account)
{
	int count = naive_reader_sample(&witness->naive);

	if (count <= 0) {
		account->outcome = count == 0        ? WITNESS_IDLE
				   : count == -ESRCH ? WITNESS_GONE
						     : WITNESS_UNREADABLE;
		account->error = count;
		return;
	}
	account->outcome = WITNESS_ACCEPTED;
	for (int i = 0; i < count; i++) {
		const struct naive_frame *frame = &witness->naive.frames[i];

		/* A fiber's base: an internal function without a name. */
		if (frame->function[0] != '\0' || frame->file[0] != '\0')
			account->frames[account->count++] = name_of(witness, frame, i == count - 1);
	}
}

void witness_look(struct witness *witness, struct witness_account *ret_account)
{
	ret_account->count = 0;
	ret_account->error = 0;
	ret_account->refuted = false;
	if (witness->kind == WITNESS_NAIVE)
		look_naively(witness, ret_account);
	else
		look_as_the_sampler(witness, ret_account);
}
