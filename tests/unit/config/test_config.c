/* SPDX-License-Identifier: MIT
 *
 * The configuration reader: what it takes, and the exact line it answers to everything else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"

#define SHIPPED "config/cbox-profd.yaml"
#define PAGE "docs/CONFIGURATION.md"

static char why[512];

static int parse(const char *text, struct config *ret_config)
{
	why[0] = '\0';
	return config_parse(text, strlen(text), "f", ret_config, why, sizeof(why));
}

static struct config good(const char *text)
{
	struct config config;

	if (parse(text, &config) != 0)
		fail_msg("refused: %s", why);
	return config;
}

/* @text is refused with exactly @message, and the result is untouched. */
static void bad(const char *text, const char *message)
{
	struct config config, before;

	memset(&config, 0xa5, sizeof(config));
	before = config;
	assert_int_equal(parse(text, &config), -EINVAL);
	assert_string_equal(why, message);
	assert_memory_equal(&config, &before, sizeof(config));
}

static char *read_whole(const char *path)
{
	static char text[65536];
	FILE *file = fopen(path, "r");
	size_t bytes;

	assert_non_null(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[bytes] = '\0';
	return text;
}

static void defaults_are_what_the_documentation_promises(void **state)
{
	struct config config;

	config_init(&config);
	assert_int_equal(config.sampling.period_ns, 10000000);
	assert_int_equal(config.sampling.min_period_ns, 1000000);
	assert_int_equal(config.sampling.max_period_ns, 1000000000);
	assert_int_equal(config.sampling.threads, 1);
	assert_int_equal(config.sampling.cpu_budget_ppm, 100000);
	assert_int_equal(config.sampling.placement, CONFIG_PLACEMENT_AUTO);
	assert_string_equal(config.socket.path, "/run/cbox-profd/profd.sock");
	assert_int_equal(config.socket.mode, 0666);
	assert_int_equal(config.socket.max_line_bytes, 65536);
	assert_int_equal(config.limits.auto_max_ns, 60000000000);
	assert_int_equal(config.pool_count, 1);
	assert_string_equal(config.pools[0].fpm_pool, "*");
}

static void the_shipped_file_says_the_defaults(void **state)
{
	struct config defaults, shipped;

	config_init(&defaults);
	if (config_load(SHIPPED, &shipped, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	assert_memory_equal(&shipped, &defaults, sizeof(defaults));
}

static void a_file_with_nothing_in_it_means_the_defaults(void **state)
{
	const char *nothing[] = {
		"", "\n", "# only words\n", "---\n", "{}", "sampling:\n", "sampling: {}\npools:\n"};
	struct config defaults;

	config_init(&defaults);
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		struct config config = good(nothing[i]);

		assert_memory_equal(&config, &defaults, sizeof(config));
	}
}

/* The names behind "allowed:" in the refusal of @text each stand in @path, between @before and @after. */
static void names_stand_in(const char *text, const char *path, const char *before, const char *after)
{
	char names[512], wanted[128], *name, *rest = NULL;
	struct config config;
	const char *page;

	assert_int_equal(parse(text, &config), -EINVAL);
	assert_non_null(strstr(why, "allowed: "));
	snprintf(names, sizeof(names), "%s", strstr(why, "allowed: ") + strlen("allowed: "));
	page = read_whole(path);
	for (name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
		snprintf(wanted, sizeof(wanted), "%s%s%s", before, name, after);
		if (!strstr(page, wanted))
			fail_msg("%s does not explain %s", path, name);
	}
}

static void every_key_is_explained_in_the_shipped_file_and_in_the_documentation(void **state)
{
	const char *sections[] = {"sampling", "limits", "discovery", "socket", "trace"};

	names_stand_in("x: 1", SHIPPED, "\n", ":");
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		char text[64], before[64];

		snprintf(text, sizeof(text), "%s: {x: 1}", sections[i]);
		snprintf(before, sizeof(before), "`%s.", sections[i]);
		names_stand_in(text, SHIPPED, "", ": ");
		names_stand_in(text, PAGE, before, "`");
	}
	names_stand_in("pools: [{x: 1}]", SHIPPED, "", ":");
	names_stand_in("pools: [{x: 1}]", PAGE, "`pools[].", "`");
}

static void every_kind_of_value_is_read(void **state)
{
	struct config config =
		good("sampling:\n"
		     "  rate: 250\n"
		     "  max_rate: 1000\n"
		     "  max_depth: 1024\n"
		     "  realtime: false\n"
		     "  threads: 3\n"
		     "  cpu_budget: 12.5%\n"
		     "  placement: always\n"
		     "limits: {retained_bytes: 1GiB, retained_for: 2m, retained_units: 0, auto_max: 1h}\n"
		     "discovery: {interval: 10ms}\n"
		     "socket:\n"
		     "  path: '/tmp/a b.sock'\n"
		     "  mode: 0660\n"
		     "  group: www-data\n"
		     "  admin_group: \"1000\"\n"
		     "  max_line: 4096\n"
		     "  max_pending: 512KiB\n"
		     "trace: {traceparent: false}\n");

	assert_int_equal(config.sampling.period_ns, 4000000);
	assert_int_equal(config.sampling.min_period_ns, 1000000);
	assert_int_equal(config.sampling.max_depth, 1024);
	assert_false(config.sampling.realtime);
	assert_int_equal(config.sampling.threads, 3);
	assert_int_equal(config.sampling.cpu_budget_ppm, 125000);
	assert_int_equal(config.sampling.placement, CONFIG_PLACEMENT_ALWAYS);
	assert_int_equal(config.limits.retained_bytes, 1073741824);
	assert_int_equal(config.limits.retained_ns, 120000000000);
	assert_int_equal(config.limits.retained_units, 0);
	assert_int_equal(config.limits.auto_max_ns, 3600000000000);
	assert_int_equal(config.discovery.interval_ns, 10000000);
	assert_string_equal(config.socket.path, "/tmp/a b.sock");
	assert_int_equal(config.socket.mode, 0660);
	assert_string_equal(config.socket.group, "www-data");
	assert_string_equal(config.socket.admin_group, "1000");
	assert_int_equal(config.socket.max_line_bytes, 4096);
	assert_int_equal(config.socket.max_pending_bytes, 524288);
	assert_false(config.trace.traceparent);
}

static void a_rate_may_be_given_as_a_period(void **state)
{
	assert_int_equal(good("sampling: {period: 2500us}").sampling.period_ns, 2500000);
	assert_int_equal(good("sampling: {period: 1s}").sampling.period_ns, 1000000000);
	assert_int_equal(good("sampling: {rate: 1}").sampling.period_ns, 1000000000);
	assert_int_equal(good("sampling: {rate: 10000}").sampling.period_ns, 100000);
	bad("sampling:\n  rate: 100\n  period: 10ms\n",
		"f:3:3: sampling.period: rate is given too, in line 2; one of the two is allowed");
	bad("sampling:\n  period: 10ms\n  rate: 100\n",
		"f:3:3: sampling.rate: period is given too, in line 2; one of the two is allowed");
}

static void a_share_of_a_cpu_is_exact_to_a_millionth(void **state)
{
	assert_int_equal(good("sampling: {cpu_budget: 0.1%}").sampling.cpu_budget_ppm, 1000);
	assert_int_equal(good("sampling: {cpu_budget: 0.1001%}").sampling.cpu_budget_ppm, 1001);
	assert_int_equal(good("sampling: {cpu_budget: 7%}").sampling.cpu_budget_ppm, 70000);
	assert_int_equal(good("sampling: {cpu_budget: 007.50%}").sampling.cpu_budget_ppm, 75000);
	assert_int_equal(good("sampling: {cpu_budget: 100%}").sampling.cpu_budget_ppm, 1000000);
	assert_int_equal(good("sampling: {cpu_budget: 6400%}").sampling.cpu_budget_ppm, 64000000);
	assert_int_equal(good("sampling: {cpu_budget: none}").sampling.cpu_budget_ppm, 0);
}

static void a_share_that_is_not_allowed_is_refused(void **state)
{
	const char *wrong[] = {"0%", "0.0999%", "6400.0001%", "10", "0.1", "-1%", "1.%", ".5%", "1.00001%",
		"1.2.3%", "1 %", "5%%", "x%", "all", "99999999999999999999%", "None", "'5%'"};
	char text[96], message[256];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		bool is_quoted = wrong[i][0] == '\'';
		int bytes = (int)strlen(wrong[i]) - (is_quoted ? 2 : 0);

		snprintf(text, sizeof(text), "sampling:\n  cpu_budget: %s\n", wrong[i]);
		snprintf(message, sizeof(message),
			"f:2:15: sampling.cpu_budget: found \"%.*s\"%s; allowed: a share of one CPU from "
			"0.1%% to "
			"6400%%, with at most four decimals, or none",
			bytes, wrong[i] + is_quoted, is_quoted ? " in quotes" : "");
		bad(text, message);
	}
}

