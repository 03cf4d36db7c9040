/* SPDX-License-Identifier: MIT
 *
 * An engine that samples nothing: it knows three targets and answers orders on the spot, or when a test lets
 * it. It takes the place of the real one at link time (the linker prefers these definitions to the
 * library's). One test program includes it once.
 */
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/sampling/engine.h"

#define WWW_DATA 33u
#define NOBODY 65534u
#define FAKE_HANDLE UINT64_C(9007199254740993) /* 2^53 + 1 */
#define FAKE_TRACE "0af7651916cd43dd8448eb211c80319c"

struct engine {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uid_t worker_uid; /* whatever process asks is a worker of this user */
	bool holding;     /* orders stay until let go */
	struct order *held[64];
	size_t held_count;
	size_t submitted;
	size_t profile_functions; /* distinct functions in a profile */
	uint64_t stretch_ppm;     /* what the CPU budget does to periods */
	struct order last;        /* a copy of the last question */
};

static struct engine fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.worker_uid = 0,
	.stretch_ppm = 1000000};

static const struct target_report fake_targets[] = {
	{.pid = 101, .uid = WWW_DATA, .pool = "www", .accounting = {.expected = 10, .taken = 10}},
	{.pid = 102, .uid = WWW_DATA, .pool = "www", .accounting = {.expected = 5, .idle = 5}},
	{.pid = 201, .uid = NOBODY, .pool = "private", .accounting = {.expected = 1, .taken = 1}},
};

#define FAKE_TARGET_COUNT (sizeof(fake_targets) / sizeof(fake_targets[0]))

static inline bool is_asked_for(const struct order *order, const struct target_report *target)
{
	return (!order->pid || order->pid == target->pid) &&
	       (order->uid == ORDER_ANY_UID || order->uid == target->uid) &&
	       (!*order->pool || strcmp(order->pool, target->pool) == 0);
}

static inline size_t count_asked_for(const struct order *order)
{
	size_t count = 0;

	for (size_t i = 0; i < FAKE_TARGET_COUNT; i++)
		count += is_asked_for(order, &fake_targets[i]);
	return count;
}

static inline struct unit_result *fake_unit(uint64_t handle)
{
	return unit_result_new(&(struct unit_result){
		.unit_id = 7, .handle = handle, .uid = WWW_DATA, .duration_ns = 500, .trace_id = FAKE_TRACE});
}

/* @functions leaves below the root, named so that JSON text has multi-byte characters all over. */
static inline struct profile *fake_profile(size_t functions)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	profile->frame_count = profile->node_count = functions + 1;
	profile->frames = calloc(functions + 1, sizeof(*profile->frames));
	profile->nodes = calloc(functions + 1, sizeof(*profile->nodes));
	profile->text = strdup("Kl\xc3\xa4sse::m\xe2\x82\xact\xf0\x9f\x90\x98hode");
	for (size_t i = 0; i <= functions; i++) {
		profile->frames[i].name = profile->text;
		profile->frames[i].file = "/srv/app.php";
		profile->frames[i].line = (uint32_t)i;
		profile->nodes[i].frame = (uint32_t)i;
		profile->nodes[i].samples = i > 0;
	}
	profile->accounting = (struct accounting){.expected = functions, .taken = functions};
	return profile;
}

