/* SPDX-License-Identifier: MIT
 *
 * The measuring half of `make oracle`: looks at a process many times, at moments that have nothing to do with
 * what it does, and says what it saw as JSON. Whether that can be true is judged elsewhere
 * (tests/bench/truth/), by tables that were made from the programs by hand: this program knows nothing of the
 * programs it looks at.
 *
 * Moments are those of the daemon's cadence (half to one and a half periods apart), at the sampler thread's
 * priority. On which CPU it runs is for the caller to say (taskset).
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/export/json.h"
#include "daemon/sampling/cadence.h"
#include "tests/bench/driver.h"
#include "tests/bench/stack_table.h"
#include "tests/bench/witness.h"

#define MICROSECOND_NS UINT64_C(1000)
#define SECOND_NS UINT64_C(1000000000)
#define MAX_ERROR 134 /* larger errno do not come from reading memory */
/* Looks before the first that counts: until caches and predictions have seen everything. */
#define WARM_UP_LOOKS 100

struct oracle {
	struct witness *witness;
	struct stack_table *stacks;
	struct witness_account account;
	uint64_t outcomes[WITNESS_OUTCOMES];
	uint64_t errors[MAX_ERROR]; /* of WITNESS_UNREADABLE; [0]: memory that made no sense */
	uint64_t refuted;
	uint64_t wanted, counted; /* looks at which PHP code ran */
	uint64_t started_ns, ended_ns;
};

static void sleep_until(uint64_t when_ns)
{
	struct timespec when = {(time_t)(when_ns / SECOND_NS), (long)(when_ns % SECOND_NS)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
		;
}

static int note(struct oracle *oracle)
{
	const struct witness_account *account = &oracle->account;
	bool torn = account->outcome == WITNESS_TORN;
	unsigned batch = (unsigned)(oracle->counted * STACK_TABLE_BATCHES / oracle->wanted);

	oracle->outcomes[account->outcome]++;
	oracle->refuted += account->refuted;
	switch (account->outcome) {
	case WITNESS_UNREADABLE:
		oracle->errors[account->error > -MAX_ERROR ? -account->error : 0]++;
		oracle->counted++;
		return 0;
	case WITNESS_ACCEPTED:
	case WITNESS_RETRIED:
	case WITNESS_UNCHANGED:
	case WITNESS_TORN:
		oracle->counted++;
		return stack_table_count(oracle->stacks, account->frames, account->count, torn, batch);
	case WITNESS_IDLE:
	case WITNESS_GONE:
	case WITNESS_OUTCOMES:
		break;
	}
	return 0;
}

static int watch(struct oracle *oracle, uint64_t period_ns, uint64_t max_ns)
{
	struct cadence cadence;
	struct cadence_due due;
	int r = 0;

	for (unsigned i = 0; i < WARM_UP_LOOKS; i++)
		witness_look(oracle->witness, &oracle->account);
	oracle->started_ns = driver_now_ns();
	cadence_start(&cadence, period_ns, oracle->started_ns, oracle->started_ns);
	while (r == 0 && oracle->counted < oracle->wanted && oracle->account.outcome != WITNESS_GONE &&
		driver_now_ns() - oracle->started_ns < max_ns) {
		sleep_until(cadence.deadline_ns);
		if (!cadence_due(&cadence, driver_now_ns(), &due))
			continue;
		witness_look(oracle->witness, &oracle->account);
		r = note(oracle);
	}
	oracle->ended_ns = driver_now_ns();
	return r;
}

static cJSON *outcomes_json(const struct oracle *oracle)
{
	cJSON *json = cJSON_CreateObject();

	for (unsigned i = 0; i < WITNESS_OUTCOMES; i++)
		json_add_count(json, witness_outcome_names[i], oracle->outcomes[i]);
	return json;
}

static cJSON *errors_json(const struct oracle *oracle)
{
	cJSON *json = cJSON_CreateObject();

	for (int i = 0; i < MAX_ERROR; i++)
		if (oracle->errors[i] > 0)
			json_add_count(json, i == 0 ? "no sense" : strerrorname_np(i), oracle->errors[i]);
	return json;
}

static cJSON *frames_json(const struct frame_table *table)
{
	cJSON *json = cJSON_CreateArray();

	for (uint32_t id = 0; id < frame_table_count(table); id++) {
		const struct function_name *name = frame_table_get(table, id);
		cJSON *frame = cJSON_CreateObject();

		json_add_string(frame, "function", name->name);
		json_add_string(frame, "file", name->file);
		json_add_count(frame, "line", name->line);
		json_append_item(json, frame);
	}
	return json;
}

static cJSON *numbers_json(const uint32_t *numbers, size_t count)
{
	cJSON *json = cJSON_CreateArray();

	for (size_t i = 0; i < count; i++)
		json_append_item(json, cJSON_CreateNumber(numbers[i]));
	return json;
}

static cJSON *stacks_json(const struct stack_table *table)
{
	cJSON *json = cJSON_CreateArray();

	for (size_t i = 0; i < stack_table_size(table); i++) {
		const struct counted_stack *stack = stack_table_at(table, i);
		cJSON *object = cJSON_CreateObject();

		json_add_bool(object, "torn", stack->torn);
		json_add_item(object, "frames", numbers_json(stack->frames, stack->depth));
		json_add_item(object, "counts", numbers_json(stack->counts, STACK_TABLE_BATCHES));
		json_append_item(json, object);
	}
	return json;
}

static int print(const struct oracle *oracle)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	_cleanup_free_ char *text = NULL;

	json_add_count(json, "took_ns", oracle->ended_ns - oracle->started_ns);
	json_add_item(json, "outcomes", outcomes_json(oracle));
	json_add_item(json, "unreadable", errors_json(oracle));
	json_add_count(json, "refuted", oracle->refuted);
	json_add_item(json, "frames", frames_json(witness_frames(oracle->witness)));
	json_add_item(json, "stacks", stacks_json(oracle->stacks));
	text = cJSON_PrintUnformatted(json);
	return !text || puts(text) < 0;
}

static int find_kind(const char *name, enum witness_kind *ret_kind)
{
	for (unsigned i = 0; i < WITNESS_KINDS; i++) {
		if (strcmp(name, witness_names[i]) == 0) {
			*ret_kind = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int run(struct oracle *oracle, char **arguments)
{
	struct sched_param param = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
	uint64_t period_ns = strtoull(arguments[3], NULL, 10) * MICROSECOND_NS;
	uint64_t max_ns = strtoull(arguments[4], NULL, 10) * SECOND_NS;
	enum witness_kind kind;

	oracle->wanted = strtoull(arguments[2], NULL, 10);
	if (find_kind(arguments[1], &kind) < 0 || period_ns == 0 || oracle->wanted == 0)
		return 2;
	if (witness_open(kind, (pid_t)atoi(arguments[0]), &oracle->witness) < 0 ||
		stack_table_new(&oracle->stacks) < 0)
		return 1;
	sched_setscheduler(0, SCHED_FIFO, &param); /* without it, too, the stacks must be right */
	return watch(oracle, period_ns, max_ns) < 0 ? 1 : print(oracle);
}

int driver_oracle(char **arguments)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	int status = oracle ? run(oracle, arguments) : 1;

	if (oracle && oracle->stacks)
		stack_table_free(oracle->stacks);
	if (oracle && oracle->witness)
		witness_close(oracle->witness);
	free(oracle);
	return status;
}
