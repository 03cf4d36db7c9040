/* SPDX-License-Identifier: MIT
 *
 * Rates and suspensions that are ordered of several samplers: each must come to the same end, whatever is
 * ordered meanwhile and however the steps fall.
 */
#include "rounds_fixture.h"

static const struct target *find(pid_t pid)
{
	return sampler_find(samplers_owner(&samplers, pid), pid);
}

/* What holds on each of them for targets of @pool that come later. */
static void assert_stands(const char *pool, bool suspended, uint64_t period_ns)
{
	for (unsigned i = 0; i < threads; i++) {
		const struct standing *standing = &samplers.items[i]->standing;

		assert_int_equal(standing_is_suspended(standing, pool), suspended);
		assert_int_equal(standing_period_ns(standing, pool), period_ns);
	}
}

static void what_is_ordered_of_a_pool_stands_also_where_it_has_no_targets(void **state)
{
	_cleanup_(order_freep) struct order *order = begin(ORDER_SUSPEND, "api");

	finish(order);
	assert_int_equal(order->error, ORDER_OK);
	assert_int_equal(order->affected, 1);
	assert_true(find(5)->suspended);
	assert_false(find(1)->suspended);
	assert_stands("api", true, 0);
	assert_stands("www", false, 0);
}

static void what_no_sampler_has_is_refused_by_name_and_does_not_stand(void **state)
{
	_cleanup_(order_freep) struct order *order = begin(ORDER_RATE, "nosuch");

	finish(order);
	assert_int_equal(order->error, ORDER_E_NOT_FOUND);
	assert_non_null(strstr(order->why, "no pool \"nosuch\"; there are: "));
	assert_non_null(strstr(order->why, "www"));
	assert_non_null(strstr(order->why, "api"));
	assert_stands("nosuch", false, 0);
}

static void an_order_about_one_process_reaches_it_wherever_it_is(void **state)
{
	for (pid_t pid = 1; pid <= TARGETS; pid++) {
		struct order *order = NULL;

		assert_int_equal(order_new(ORDER_SUSPEND, &order), 0);
		order->pid = pid;
		finish(submit(order));
		assert_int_equal(order->affected, 1);
		assert_true(find(pid)->suspended);
		order_free(order);
	}
	assert_stands("www", false, 0);
}

/* One step of some sampler, which @random names. */
static void step_anywhere(uint64_t *random)
{
	struct sampler *sampler;

	*random = *random * 6364136223846793005u + 1442695040888963407u;
	sampler = samplers.items[(*random >> 33) % threads];
	read_mail(sampler);
	rounds_turn(sampler, false);
}

static void step_until_both_are_back(uint64_t *random)
{
	for (unsigned back = 0, steps = 0; back < 2; steps++) {
		assert_true(steps < 10000);
		step_anywhere(random);
		for (const struct message *mail = mailbox_take_all(replies); mail; mail = mail->next)
			back++;
	}
}

/* The second one is quicker: it skips most targets. */
static void of_two_orders_the_later_one_counts_on_every_sampler(void **state)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		uint64_t random = seed;
		struct order *all, *api;

		for (pid_t pid = 6; pid <= 16; pid++)
			if (!find(pid))
				add_target(pid, "www");
		all = begin(ORDER_SUSPEND, "");
		for (uint64_t i = 0; i < seed % 7; i++)
			step_anywhere(&random);
		api = begin(ORDER_RESUME, "api");
		step_until_both_are_back(&random);
		assert_int_equal(all->affected, 16);
		for (pid_t pid = 1; pid <= 16; pid++)
			assert_int_equal(find(pid)->suspended, pid != 5);
		assert_stands("www", true, 0);
		assert_stands("api", false, 0);
		order_free(all);
		order_free(api);
	}
}

/* A rate that was ordered before a reload ends with it, one that was ordered after it holds; which of the two
 * it was is open, but it is the same everywhere. */
static void a_reload_that_meets_a_rate_on_its_way_meets_it_on_every_sampler(void **state)
{
	unsigned ended = 0;

	for (uint64_t seed = 0; seed < 100; seed++) {
		uint64_t random = seed, period_ns;
		struct order *rate = begin(ORDER_RATE, "");

		for (uint64_t i = 0; i < seed % 11; i++)
			step_anywhere(&random);
		assert_int_equal(samplers_reconfigure(&samplers, &options), 0);
		for (unsigned steps = 0; !mailbox_take_all(replies); steps++) {
			assert_true(steps < 10000);
			step_anywhere(&random);
		}
		for (unsigned i = 0; i < threads; i++)
			read_mail(samplers.items[i]);
		period_ns = find(1)->period_ns;
		assert_true(period_ns == 10 * MS || period_ns == 20 * MS);
		for (pid_t pid = 2; pid <= TARGETS; pid++)
			assert_int_equal(find(pid)->period_ns, period_ns);
		assert_stands("www", false, period_ns == 20 * MS ? period_ns : 0);
		ended += period_ns == 10 * MS;
		order_free(rate);
	}
	/* Both happen, except that one sampler gets them in the order in which they were given. */
	assert_in_range(ended, threads == 1 ? 100 : 1, threads == 1 ? 100 : 99);
}

