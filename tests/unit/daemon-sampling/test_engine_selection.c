/* SPDX-License-Identifier: MIT
 *
 * Which processes the engine takes up and lets go: by selectors, by order, and when they end.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "engine_fixture.h"

static void other_selectors_rename_a_target_and_keep_it(void **state)
{
	struct selector selector = {.kind = SELECT_PID, .pid = php.pid, .pool = "one"};

	assert_int_equal(engine_select(engine, &selector, 1), 0);
	await(is_target_count, 1);
	assert_string_equal(report(php.pid).pool, "one");
	await(is_expected, 20);
	snprintf(selector.pool, sizeof(selector.pool), "two");
	selector.period_ns = 4 * MS;
	assert_int_equal(engine_select(engine, &selector, 1), 0);
	/* An order behind it: it has been taken by then. */
	assert_int_equal(error_of(new_order(ORDER_WORKER, 1)), ORDER_E_NOT_A_TARGET);
	assert_string_equal(report(php.pid).pool, "two");
	assert_int_equal(report(php.pid).period_ns, 4 * MS);
	assert_true(report(php.pid).accounting.expected >= 20);
	assert_int_equal(engine_select(engine, &selector, 0), 0);
	await(is_target_count, 0);
}

#define FLOODERS 4

static atomic_bool is_flood_over;

/* Asks for the unit of a process that is no target, all the time. */
static void *flood(void *context)
{
	_cleanup_(mailbox_freep) struct mailbox *mailbox = NULL;

	if (mailbox_new(&mailbox) < 0)
		return NULL;
	while (!atomic_load(&is_flood_over)) {
		_cleanup_(order_freep) struct order *order = NULL;

		if (order_new(ORDER_FINISH, &order) < 0)
			return NULL;
		order->pid = 1;
		if (engine_ask(engine, order, DEADLINE_NS) < 0 || order->error != ORDER_E_NOT_A_TARGET)
			return "unexpected";
	}
	return NULL;
}

static bool is_target(uint64_t pid)
{
	_cleanup_(order_freep) struct order *order = ask(new_order(ORDER_TARGETS, (pid_t)pid));

	return order->target_count == 1;
}

static void however_much_mail_there_is_new_processes_are_found(void **state)
{
	struct selector selector = {.kind = SELECT_EXECUTABLE};
	struct live_php other;
	pthread_t flooders[FLOODERS];
	void *failure;

	snprintf(selector.pattern, sizeof(selector.pattern), "*/php8.2");
	snprintf(selector.pool, sizeof(selector.pool), "cli");
	assert_int_equal(engine_select(engine, &selector, 1), 0);
	await(is_target, (uint64_t)php.pid);
	atomic_store(&is_flood_over, false);
	for (int i = 0; i < FLOODERS; i++)
		assert_int_equal(pthread_create(&flooders[i], NULL, flood, NULL), 0);
	assert_int_equal(live_start(&other, &build, (const char *[]){NULL}, WORK, NULL), 0);

	await(is_target, (uint64_t)other.pid);
	atomic_store(&is_flood_over, true);
	for (int i = 0; i < FLOODERS; i++) {
		pthread_join(flooders[i], &failure);
		assert_null(failure);
	}
	live_stop(&other);
}

/* ---- attach and detach ---- */

static void a_detached_process_is_let_go_and_its_unit_kept(void **state)
{
	attach(php.pid);
	await(is_expected, 10);
	order_free(ask(new_order(ORDER_DETACH, php.pid)));
	assert_int_equal(count_targets(), 0);

	_cleanup_(order_freep) struct order *units = new_order(ORDER_UNITS, php.pid);
	units->limit = UINT32_MAX;
	ask(units);
	assert_int_equal(units->unit_count, 1);
	assert_true(units->units[0]->automatic);
	assert_int_equal(units->units[0]->type, UNIT_COMMAND);
	assert_true(accounting_is_balanced(&units->units[0]->accounting));
	assert_int_equal(error_of(new_order(ORDER_DETACH, php.pid)), ORDER_E_NOT_FOUND);
}

static void order(enum order_verb verb, const char *pool, size_t affected, const char *why)
{
	_cleanup_(order_freep) struct order *order = new_order(verb, php.pid);
	char whole[sizeof(order->why)] = "";

	snprintf(order->pool, sizeof(order->pool), "%s", pool);
	assert_int_equal(engine_ask(engine, order, DEADLINE_NS), 0);
	if (*why)
		snprintf(whole, sizeof(whole), "process %d: %s", php.pid, why);
	assert_string_equal(order->why, whole);
	assert_int_equal(order->affected, affected);
}