static void a_choice_is_one_of_its_words(void **state)
{
	assert_int_equal(good("sampling: {placement: auto}").sampling.placement, CONFIG_PLACEMENT_AUTO);
	assert_int_equal(good("sampling: {placement: never}").sampling.placement, CONFIG_PLACEMENT_NEVER);
	assert_int_equal(good("sampling: {placement: 'always'}").sampling.placement, CONFIG_PLACEMENT_ALWAYS);
	bad("sampling:\n  placement: 1\n",
		"f:2:14: sampling.placement: found \"1\"; allowed: auto, never or always");
	bad("sampling:\n  placement: Always\n",
		"f:2:14: sampling.placement: found \"Always\"; allowed: auto, never or always");
	bad("sampling:\n  placement: 'Always'\n",
		"f:2:14: sampling.placement: found \"Always\"; allowed: auto, never or always");
	bad("sampling:\n  placement:\n", "f:2:13: sampling.placement: found nothing; allowed: auto, never or "
					 "always");
	bad("sampling:\n  placement: [auto]\n",
		"f:2:14: sampling.placement: found a list; allowed: auto, never or always");
}

static void pools_are_read_in_their_order(void **state)
{
	struct config config = good("pools:\n"
				    "  - name: shop\n"
				    "    fpm_pool: \"shop-*\"\n"
				    "    rate: 500\n"
				    "  - {pid_file: /run/php/fpm.pid}\n"
				    "  - {name: one, master_pid: 4711, period: 1ms}\n"
				    "  - {executable: '/usr/bin/php8.*'}\n");

	assert_int_equal(config.pool_count, 4);
	assert_string_equal(config.pools[0].name, "shop");
	assert_string_equal(config.pools[0].fpm_pool, "shop-*");
	assert_int_equal(config.pools[0].period_ns, 2000000);
	assert_string_equal(config.pools[1].name, "");
	assert_string_equal(config.pools[1].fpm_pool, "");
	assert_string_equal(config.pools[1].pid_file, "/run/php/fpm.pid");
	assert_int_equal(config.pools[2].master_pid, 4711);
	assert_int_equal(config.pools[2].period_ns, 1000000);
	assert_string_equal(config.pools[3].executable, "/usr/bin/php8.*");
	assert_int_equal(good("pools: []").pool_count, 0);
}

