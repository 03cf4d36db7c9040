/* SPDX-License-Identifier: MIT
 *
 * One sample of one process, from the snapshot to named frames. Here the parts of this room meet: the view
 * reads, the stack is walked, the request is looked at, functions are named, all within one instant of the
 * view, so that in steady state one system call serves them all.
 *
 * The target runs on meanwhile. If it moved, the snapshot is taken again at once, a few times. One that moves
 * all the time is not given up: the outer frames that the last two snapshots agree on were there all along,
 * and the sample is charged to the innermost of them.
 */
#include "reader/php_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reader/hold.h"
#include "reader/refusal.h"
#include "reader/remote.h"
#include "reader/view.h"

/* What the main span reads beyond the last stack, for frames that will be pushed until the next sample: so
 * much, and on to the end of the page. Bytes cost little there, and a page of memory 0.3 us (FACTS). */
#define SPAN_SLACK_BYTES 512
#define PAGE_BYTES UINT64_C(4096)
/* A stack that got smaller lets the main span shrink by this part of the difference a sample; one that got
 * larger, the part of it that is read once grow. */
#define SPAN_FOLLOW_DIVISOR 16
/* Pauses that a sample makes for a process that is found between two stacks. Of one of some microseconds the
 * process has nothing: it has not begun to run when this thread is woken again, on the same CPU. */
#define MAX_PAUSES 4
#define PAUSE_NS 50000

struct php_process {
	pid_t pid;
	const struct frame_names *names;
	struct php_process_options options;
	struct php_binary *binary;
	struct view *view;
	struct function_cache *functions;
	struct request_reader *requests;
	struct activity *activity;
	struct hold hold;
	struct placement_habit habit;
	bool visited; /* from the first snapshot of this sample on */

	remote_addr stack_page, stack_page_end; /* the main span that the next refresh will read lies on it */
	size_t stack_bytes;
	size_t steady_bytes; /* what of it need not be read twice */
	struct stack_pages stack_pages;

	struct outer_frames outer;
	uint32_t names_epoch; /* of the names in it */
	uint64_t serial;      /* of the last sample that had frames */

	bool between_stacks; /* the last snapshot was, see is_between_stacks() */
	unsigned pauses;     /* that this sample has made for it */
	bool stack_torn;     /* the last one was torn before anything but the stack was looked at */
};

/* The last two snapshots of the process that this thread is sampling. Scratch memory: nothing of it lives
 * longer than one sample, and one for each of many targets would be 7 MiB for 64. */
static _Thread_local struct raw_stack stacks[2];
static _Thread_local struct named_stack named;

static int read_process(
	void *context, const struct remote_span *spans, size_t span_count, size_t *ret_failed_span)
{
	return remote_read(*(const pid_t *)context, spans, span_count, ret_failed_span);
}

/* Replaces what the parts say of a negative errno by a sentence that names the cause. */
static int refuse(pid_t pid, int error, char *ret_why, size_t why_bytes)
{
	struct refusal_facts facts;

	if (error < 0 && ret_why && why_bytes > 0) {
		refusal_collect(pid, &facts);
		refusal_explain(pid, error, &facts, ret_why, why_bytes);
	}
	return error;
}

int php_process_open(pid_t pid, const struct frame_names *names, const struct php_process_options *options,
	struct php_process **ret_process, char *ret_why, size_t why_bytes)
{
	_cleanup_(php_process_closep) struct php_process *process = calloc(1, sizeof(*process));
	const struct layout *layout;
	struct memory memory;
	int r;

	if (!process)
		return refuse(pid, -ENOMEM, ret_why, why_bytes);
	process->pid = pid;
	process->names = names;
	process->options = *options;
	process->hold.pid = pid;
	memory = remote_memory(&process->pid);
	r = options->blocking ? hold_check(pid, ret_why, why_bytes) : 0;
	if (r != 0)
		return r;
	r = php_binary_examine(pid, &memory, &process->binary, ret_why, why_bytes);
	if (r != 0)
		return refuse(pid, r, ret_why, why_bytes);

