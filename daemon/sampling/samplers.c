/* SPDX-License-Identifier: MIT
 *
 * Whose a process is is a matter of spreading pids evenly. Neighbours come in steps: of one where a master
 * starts its workers in one go, of two where two pools start theirs by turns or each worker starts a helper.
 * The remainder of a division by the number of threads would put all the latter on one of two threads.
 * Multiples of the golden ratio lie about evenly whatever the step.
 */
#include "daemon/sampling/samplers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* 2^32 divided by the golden ratio: Fibonacci hashing, Knuth, The Art of Computer Programming, 6.4. */
#define GOLDEN 2654435769u
/* A thread that has not ended by then hangs. */
#define STOP_TIMEOUT_S 3

/* Limits are those of all samplers together: what one of them, the @place-th, may keep. */
static struct engine_options share_of(const struct engine_options *options, unsigned place)
{
	struct engine_options share = *options;

	share.retained_units = options->retained_units / options->threads +
			       (place < options->retained_units % options->threads);
	share.retained_bytes = options->retained_bytes / options->threads;
	share.cpu_budget_ppm = options->cpu_budget_ppm / options->threads;
	return share;
}

int samplers_init(struct samplers *samplers, const struct engine_options *options,
	const struct sampler_neighbours *neighbours)
{
	for (unsigned i = 0; i < options->threads; i++) {
		struct engine_options share = share_of(options, i);
		struct sampler *sampler;
		int r = sampler_new(&share, i, &sampler);

		if (r < 0)
			return r;
		samplers->items[samplers->count++] = sampler;
		samplers->stop[i].kind = SAMPLER_STOP;
		sampler->bookkeeper = neighbours->bookkeeper;
		sampler->scout = neighbours->scout;
		sampler->refusals = neighbours->refusals;
		sampler->first = samplers->items[0]->inbox;
		if (i > 0)
			samplers->items[i - 1]->next = sampler->inbox;
	}
	return 0;
}

void samplers_deinit(struct samplers *samplers)
{
	samplers_empty(samplers);
	while (samplers->count)
		sampler_free(samplers->items[--samplers->count]);
}

/* Waits for the end of the first @count, which have been told. */
static int join(struct samplers *samplers, unsigned count)
{
	struct timespec give_up;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &give_up);
	give_up.tv_sec += STOP_TIMEOUT_S;
	for (unsigned i = 0; i < count && !error; i++)
		error = pthread_timedjoin_np(samplers->threads[i], NULL, &give_up);
	return -error;
}

static int stop(struct samplers *samplers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		mailbox_post(samplers->items[i]->inbox, &samplers->stop[i]);
	return join(samplers, count);
}

int samplers_start(struct samplers *samplers)
{
	for (unsigned i = 0; i < samplers->count; i++) {
		int error = pthread_create(&samplers->threads[i], NULL, sampler_run, samplers->items[i]);

		if (error) {
			stop(samplers, i);
			return -error;
		}
	}
	return 0;
}

int samplers_stop(struct samplers *samplers)
{
	return stop(samplers, samplers->count);
}

static void let_go(struct sampler_command *command)
{
	if (command->message.kind == SAMPLER_ADD) {
		php_process_close(command->process);
		cleanup_close(&command->pidfd);
	}
	free(command);
}

static void empty(struct sampler *sampler)
{
	struct message *mail = mailbox_take_all(sampler->inbox);

	while (mail) {
		struct message *next = mail->next;

		if (mail->kind == SAMPLER_ORDER) {
			struct order *order = (struct order *)mail;

			order->error = ORDER_E_STOPPING;
			sampler_send_on(sampler, order);
		} else {
			let_go((struct sampler_command *)mail);
		}
		mail = next;
	}
}

void samplers_empty(struct samplers *samplers)
{
	for (unsigned i = 0; i < samplers->count; i++)
		empty(samplers->items[i]);
}

struct sampler *samplers_owner(const struct samplers *samplers, pid_t pid)
{
	uint32_t spread = (uint32_t)pid * GOLDEN;

	return samplers->items[(uint64_t)spread * samplers->count >> 32];
}

void samplers_submit(const struct samplers *samplers, struct order *order)
{
	bool concerns_one = order->verb == ORDER_FINISH || order->verb == ORDER_WORKER;

	mailbox_post(concerns_one ? samplers_owner(samplers, order->pid)->inbox : samplers->items[0]->inbox,
		&order->message);
}

int samplers_reconfigure(struct samplers *samplers, const struct engine_options *options)
{
	struct sampler_command *commands[ENGINE_MAX_THREADS] = {NULL};

	for (unsigned i = 0; i < samplers->count; i++) {
		commands[i] = calloc(1, sizeof(*commands[i]));
		if (!commands[i]) {
			while (i > 0)
				free(commands[--i]);
			return -ENOMEM;
		}
		commands[i]->message.kind = SAMPLER_RECONFIGURE;
		commands[i]->options = share_of(options, i);
	}
	/* The first one last: an order that passes all in turn finds none of the others behind it. */
	for (unsigned i = samplers->count; i-- > 0;)
		mailbox_post(samplers->items[i]->inbox, &commands[i]->message);
	return 0;
}

bool samplers_are_alive(struct samplers *samplers)
{
	uint64_t heartbeats[ENGINE_MAX_THREADS] = {0};

	for (unsigned i = 0; i < samplers->count; i++) {
		heartbeats[i] = atomic_load_explicit(&samplers->items[i]->heartbeat, memory_order_relaxed);
		if (heartbeats[i] == samplers->heartbeats[i])
			return false;
	}
	memcpy(samplers->heartbeats, heartbeats, samplers->count * sizeof(heartbeats[0]));
	return true;
}

struct budget_report samplers_budget(const struct samplers *samplers)
{
	struct budget_report sum = {.stretch_ppm = BUDGET_PPM};

	for (unsigned i = 0; i < samplers->count; i++) {
		const struct sampler *sampler = samplers->items[i];
		uint64_t stretch_ppm = atomic_load_explicit(&sampler->stretch_ppm, memory_order_relaxed);

		sum.limit_ppm += atomic_load_explicit(&sampler->limit_ppm, memory_order_relaxed);
		sum.demand_ppm += atomic_load_explicit(&sampler->demand_ppm, memory_order_relaxed);
		if (stretch_ppm > sum.stretch_ppm)
			sum.stretch_ppm = stretch_ppm;
	}
	return sum;
}
