/* SPDX-License-Identifier: MIT
 *
 * The configuration's words in the rooms' terms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/cli/daemon_config.h"

static struct config parsed(const char *text)
{
	struct config config;
	char why[256];

	if (config_parse(text, strlen(text), "f", &config, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	return config;
}

static struct daemon_settings settings_of(const char *text)
{
	struct config config = parsed(text);
	struct daemon_settings settings;
	char why[256];

	if (daemon_settings_from(&config, &settings, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	return settings;
}

static void each_pool_becomes_a_selector_of_its_kind(void **state)
{
	struct daemon_settings settings = settings_of("pools:\n"
						      "  - {name: shop, fpm_pool: 'shop-*', period: 2ms}\n"
						      "  - {pid_file: /run/fpm.pid}\n"
						      "  - {master_pid: 4711}\n"
						      "  - {executable: '/usr/bin/php*'}\n");
	const struct selector *selectors = settings.selectors;

	assert_int_equal(settings.selector_count, 4);
	assert_int_equal(selectors[0].kind, SELECT_FPM_POOL);
	assert_string_equal(selectors[0].pattern, "shop-*");
	assert_string_equal(selectors[0].pool, "shop");
	assert_int_equal(selectors[0].period_ns, 2000000);
	assert_int_equal(selectors[1].kind, SELECT_PID_FILE);
	assert_string_equal(selectors[1].pattern, "/run/fpm.pid");
	assert_string_equal(selectors[1].pool, "");
	assert_int_equal(selectors[1].period_ns, 0);
	assert_int_equal(selectors[2].kind, SELECT_FPM_MASTER);
	assert_int_equal(selectors[2].pid, 4711);
	assert_int_equal(selectors[3].kind, SELECT_EXECUTABLE);
	assert_string_equal(selectors[3].pattern, "/usr/bin/php*");
}

static void no_key_gets_lost_on_its_way_to_the_engine_and_the_service(void **state)
{
	struct daemon_settings settings = settings_of(
		"sampling: {rate: 250, max_rate: 500, max_depth: 11, realtime: false, threads: 5,\n"
		"  cpu_budget: 6%, placement: never}\n"
		"limits: {max_targets: 12, max_frames: 1300, max_nodes: 140, retained_units: 15, "
		"retained_bytes: 16,\n"
		"  retained_for: 17ns, auto_max: 18s}\n"
		"discovery: {interval: 19ms}\n"
		"socket: {path: /x/y, mode: 0640, group: '21', admin_group: root, max_clients: 23, "
		"max_clients_per_uid: 22,\n"
		"  requests_per_second_per_uid: 24, max_line: 5000, max_pending: 1MiB, idle_timeout: 25s}\n"
		"trace: {traceparent: false}\n");

	assert_int_equal(settings.engine.period_ns, 4000000);
	assert_int_equal(settings.engine.min_period_ns, 2000000);
	assert_int_equal(settings.engine.max_period_ns, 1000000000);
	assert_int_equal(settings.engine.max_depth, 11);
	assert_false(settings.engine.realtime);
	assert_int_equal(settings.engine.threads, 5);
	assert_int_equal(settings.engine.cpu_budget_ppm, 60000);
	assert_int_equal(settings.engine.placement, PLACEMENT_NEVER);
	assert_false(settings.engine.blocking);
	assert_int_equal(settings.engine.max_targets, 12);
	assert_int_equal(settings.engine.max_frames, 1300);
	assert_int_equal(settings.engine.max_nodes, 140);
	assert_int_equal(settings.engine.retained_units, 15);
	assert_int_equal(settings.engine.retained_bytes, 16);
	assert_int_equal(settings.engine.retained_ns, 17);
	assert_int_equal(settings.engine.auto_max_ns, 18000000000);
	assert_int_equal(settings.engine.discovery_interval_ns, 19000000);
	assert_false(settings.engine.trust_traceparent);
	assert_string_equal(settings.service.path, "/x/y");
	assert_int_equal(settings.service.mode, 0640);
	assert_int_equal(settings.service.group, 21);
	assert_int_equal(settings.service.admin_group, 0);
	assert_int_equal(settings.service.max_clients, 23);
	assert_int_equal(settings.service.max_clients_per_uid, 22);
	assert_int_equal(settings.service.requests_per_second_per_uid, 24);
	assert_int_equal(settings.service.max_line_bytes, 5000);
	assert_int_equal(settings.service.max_pending_bytes, 1048576);
	assert_int_equal(settings.service.idle_timeout_ns, 25000000000);
	assert_int_equal(settings.service.sampling.period_ns, 4000000);
}

static void each_placement_is_the_readers_of_the_same_name(void **state)
{
	assert_int_equal(settings_of("").engine.placement, PLACEMENT_AUTO);
	assert_int_equal(settings_of("sampling: {placement: auto}").engine.placement, PLACEMENT_AUTO);
	assert_int_equal(settings_of("sampling: {placement: never}").engine.placement, PLACEMENT_NEVER);
	assert_int_equal(settings_of("sampling: {placement: always}").engine.placement, PLACEMENT_ALWAYS);
}

static void no_group_is_nobody(void **state)
{
	struct daemon_settings settings = settings_of("");

	assert_true(settings.service.group == (gid_t)-1);
	assert_true(settings.service.admin_group == (gid_t)-1);
}

static void a_group_that_is_not_there_is_named(void **state)
{
	struct config config = parsed("socket: {admin_group: no-such-group}");
	struct daemon_settings settings;
	char why[256];

	assert_int_equal(daemon_settings_from(&config, &settings, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "socket.admin_group: no group is called \"no-such-group\"; make it with "
				 "groupadd, or name another");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pool_becomes_a_selector_of_its_kind),
		cmocka_unit_test(no_key_gets_lost_on_its_way_to_the_engine_and_the_service),
		cmocka_unit_test(each_placement_is_the_readers_of_the_same_name),
		cmocka_unit_test(no_group_is_nobody),
		cmocka_unit_test(a_group_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