	layout = process->binary->layout;
	r = view_new(read_process, &process->pid, process->binary->executor_globals + layout->eg_vm_stack_top,
		layout->eg_current_execute_data + sizeof(uint64_t) - layout->eg_vm_stack_top, &process->view);
	if (r == 0)
		r = function_cache_new(layout, process->binary->executor_globals, &process->functions);
	if (r == 0)
		r = request_reader_new(process->binary, pid, &process->requests);
	if (r == 0)
		r = activity_open(pid, &process->activity);
	if (r != 0)
		return refuse(pid, r, ret_why, why_bytes);
	*ret_process = TAKE(process);
	return 0;
}

void php_process_close(struct php_process *process)
{
	if (!process)
		return;
	hold_deinit(&process->hold);
	if (process->activity)
		activity_close(process->activity);
	if (process->requests)
		request_reader_free(process->requests);
	function_cache_free(process->functions);
	stack_pages_deinit(&process->stack_pages);
	outer_frames_deinit(&process->outer);
	view_free(process->view);
	if (process->binary)
		php_binary_free(process->binary);
	free(process);
}

pid_t php_process_pid(const struct php_process *process)
{
	return process->pid;
}

const struct php_binary *php_process_binary(const struct php_process *process)
{
	return process->binary;
}

struct activity *php_process_activity(struct php_process *process)
{
	return process->activity;
}

void php_process_set_placement(struct php_process *process, enum placement placement)
{
	process->options.placement = placement;
}

/* Sets the next main span: at once as large as the stack was, and smaller only slowly, since what went deep
 * will go deep again. For the same reason its steady part gets smaller at once, and larger slowly. */
static void predict_stack(struct php_process *process, const struct raw_stack *stack)
{
	size_t wanted = stack->used_bytes + SPAN_SLACK_BYTES;

	if (stack->page == 0)
		return;
	if (wanted > VIEW_MAX_SPAN_BYTES - PAGE_BYTES)
		wanted = VIEW_MAX_SPAN_BYTES - PAGE_BYTES;
	if (stack->page != process->stack_page || wanted > process->stack_bytes)
		process->stack_bytes = wanted;
	else
		process->stack_bytes -= (process->stack_bytes - wanted) / SPAN_FOLLOW_DIVISOR;
	if (stack->page != process->stack_page || stack->steady_bytes < process->steady_bytes)
		process->steady_bytes = stack->steady_bytes;
	else if (stack->whole)
		process->steady_bytes += (stack->steady_bytes - process->steady_bytes) / SPAN_FOLLOW_DIVISOR;
	process->stack_page = stack->page;
	process->stack_page_end = stack->page_end;
}

/* Is the result of a part worth another snapshot? Memory that makes no sense may have been caught in motion.
 * What is too much to be read (VIEW_E_FULL) still is a moment later. */
static bool may_pass(int r)
{
	return r == VIEW_E_TORN || r == REMOTE_E_FAULT || r == STACK_E_CORRUPT;
}

/* What to answer when @r is what the last part said. */
static int answer_of(int r)
{
	if (r == REMOTE_E_GONE || r == -ESRCH)
		return PHP_PROCESS_E_GONE;
	return may_pass(r) || r == VIEW_E_FULL ? PHP_PROCESS_E_UNREADABLE : r;
}

/* Makes @stack independent of what is remembered, which is in doubt. */
static void forget_outer(struct php_process *process, struct raw_stack *stack)
{
	outer_frames_unjoin(&process->outer, stack);
	outer_frames_forget(&process->outer);
}

static int read_request(struct php_process *process, struct raw_stack *stack, struct php_sample *sample)
{
	bool is_new = false;
	int r = request_read(process->requests, process->view, &sample->request, &is_new);

	if (r == 0 && is_new) {
		function_cache_new_request(process->functions);
		forget_outer(process, stack);
	}
	return r;
}