static void a_pool_is_found_in_exactly_one_way(void **state)
{
	bad("pools:\n  - name: x\n", "f:2:5: pools[0]: found 0 of fpm_pool, master_pid, pid_file, "
				     "executable; allowed: exactly one");
	bad("pools:\n  - fpm_pool: a\n  - fpm_pool: b\n    pid_file: /x\n",
		"f:3:5: pools[1]: found 2 of fpm_pool, master_pid, pid_file, executable; allowed: exactly "
		"one");
	bad("pools:\n  - fpm_pool: ''\n",
		"f:2:15: pools[0].fpm_pool: found \"\"; allowed: a pattern with * ? [ ] of up to 255 bytes");
}

static void an_unknown_key_is_refused_where_it_stands(void **state)
{
	bad("samplin: {}\n",
		"f:1:1: unknown key \"samplin\"; allowed: sampling, limits, discovery, socket, trace, pools");
	bad("sampling:\n  rate: 100\n  rat: 100\n",
		"f:3:3: sampling: unknown key \"rat\"; allowed: rate, period, max_rate, max_depth, realtime, "
		"threads, cpu_budget, placement");
	bad("pools: [{pool: x}]\n",
		"f:1:10: pools[0]: unknown key \"pool\"; allowed: name, fpm_pool, master_pid, pid_file, "
		"executable, rate, period");
	bad("\"sampling\\0x\": {}", "f:1:1: unknown key \"sampling?x\"; allowed: sampling, limits, "
				    "discovery, socket, trace, pools");
	bad("? [a]\n: 1\n",
		"f:1:3: unknown key a list; allowed: sampling, limits, discovery, socket, trace, pools");
}