static void what_the_configuration_selects_an_order_does_not_rename(void **state)
{
	const struct selector selector = {.kind = SELECT_PID, .pid = php.pid, .pool = "shop"};

	assert_int_equal(engine_select(engine, &selector, 1), 0);
	await(is_target_count, 1);
	order(ORDER_ATTACH, "mine", 0, "already sampled as shop; nothing changed");
	assert_string_equal(report(php.pid).pool, "shop");
	order(ORDER_DETACH, "", 0,
		"the configuration selects it, as shop; take it out of pools:, or ctl suspend --pid");
	assert_int_equal(count_targets(), 1);
}

static void a_second_order_renames_and_says_so_or_changes_nothing(void **state)
{
	order(ORDER_ATTACH, "one", 1, "");
	order(ORDER_ATTACH, "one", 0, "already sampled as one; nothing changed");
	order(ORDER_ATTACH, "", 0, "already sampled as one; nothing changed");
	order(ORDER_ATTACH, "two", 1, "sampled as two now, as one before");
	assert_string_equal(report(php.pid).pool, "two");
	order(ORDER_DETACH, "", 1, "");
	assert_int_equal(count_targets(), 0);
	order(ORDER_DETACH, "", 0, "not sampled; nothing to let go");
}

static void what_was_attached_and_is_configured_later_stays_when_it_is_detached(void **state)
{
	const struct selector selector = {.kind = SELECT_PID, .pid = php.pid, .pool = "shop"};

	order(ORDER_ATTACH, "mine", 1, "");
	assert_int_equal(engine_select(engine, &selector, 1), 0);
	order(ORDER_DETACH, "", 0,
		"the configuration selects it, as shop; take it out of pools:, or ctl suspend --pid");
	assert_string_equal(report(php.pid).pool, "shop");
}

static void assert_not_found(enum order_verb verb, pid_t pid, const char *pool, const char *why)
{
	_cleanup_(order_freep) struct order *order = new_order(verb, pid);

	snprintf(order->pool, sizeof(order->pool), "%s", pool);
	assert_int_equal(engine_ask(engine, order, DEADLINE_NS), 0);
	assert_int_equal(order->error, ORDER_E_NOT_FOUND);
	assert_string_equal(order->why, why);
}

static void what_is_not_found_is_named_with_what_there_is(void **state)
{
	assert_not_found(ORDER_PROFILE, 0, "nosuch", "no pool \"nosuch\"; nothing is sampled at present");
	order(ORDER_ATTACH, "shop", 1, "");
	assert_not_found(ORDER_PROFILE, 0, "nosuch", "no pool \"nosuch\"; there are: shop");
	assert_not_found(ORDER_SUSPEND, 0, "nosuch", "no pool \"nosuch\"; there are: shop");
	assert_not_found(
		ORDER_PROFILE, 1, "", "process 1 is not sampled; `cbox-profd targets` lists those that are");
}

/* Has the selector with this number found something? A scan reports when it has ended, and by then what it
 * found is on its way to the sampler already. */
static bool has_found(uint64_t number)
{
	struct selector_report reports[HARVEST_MAX];

	return engine_selector_reports(engine, reports, HARVEST_MAX) > number && reports[number].found > 0;
}

static void each_selector_reports_what_it_finds(void **state)
{
	const struct selector selectors[] = {{.kind = SELECT_PID_FILE, .pattern = "/nonexistent.pid"},
		{.kind = SELECT_FPM_MASTER, .pid = php.pid, .pool = "shop"},
		{.kind = SELECT_FPM_POOL, .pattern = "no-such-pool"},
		{.kind = SELECT_EXECUTABLE, .pattern = "*/php8.2"}};
	struct selector_report reports[HARVEST_MAX];

	assert_int_equal(engine_select(engine, selectors, 4), 0);
	await(is_target, (uint64_t)php.pid);
	await(has_found, 3);
	assert_int_equal(engine_selector_reports(engine, reports, HARVEST_MAX), 4);
	assert_string_equal(reports[0].selects, "/nonexistent.pid");
	assert_string_equal(reports[0].why, "No such file or directory");
	assert_string_equal(reports[1].pool, "shop");
	assert_string_equal(reports[1].why, "it is no PHP-FPM master");
	assert_string_equal(reports[2].selects, "fpm_pool no-such-pool");
	assert_non_null(strstr(reports[2].why, "no worker of such a pool"));
	for (int i = 0; i < 3; i++)
		assert_int_equal(reports[i].found, 0);
	assert_true(reports[3].found >= 1);
	assert_string_equal(reports[3].why, "");
}

static bool is_unit_count(uint64_t count)
{
	_cleanup_(order_freep) struct order *units = new_order(ORDER_UNITS, 0);

	units->limit = 1000;
	ask(units);
	return units->unit_count == count;
}