static inline void fake_answer(struct order *order)
{
	size_t count = count_asked_for(order);

	switch (order->verb) {
	case ORDER_FINISH:
		if (order->uid != fake.worker_uid)
			order->error = ORDER_E_NOT_A_TARGET;
		else if (order->handle == 1)
			order->error = ORDER_E_NO_UNIT;
		else
			order->unit = fake_unit(order->handle);
		break;
	case ORDER_WORKER:
		if (order->uid != fake.worker_uid) {
			order->error = ORDER_E_NOT_A_TARGET;
			break;
		}
		order->targets = calloc(1, sizeof(*order->targets));
		order->targets[0] = fake_targets[0];
		order->targets[0].pid = order->pid;
		order->target_count = 1;
		break;
	case ORDER_TARGETS:
		order->targets = calloc(FAKE_TARGET_COUNT, sizeof(*order->targets));
		for (size_t i = 0; i < FAKE_TARGET_COUNT; i++)
			if (is_asked_for(order, &fake_targets[i]))
				order->targets[order->target_count++] = fake_targets[i];
		break;
	case ORDER_PROFILE:
		if (count == 0) {
			order->error = ORDER_E_NOT_FOUND;
			strcpy(order->why, "pool private belongs to nobody"); /* which must not get out */
		} else {
			order->profile = fake_profile(fake.profile_functions);
		}
		break;
	case ORDER_UNIT:
		if ((order->unit_id == 7 || strcmp(order->trace_id, FAKE_TRACE) == 0) &&
			(order->uid == ORDER_ANY_UID || order->uid == WWW_DATA))
			order->unit = fake_unit(FAKE_HANDLE);
		else
			order->error = ORDER_E_NOT_FOUND;
		break;
	case ORDER_UNITS:
		order->units = calloc(1, sizeof(struct unit_result *));
		if (order->uid == ORDER_ANY_UID || order->uid == WWW_DATA)
			order->units[order->unit_count++] = fake_unit(FAKE_HANDLE);
		break;
	case ORDER_METRICS:
		order->metrics = calloc(1, sizeof(*order->metrics));
		order->metrics->uptime_ns = FAKE_HANDLE;
		order->metrics->stretch_ppm = fake.stretch_ppm;
		order->metrics->accounting = (struct accounting){.expected = 16, .taken = 11, .idle = 5};
		break;
	case ORDER_RATE:
		if (order->period_ns < 100000)
			order->error = ORDER_E_RANGE;
		order->affected = count;
		break;
	case ORDER_ATTACH:
		if (order->pid == 666) {
			order->error = ORDER_E_REFUSED;
			strcpy(order->why, "process 666: not PHP");
		} else if (order->pid == 667) {
			order->error = ORDER_E_LIMIT;
		} else if (order->pid == 101) {
			strcpy(order->why, "process 101: already sampled as www; nothing changed");
			break;
		}
		order->affected = 1;
		break;
	case ORDER_RESET:
	case ORDER_SUSPEND:
	case ORDER_RESUME:
	case ORDER_DETACH:
		order->affected = count;
		break;
	}
	mailbox_post(order->reply_to, &order->message);
}

void engine_submit(struct engine *engine, struct order *order)
{
	pthread_mutex_lock(&engine->lock);
	engine->submitted++;
	engine->last = *order;
	if (engine->holding)
		engine->held[engine->held_count++] = order;
	else
		fake_answer(order);
	pthread_cond_broadcast(&engine->changed);
	pthread_mutex_unlock(&engine->lock);
}

size_t engine_refusals(struct engine *engine, struct refusal *ret_refusals, size_t max)
{
	ret_refusals[0] = (struct refusal){.pid = 301, .why = "process 301: PHP 5.6.40 is older than 7.4"};
	return 1;
}

size_t engine_selector_reports(struct engine *engine, struct selector_report *ret_reports, size_t max)
{
	ret_reports[0] = (struct selector_report){.selects = "fpm_pool www", .found = 2};
	ret_reports[1] = (struct selector_report){
		.selects = "/run/shop.pid", .pool = "shop", .why = "No such file or directory"};
	return 2;
}

/* Waits until the engine holds @count orders. */
static inline void fake_wait_held(size_t count)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += 5;
	pthread_mutex_lock(&fake.lock);
	while (fake.held_count < count)
		if (pthread_cond_timedwait(&fake.changed, &fake.lock, &deadline))
			fail_msg("the engine got %zu orders, not %zu", fake.held_count, count);
	pthread_mutex_unlock(&fake.lock);
}

/* Answers what is held, the last first, and holds nothing from now on. */
static inline void fake_let_go(void)
{
	pthread_mutex_lock(&fake.lock);
	fake.holding = false;
	while (fake.held_count > 0)
		fake_answer(fake.held[--fake.held_count]);
	pthread_mutex_unlock(&fake.lock);
}