/* Names @stack and what of it is remembered. */
static int name_frames(struct php_process *process, struct raw_stack *stack, struct php_sample *sample)
{
	int r = FUNCTION_E_STALE;

	for (unsigned attempt = 0; r == FUNCTION_E_STALE && attempt < 2; attempt++) {
		if (attempt > 0)
			forget_outer(process, stack);
		named.end = outer_frames_names_end(&process->outer, stack->count + stack->joined);
		if (!named.end)
			return -ENOMEM;
		r = function_cache_name(process->functions, process->view, stack, process->names, &named);
	}
	if (r != 0)
		return r;
	outer_frames_remember(&process->outer, stack, named.holds);
	sample->frames = named.frames;
	sample->count = named.count;
	sample->same_outer = named.same_outer;
	sample->since = process->serial;
	sample->serial = ++process->serial;
	sample->omitted = named.omitted;
	sample->omitted_after = named.omitted_after;
	sample->omitted_at_least = stack->omitted_at_least;
	return 0;
}

/* What nobody called can only be a script, or a function that PHP itself called, and such frames are marked.
 * A frame that is being prepared for a call has no predecessor yet: a chain that ends in one was put together
 * from two moments in which the guard happened to be the same (zend_vm_stack_push_call_frame() and
 * ZEND_DO_ICALL in Zend/zend_execute.h and zend_vm_def.h; zend_call_function() in zend_execute_API.c marks
 * its frames in all versions). */
static bool begins_with_a_call_from_c(const struct raw_stack *stack, const struct layout *layout)
{
	return stack->count == 0 || stack->joined > 0 ||
	       (stack->frames[stack->count - 1].call_info & layout->ZEND_CALL_TOP);
}

/* Is PHP between two stacks? A generator is put on before it is linked to who asks for its next value
 * (zend_generator_resume() in Zend/zend_generators.c), a fiber is unlinked from its caller before that is put
 * on in its place (Fiber::suspend() in Zend/zend_fibers.c), whose words are put on one by one. Either takes
 * some nanoseconds, unless the process is kept from running. */
static bool is_between_stacks(const struct raw_stack *stack, const struct layout *layout)
{
	return stack->switching || !begins_with_a_call_from_c(stack, layout) ||
	       (stack->count > 0 && stack->joined == 0 && stack->frames[stack->count - 1].generator);
}