static void a_key_given_twice_is_refused_where_it_stands_again(void **state)
{
	bad("sampling:\n  rate: 100\n  rate: 100\n",
		"f:3:3: sampling.rate: given a second time; it stands in line 2 already");
	bad("trace: {}\nsocket: {}\ntrace: {}\n",
		"f:3:1: trace: given a second time; it stands in line 1 already");
	bad("pools: []\npools: []\n", "f:2:1: pools: given a second time; it stands in line 1 already");
}

static void a_value_of_the_wrong_kind_or_out_of_range_is_refused(void **state)
{
	bad("sampling: {rate: fast}",
		"f:1:18: sampling.rate: found \"fast\"; allowed: a whole number of Hz from 1 to 10000");
	bad("sampling:\n  rate: 0\n",
		"f:2:9: sampling.rate: found \"0\"; allowed: a whole number of Hz from 1 to 10000");
	bad("sampling: {rate: 10001}",
		"f:1:18: sampling.rate: found \"10001\"; allowed: a whole number of Hz from 1 to 10000");
	bad("sampling: {rate: '100'}", "f:1:18: sampling.rate: found \"100\" in quotes; allowed: a whole "
				       "number of Hz from 1 to 10000");
	bad("sampling: {rate: -1}",
		"f:1:18: sampling.rate: found \"-1\"; allowed: a whole number of Hz from 1 to 10000");
	bad("sampling: {rate: 99.5}",
		"f:1:18: sampling.rate: found \"99.5\"; allowed: a whole number of Hz from 1 to 10000");
	bad("sampling: {rate: 99999999999999999999}",
		"f:1:18: sampling.rate: found \"99999999999999999999\"; allowed: a whole "
		"number of Hz from 1 to 10000");
	bad("sampling: {rate: }",
		"f:1:18: sampling.rate: found nothing; allowed: a whole number of Hz from 1 to 10000");
	bad("sampling: {rate: [1]}",
		"f:1:18: sampling.rate: found a list; allowed: a whole number of Hz from 1 to 10000");
	bad("sampling: {rate: {}}", "f:1:18: sampling.rate: found a group of keys; allowed: a whole number "
				    "of Hz from 1 to 10000");
	bad("sampling: {period: 10}", "f:1:20: sampling.period: found \"10\"; allowed: a time from 100us to "
				      "1s, a whole number with "
				      "ns, us, ms, s, m, h");
	bad("sampling: {period: 99us}",
		"f:1:20: sampling.period: found \"99us\"; allowed: a time from 100us to 1s, a whole number "
		"with ns, us, ms, s, m, h");
	bad("sampling: {threads: 0}",
		"f:1:21: sampling.threads: found \"0\"; allowed: a whole number from 1 to 64");
	bad("sampling: {threads: 65}",
		"f:1:21: sampling.threads: found \"65\"; allowed: a whole number from 1 to 64");
	bad("sampling: {realtime: yes}", "f:1:22: sampling.realtime: found \"yes\"; allowed: true or false");
	bad("sampling: {realtime: 'true'}",
		"f:1:22: sampling.realtime: found \"true\" in quotes; allowed: true or false");
	bad("socket: {max_line: 64KB}",
		"f:1:20: socket.max_line: found \"64KB\"; allowed: a size from 4KiB to 1MiB, as a number of "
		"bytes or with KiB, MiB, GiB");
	bad("limits: {retained_bytes: 99999999999GiB}",
		"f:1:26: limits.retained_bytes: found \"99999999999GiB\"; allowed: a size from 0 to 4GiB, as "
		"a number of bytes "
		"or with KiB, MiB, GiB");
	bad("socket: {mode: 0888}",
		"f:1:16: socket.mode: found \"0888\"; allowed: an octal mode from 0000 to 0777");
	bad("socket: {mode: 7777}",
		"f:1:16: socket.mode: found \"7777\"; allowed: an octal mode from 0000 to 0777");
	bad("socket: {path: relative}",
		"f:1:16: socket.path: found \"relative\"; allowed: an absolute path of up to 107 bytes");
	bad("socket: {group: }", "f:1:17: socket.group: found nothing; allowed: the name or number of a "
				 "group, up to 63 bytes, or "
				 "\"\" for none");
	bad("socket: {group: 'a b'}", "f:1:17: socket.group: found \"a b\"; allowed: the name or number of a "
				      "group, up to 63 bytes, "
				      "or \"\" for none");
	bad("pools: [{executable: php}]",
		"f:1:22: pools[0].executable: found \"php\"; allowed: a pattern with * ? [ ] of up to 255 "
		"bytes that begins with / or *");
	bad("pools: x", "f:1:8: pools: found \"x\"; allowed: a list of groups of keys, or []");
	bad("pools: [x]", "f:1:9: pools[0]: found \"x\"; allowed: a group of the keys name, fpm_pool, "
			  "master_pid, pid_file, executable, "
			  "rate, period");
	bad("trace: on", "f:1:8: trace: found \"on\"; allowed: a group of the keys traceparent");
	bad("- a\n",
		"f:1:1: found a list; allowed: groups of keys, as in the file that comes with the program");
	bad("words", "f:1:1: found \"words\"; allowed: groups of keys, as in the file that comes with the "
		     "program");
}