static void units_kept_too_long_go_while_sampling_goes_on(void **state)
{
	struct engine_options with = options();
	struct live_php other;

	with.retained_ns = 1 * MS;
	assert_int_equal(engine_reconfigure(engine, &with), 0);
	assert_int_equal(live_start(&other, &build, (const char *[]){NULL}, WORK, NULL), 0);
	attach(php.pid);
	attach(other.pid);
	await(is_expected, 10);
	live_stop(&other);
	await(is_target_count, 1);
	await(is_unit_count, 0);
}

static bool is_seen_in_hot(uint64_t samples)
{
	_cleanup_(profile_freep) struct profile *now = profile();

	return share_of(now, "hot").total_samples >= samples;
}

static void what_a_process_did_outlives_it(void **state)
{
	struct live_php other;
	uint64_t ticks;

	assert_int_equal(live_start(&other, &build, (const char *[]){NULL}, WORK, NULL), 0);
	attach(other.pid);
	await(is_seen_in_hot, 5);
	ticks = expected_ticks();
	live_stop(&other);
	await(is_target_count, 0);
	_cleanup_(profile_freep) struct profile *left = profile();
	assert_true(left->accounting.expected >= ticks);
	assert_true(share_of(left, "hot").total_samples >= 5);
	/* The number may be another's by now: it can be attached anew, which it can't while it is nobody's.
	 */
	assert_int_equal(error_of(new_order(ORDER_ATTACH, other.pid)), ORDER_E_NOT_A_TARGET);
}

static void a_process_that_is_no_php_is_refused_with_the_reason(void **state)
{
	_cleanup_(order_freep) struct order *order = new_order(ORDER_ATTACH, getpid());

	assert_int_equal(engine_ask(engine, order, DEADLINE_NS), 0);
	assert_int_equal(order->error, ORDER_E_REFUSED);
	assert_non_null(strstr(order->why, "process "));
	assert_int_equal(count_targets(), 0);
}

static bool is_gone(uint64_t pid)
{
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static void processes_that_ended_do_not_use_up_what_can_be_attached(void **state)
{
	struct live_php parent;
	FILE *pids;

	/* More than can be attached by order at a time. */
	assert_int_equal(live_start(&parent, &build, (const char *[]){NULL},
				 "tests/unit/daemon-sampling/php/fork.php", NULL),
		0);
	pids = fdopen(dup(parent.output), "r");
	for (int i = 0; i < 260; i++) {
		int pid = 0;

		assert_int_equal(write(parent.input, "\n", 1), 1);
		assert_int_equal(fscanf(pids, "%d", &pid), 1);
		attach(pid);
		kill(pid, SIGKILL);
		/* On a busy machine it may take its time; until then it uses up one of the eight. */
		await(is_gone, (uint64_t)pid);
	}
	fclose(pids);
	live_stop(&parent);
	attach(php.pid);
	await(is_target_count, 1);
}

static void more_targets_than_there_may_be_are_refused(void **state)
{
	struct engine_options with = options();
	struct live_php other;

	with.max_targets = 1;
	engine_free(engine);
	engine = NULL;
	assert_int_equal(engine_new(&with, &engine), 0);
	assert_int_equal(engine_start(engine), 0);
	assert_int_equal(live_start(&other, &build, (const char *[]){NULL}, WORK, NULL), 0);
	attach(other.pid);
	struct order *order = new_order(ORDER_ATTACH, php.pid);
	assert_int_equal(engine_ask(engine, order, DEADLINE_NS), 0);
	assert_int_equal(order->error, ORDER_E_REFUSED);
	assert_non_null(strstr(order->why, "limits.max_targets"));
	order_free(order);
	/* Who ends makes room. */
	live_stop(&other);
	await(is_target_count, 0);
	order_free(ask(new_order(ORDER_ATTACH, php.pid)));
	assert_int_equal(count_targets(), 1);
}

int main(void)
{
#define SELECTION_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		SELECTION_TEST(other_selectors_rename_a_target_and_keep_it),
		SELECTION_TEST(however_much_mail_there_is_new_processes_are_found),
		SELECTION_TEST(a_detached_process_is_let_go_and_its_unit_kept),
		SELECTION_TEST(what_the_configuration_selects_an_order_does_not_rename),
		SELECTION_TEST(a_second_order_renames_and_says_so_or_changes_nothing),
		SELECTION_TEST(what_was_attached_and_is_configured_later_stays_when_it_is_detached),
		SELECTION_TEST(what_is_not_found_is_named_with_what_there_is),
		SELECTION_TEST(each_selector_reports_what_it_finds),
		SELECTION_TEST(units_kept_too_long_go_while_sampling_goes_on),
		SELECTION_TEST(what_a_process_did_outlives_it),
		SELECTION_TEST(a_process_that_is_no_php_is_refused_with_the_reason),
		SELECTION_TEST(processes_that_ended_do_not_use_up_what_can_be_attached),
		SELECTION_TEST(more_targets_than_there_may_be_are_refused),
	};

	return run_with_threads(tests, sizeof(tests) / sizeof(tests[0]), 4);
}