static int refresh_view(struct php_process *process)
{
	remote_addr page = process->stack_page;
	remote_addr end = (page + process->stack_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	remote_addr again = (page + process->steady_bytes) & ~(PAGE_BYTES - 1);

	/* Nobody says that there is anything behind it. */
	if (end > process->stack_page_end &&
		process->stack_page_end >= page + process->stack_bytes - SPAN_SLACK_BYTES)
		end = process->stack_page_end;
	if (page == 0)
		return view_refresh(process->view, 0, 0, 0);
	if (process->stack_torn)
		return view_refresh_again(process->view, page, end - page);
	return view_refresh(process->view, page, end - page, again > page ? end - again : end - page);
}

/* The stack of this moment, into @stack: what view_refresh() and stack_walk() say. */
static int read_stack(struct php_process *process, bool first, struct raw_stack *stack)
{
	const struct layout *layout = process->binary->layout;
	int refreshed, walked;

	stack->whole = false;
	refreshed = refresh_view(process);
	process->stack_torn = process->between_stacks = false;
	if (refreshed != 0 && refreshed != VIEW_E_TORN)
		return refreshed;
	first = first && refreshed == 0;
	if (first)
		outer_frames_verify(&process->outer, process->view, layout);
	walked = stack_walk(
		process->view, layout, &process->stack_pages, first ? &process->outer : NULL, stack);
	predict_stack(process, stack);
	process->between_stacks =
		refreshed == 0 && (walked == 0 || stack->switching) && is_between_stacks(stack, layout);
	if (process->between_stacks) {
		stack->whole = false;
		walked = VIEW_E_TORN;
	}
	process->stack_torn = refreshed == VIEW_E_TORN || walked == VIEW_E_TORN;
	if (process->stack_torn)
		outer_frames_unjoin(&process->outer, stack);
	return refreshed != 0 ? refreshed : walked;
}

/* One snapshot into stacks[@which]: 0, PHP_PROCESS_E_IDLE, or what a part said. @first: of this sample. */
static int take_snapshot(struct php_process *process, unsigned which, bool first, struct php_sample *sample)
{
	struct raw_stack *stack = &stacks[which];
	int walked = read_stack(process, first, stack), r;

	if (walked == STACK_E_UNVOUCHED) {
		/* What lies behind the stack, which was deeper, would be what is read twice. */
		process->stack_bytes = stack->used_bytes + SPAN_SLACK_BYTES;
		process->steady_bytes = 0;
		walked = read_stack(process, first, stack);
		if (walked == STACK_E_UNVOUCHED) { /* once more: it has moved on to another page */
			process->stack_torn = true;
			walked = VIEW_E_TORN;
		}
	}
	if (walked != 0 && walked != STACK_E_IDLE)
		return walked;
	/* What follows lasts longer than a stack: it is read behind it, where it does not spoil it. */
	view_allow_lasting(process->view);
	r = read_request(process, stack, sample);
	if (r == 0 && walked == 0)
		r = name_frames(process, stack, sample);
	if (r != 0)
		forget_outer(process, stack);
	if (r == 0 && walked == STACK_E_IDLE)
		r = PHP_PROCESS_E_IDLE;
	return r;
}

/* How many frames, counted from the outer end, are in @stack without a gap and without a doubt. */
static size_t outer_frames(const struct raw_stack *stack)
{
	size_t outer = stack->omitted > 0 ? stack->count - stack->omitted_after - 1 : stack->count;
	size_t certain = stack->doubtful < stack->count ? stack->count - stack->doubtful : 0;

	return outer < certain ? outer : certain;
}

static void keep_outermost(struct raw_stack *stack, size_t count)
{
	memmove(stack->frames, stack->frames + stack->count - count, count * sizeof(stack->frames[0]));
	stack->count = count;
	stack->omitted = stack->omitted_after = 0;
	stack->omitted_at_least = false;
}

/* Leaves in @newer what it and @older agree on, from the outer end inwards. A frame that stayed where it is
 * has not called anything else meanwhile: its opline must be the same for the frame inside of it to count. */
static void keep_agreed(struct raw_stack *newer, const struct raw_stack *older)
{
	size_t most = outer_frames(newer) < outer_frames(older) ? outer_frames(newer) : outer_frames(older);
	size_t agreed = 0;

	while (agreed < most) {
		const struct raw_frame *a = &newer->frames[newer->count - 1 - agreed];
		const struct raw_frame *b = &older->frames[older->count - 1 - agreed];

		if (a->execute_data != b->execute_data || a->func != b->func)
			break;
		if (agreed > 0 && a[1].opline != b[1].opline)
			break;
		agreed++;
	}
	keep_outermost(newer, agreed);
}

/* Does a snapshot that was torn show where the stack begins? */
static bool is_usable(const struct raw_stack *stack, const struct layout *layout)
{
	return stack->whole && !is_between_stacks(stack, layout);
}

/* The sample of a process that moved in every snapshot. */
static int sample_torn(struct php_process *process, unsigned last, struct php_sample *sample)
{
	const struct layout *layout = process->binary->layout;
	struct raw_stack *stack = &stacks[last];
	int r;

	if (is_usable(&stacks[0], layout) && is_usable(&stacks[1], layout))
		keep_agreed(stack, &stacks[!last]);
	else
		keep_outermost(stack, 0);
	/* What is read from here on was there before the target moved and still is: frames that did not
	 * return, functions that they run. */
	r = view_refresh(process->view, 0, 0, 0);
	if (r != 0 && r != VIEW_E_TORN)
		return r;
	view_allow_lasting(process->view);
	r = read_request(process, stack, sample);
	if (r != 0)
		return r;
	r = name_frames(process, stack, sample);
	if (may_pass(r)) {
		keep_outermost(stack, 0);
		r = name_frames(process, stack, sample);
	}
	outer_frames_forget(&process->outer); /* the innermost of these may have called somebody */
	return r == 0 ? PHP_PROCESS_E_TORN : r;
}

/* Sees to it that the process does not run while it is read: by being where it would run, or by stopping it.
 * One that waits stands still by itself, unless it is woken; stopping it would only make its system call
 * fail. 0, or what hold_take() said. */
static int keep_still(struct php_process *process, bool even_if_it_waits)
{
	struct activity_place place;

	if (hold_is_open(&process->hold))
		return hold_take(&process->hold);
	if (!process->options.blocking && !placement_is_of_use())
		return 0;
	/* Where it is can't be known of one that has ended; that reading finds out. */
	if (activity_read_place(process->activity, &place) < 0 || (!place.ready && !even_if_it_waits))
		return 0;
	if (process->options.blocking)
		return hold_take(&process->hold);
	placement_join(place.cpu);
	return 0;
}

/* Lets the process get on, from which it is kept while it is stopped, or while this thread is on its CPU. */
static void pause_for_it(struct php_process *process)
{
	const struct timespec moment = {.tv_nsec = PAUSE_NS};

	process->pauses++;
	placement_leave();
	hold_release(&process->hold);
	nanosleep(&moment, NULL);
	if (process->visited)
		keep_still(process, false);
}

static int sample_in_motion(struct php_process *process, struct php_sample *ret_sample)
{
	uint64_t cost_before = view_cost_bytes(process->view);
	unsigned last = 0;
	bool moved = false;
	int r = 0;

	process->stack_torn = false;
	process->pauses = 0;
	stacks[0].whole = stacks[1].whole = false;
	if (process->names_epoch != process->names->epoch)
		outer_frames_forget(&process->outer);
	process->names_epoch = process->names->epoch;
	for (unsigned attempt = 0; attempt <= PHP_PROCESS_MAX_RETRIES; attempt++) {
		ret_sample->retries = attempt;
		last = attempt % 2;
		r = take_snapshot(process, last, attempt == 0, ret_sample);
		moved = moved || r == VIEW_E_TORN;
		if (attempt == 0 && !process->visited)
			placement_note_first(&process->habit, r == VIEW_E_TORN);
		if (!may_pass(r) || view_cost_bytes(process->view) - cost_before > PHP_PROCESS_MAX_COST_BYTES)
			break;
		if (r == VIEW_E_TORN && process->between_stacks && process->pauses < MAX_PAUSES)
			pause_for_it(process);
		/* It moves faster than it can be read. */
		else if (r == VIEW_E_TORN &&
			 (process->options.blocking || process->options.placement != PLACEMENT_NEVER))
			keep_still(process, true);
	}
	placement_leave();
	return moved && may_pass(r) ? sample_torn(process, last, ret_sample) : r;
}

static bool is_visited(struct php_process *process)
{
	if (process->options.blocking || process->options.placement == PLACEMENT_ALWAYS)
		return true;
	return process->options.placement == PLACEMENT_AUTO && placement_is_habit(&process->habit);
}

int php_process_sample(struct php_process *process, struct php_sample *ret_sample)
{
	int r = 0;

	ret_sample->retries = 0;
	process->visited = is_visited(process);
	if (process->visited)
		r = keep_still(process, false);
	if (r == 0 || r == HOLD_E_LATE)
		r = sample_in_motion(process, ret_sample);
	hold_release(&process->hold);
	return answer_of(r);
}

int php_process_counters(struct php_process *process, struct counters *ret_counters)
{
	int r;

	for (unsigned attempt = 0; attempt <= PHP_PROCESS_MAX_RETRIES; attempt++) {
		r = view_refresh(process->view, 0, 0, 0);
		if (r == 0)
			r = counters_read(process->binary, process->view, ret_counters);
		if (r != VIEW_E_TORN)
			break;
	}
	return answer_of(r);
}