static void a_path_that_does_not_fit_a_socket_address_is_refused(void **state)
{
	char text[256], path[128];
	struct config config;

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[107] = '\0';
	snprintf(text, sizeof(text), "socket: {path: %s}", path);
	config = good(text);
	assert_string_equal(config.socket.path, path);
	path[107] = 'x';
	path[108] = '\0';
	snprintf(text, sizeof(text), "socket: {path: %s}", path);
	assert_int_equal(parse(text, &config), -EINVAL);
}

static void what_only_two_keys_together_make_wrong_is_found(void **state)
{
	bad("sampling:\n  rate: 200\n  max_rate: 100\n",
		"f:2:9: sampling.rate: faster than sampling.max_rate; allowed: up to 100 Hz");
	bad("pools:\n  - fpm_pool: a\n    period: 1ms\nsampling: {max_rate: 100}\n",
		"f:3:13: pools[0].rate: faster than sampling.max_rate; allowed: up to 100 Hz");
	bad("socket:\n  max_clients: 10\n  max_clients_per_uid: 11\n",
		"f:3:24: socket.max_clients_per_uid: found 11; allowed: up to socket.max_clients, which is "
		"10");
}

static void a_default_gives_way_to_what_is_written_down(void **state)
{
	assert_int_equal(good("sampling: {max_rate: 50}").sampling.period_ns, 20000000);
	assert_int_equal(good("sampling: {rate: 5000}").sampling.min_period_ns, 200000);
	assert_int_equal(good("pools: [{fpm_pool: a, rate: 2000}]").sampling.min_period_ns, 500000);
	assert_int_equal(good("socket: {max_clients: 10}").socket.max_clients_per_uid, 10);
}