static void units_of_all_samplers_come_newest_first(void **state)
{
	struct order *order = NULL;

	/* Process n ended its unit n ms after the first: each sampler has some of them. */
	for (pid_t pid = 1; pid <= TARGETS; pid++) {
		struct sampling *sampling = &samplers_owner(&samplers, pid)->sampling;
		struct unit_result *unit = unit_result_new(&(struct unit_result){.pid = pid,
			.unit_id = sampling_number_unit(sampling),
			.end_ns = START_NS + (uint64_t)pid * MS,
			.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"});

		sampling_retain(sampling, unit, fake.now_ns);
		unit_result_free(unit);
	}
	order = begin(ORDER_UNITS, "");
	finish(order);
	assert_int_equal(order->unit_count, TARGETS);
	for (pid_t pid = TARGETS; pid > 0; pid--)
		assert_int_equal(order->units[TARGETS - pid]->pid, pid);
	for (size_t i = 1; i < TARGETS; i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(order->units[i]->unit_id, order->units[j]->unit_id);
	order_free(order);

	assert_int_equal(order_new(ORDER_UNITS, &order), 0);
	order->limit = 2;
	finish(submit(order));
	assert_int_equal(order->unit_count, 2);
	assert_int_equal(order->units[0]->pid, TARGETS);
	assert_int_equal(order->units[1]->pid, TARGETS - 1);
	order_free(order);

	/* Of a trace, the newest too. */
	assert_int_equal(order_new(ORDER_UNIT, &order), 0);
	snprintf(order->trace_id, sizeof(order->trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
	finish(submit(order));
	assert_int_equal(order->error, ORDER_OK);
	assert_int_equal(order->unit->pid, TARGETS);
	order_free(order);

	assert_int_equal(order_new(ORDER_UNIT, &order), 0);
	order->unit_id = 4711;
	finish(submit(order));
	assert_int_equal(order->error, ORDER_E_NOT_FOUND);
	order_free(order);
}

/* No sampler has more than a quarter too many of 64 workers, however their numbers were given out. */
static void workers_are_spread_evenly_whatever_the_steps_of_their_pids(void **state)
{
	for (pid_t step = 1; step <= 5; step++) {
		unsigned has[ENGINE_MAX_THREADS] = {0};

		for (pid_t i = 0; i < 64; i++)
			has[samplers_owner(&samplers, 4711 + i * step)->sampling.place]++;
		for (unsigned i = 0; i < threads; i++)
			assert_in_range(has[i], 64 / threads * 3 / 4, 64 / threads * 5 / 4 + 1);
	}
}

static void what_may_be_kept_is_divided_among_the_samplers(void **state)
{
	uint32_t units = 0;

	for (unsigned i = 0; i < threads; i++) {
		units += samplers.items[i]->sampling.options.retained_units;
		assert_int_equal(samplers.items[i]->sampling.options.retained_bytes, (1 << 20) / threads);
	}
	assert_int_equal(units, 100);
}

static void metrics_are_the_sums_of_what_each_sampler_does(void **state)
{
	_cleanup_(order_freep) struct order *order = NULL;
	uint64_t targets = 0;

	for (unsigned i = 0; i < threads; i++) {
		samplers.items[i]->ticks = 10 + i;
		samplers.items[i]->sampling.accounting =
			(struct accounting){.expected = 20 + i, .taken = 18, .missed = 2 + i};
		samplers.items[i]->realtime = i == 0;
	}
	order = begin(ORDER_METRICS, "");
	finish(order);
	assert_int_equal(order->metrics->sampler_count, threads);
	for (unsigned i = 0; i < threads; i++) {
		targets += order->metrics->samplers[i].targets;
		assert_int_equal(order->metrics->samplers[i].ticks_total, 10 + i);
		assert_int_equal(order->metrics->samplers[i].missed, 2 + i);
	}
	assert_int_equal(order->metrics->targets, TARGETS);
	assert_int_equal(targets, TARGETS);
	assert_int_equal(order->metrics->ticks_total, threads * 10 + threads * (threads - 1) / 2);
	assert_int_equal(order->metrics->accounting.taken, threads * 18);
	assert_true(accounting_is_balanced(&order->metrics->accounting));
	/* Only if all are. */
	assert_int_equal(order->metrics->realtime, threads == 1);
}

int main(void)
{
#define CONTROL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CONTROL_TEST(what_is_ordered_of_a_pool_stands_also_where_it_has_no_targets),
		CONTROL_TEST(what_no_sampler_has_is_refused_by_name_and_does_not_stand),
		CONTROL_TEST(an_order_about_one_process_reaches_it_wherever_it_is),
		CONTROL_TEST(of_two_orders_the_later_one_counts_on_every_sampler),
		CONTROL_TEST(a_reload_that_meets_a_rate_on_its_way_meets_it_on_every_sampler),
		CONTROL_TEST(units_of_all_samplers_come_newest_first),
		CONTROL_TEST(workers_are_spread_evenly_whatever_the_steps_of_their_pids),
		CONTROL_TEST(what_may_be_kept_is_divided_among_the_samplers),
		CONTROL_TEST(metrics_are_the_sums_of_what_each_sampler_does),
	};
	int failed = 0;

	for (threads = 1; threads <= 4; threads++) {
		print_message("[ THREADS  ] %u\n", threads);
		failed += cmocka_run_group_tests_name("control", tests, NULL, NULL);
	}
	return failed;
}