static void tabs_are_named_as_what_is_wrong(void **state)
{
	bad("sampling:\n\trate: 100\n", "f:2:1: a tab; indentation is spaces only");
	bad("# \xc3\xa4\nsampling:\n  \trate: 100\n", "f:3:3: a tab; indentation is spaces only");
}

static void what_is_not_yaml_is_refused_where_it_breaks(void **state)
{
	struct config config;

	assert_int_equal(parse("sampling: {rate: 1\n", &config), -EINVAL);
	assert_memory_equal(why, "f:2:1: not YAML: ", strlen("f:2:1: not YAML: "));
	assert_int_equal(parse("sampling:\n  rate: \"1\n", &config), -EINVAL);
	assert_memory_equal(why, "f:3:1: not YAML: ", strlen("f:3:1: not YAML: "));
	bad("trace: {}\nb: \xff\n",
		"f:2:4: not UTF-8 text: invalid leading UTF-8 octet; save the file as UTF-8");
}

static void a_second_document_is_refused(void **state)
{
	bad("trace: {}\n---\ntrace: {}\n", "f:2:1: a second document; allowed: one");
	bad("---\n---\n", "f:2:1: a second document; allowed: one");
}

static void aliases_anchors_and_tags_are_refused(void **state)
{
	bad("sampling: &a {rate: 100}\n", "f:1:11: an anchor (&); allowed: the value alone");
	bad("sampling: {rate: &a 100}\n", "f:1:18: an anchor (&); allowed: the value alone");
	bad("pools: &a []\n", "f:1:8: an anchor (&); allowed: the value alone");
	bad("sampling: {rate: *a}\n", "f:1:18: an alias (*); allowed: the value itself");
	bad("sampling: {rate: !!int 100}\n", "f:1:18: a tag (!); allowed: the value alone");
	bad("sampling: {<<: {rate: 1}}\n",
		"f:1:12: sampling: unknown key \"<<\"; allowed: rate, period, max_rate, max_depth, realtime, "
		"threads, cpu_budget, placement");
}

static void more_pools_than_allowed_are_refused(void **state)
{
	static char text[65536];
	struct config config;
	size_t length = (size_t)snprintf(text, sizeof(text), "pools:\n");

	for (int i = 0; i < CONFIG_MAX_POOLS; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "  - fpm_pool: p%d\n", i);
	config = good(text);
	assert_int_equal(config.pool_count, CONFIG_MAX_POOLS);
	assert_string_equal(config.pools[63].fpm_pool, "p63");
	snprintf(text + length, sizeof(text) - length, "  - fpm_pool: one too many\n");
	bad(text, "f:66:5: pools: more than 64 entries; allowed: up to 64");
}

static void messages_carry_no_bytes_that_a_terminal_would_obey(void **state)
{
	bad("sampling: {rate: \"\\e[31m\"}", "f:1:18: sampling.rate: found \"?[31m\" in quotes; allowed: a "
					     "whole number of Hz from 1 to 10000");
	bad("sampling: {rate: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}",
		"f:1:18: sampling.rate: found \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\"; allowed: a "
		"whole number of Hz from 1 to "
		"10000");
}

static void a_file_of_more_than_a_mebibyte_is_refused(void **state)
{
	char path[] = "/tmp/test-config-XXXXXX", expected[128];
	int fd = mkstemp(path);
	struct config config;

	assert_true(fd >= 0);
	for (int i = 0; i < CONFIG_MAX_FILE_BYTES / 1024; i++) {
		char line[1025];

		memset(line, '#', 1023);
		line[1023] = '\n';
		assert_int_equal(write(fd, line, 1024), 1024);
	}
	assert_int_equal(config_load(path, &config, why, sizeof(why)), 0);
	assert_int_equal(write(fd, "\n", 1), 1);
	assert_int_equal(config_load(path, &config, why, sizeof(why)), -EINVAL);
	snprintf(expected, sizeof(expected), "%s:1:1: more than 1048576 bytes; allowed: up to 1 MiB", path);
	assert_string_equal(why, expected);
	close(fd);
	unlink(path);
}

static void a_file_that_can_not_be_read_is_named_with_its_reason(void **state)
{
	struct config config;

	assert_int_equal(config_load("/nonexistent/c.yaml", &config, why, sizeof(why)), -ENOENT);
	assert_string_equal(why,
		"/nonexistent/c.yaml: can't be opened: No such file or directory; make one (an "
		"empty file means all defaults), or name another with --config");
	assert_int_equal(config_load("/tmp", &config, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "/tmp: is not a regular file");
}

static void a_fifo_is_refused_and_does_not_hang_the_reader(void **state)
{
	char path[64];
	struct config config;

	snprintf(path, sizeof(path), "/tmp/test-config-fifo-%d", getpid());
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(config_load(path, &config, why, sizeof(why)), -EINVAL);
	unlink(path);
	assert_int_equal(config_load("/dev/null", &config, why, sizeof(why)), 0);
}

static void no_mutilated_file_is_taken_without_reason_or_crashes_the_reader(void **state)
{
	static char text[65536], mutilated[65536];
	size_t bytes;

	snprintf(text, sizeof(text), "%s", read_whole(SHIPPED));
	bytes = strlen(text);
	srandom(1);
	for (int round = 0; round < 300; round++) {
		struct config config;
		size_t length = bytes;
		int r;

		memcpy(mutilated, text, bytes);
		for (int i = (int)(random() % 8); i >= 0; i--)
			mutilated[random() % (long)bytes] = (char)random();
		if (random() % 2)
			length = (size_t)random() % bytes;
		why[0] = '\0';
		r = config_parse(mutilated, length, "f", &config, why, sizeof(why));
		assert_true(r == 0 || r == -EINVAL);
		assert_int_equal(r == 0, why[0] == '\0');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_what_the_documentation_promises),
		cmocka_unit_test(the_shipped_file_says_the_defaults),
		cmocka_unit_test(a_file_with_nothing_in_it_means_the_defaults),
		cmocka_unit_test(every_key_is_explained_in_the_shipped_file_and_in_the_documentation),
		cmocka_unit_test(every_kind_of_value_is_read),
		cmocka_unit_test(a_rate_may_be_given_as_a_period),
		cmocka_unit_test(a_share_of_a_cpu_is_exact_to_a_millionth),
		cmocka_unit_test(a_share_that_is_not_allowed_is_refused),
		cmocka_unit_test(a_choice_is_one_of_its_words),
		cmocka_unit_test(pools_are_read_in_their_order),
		cmocka_unit_test(a_pool_is_found_in_exactly_one_way),
		cmocka_unit_test(an_unknown_key_is_refused_where_it_stands),
		cmocka_unit_test(a_key_given_twice_is_refused_where_it_stands_again),
		cmocka_unit_test(a_value_of_the_wrong_kind_or_out_of_range_is_refused),
		cmocka_unit_test(a_path_that_does_not_fit_a_socket_address_is_refused),
		cmocka_unit_test(what_only_two_keys_together_make_wrong_is_found),
		cmocka_unit_test(a_default_gives_way_to_what_is_written_down),
		cmocka_unit_test(tabs_are_named_as_what_is_wrong),
		cmocka_unit_test(what_is_not_yaml_is_refused_where_it_breaks),
		cmocka_unit_test(a_second_document_is_refused),
		cmocka_unit_test(aliases_anchors_and_tags_are_refused),
		cmocka_unit_test(more_pools_than_allowed_are_refused),
		cmocka_unit_test(messages_carry_no_bytes_that_a_terminal_would_obey),
		cmocka_unit_test(a_file_of_more_than_a_mebibyte_is_refused),
		cmocka_unit_test(a_file_that_can_not_be_read_is_named_with_its_reason),
		cmocka_unit_test(a_fifo_is_refused_and_does_not_hang_the_reader),
		cmocka_unit_test(no_mutilated_file_is_taken_without_reason_or_crashes_the_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
