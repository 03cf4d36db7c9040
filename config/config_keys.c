/* SPDX-License-Identifier: MIT
 *
 * The table of keys and the default of each. A new setting is a line in the table, a line in config_init(), a
 * paragraph in the shipped file and in docs/CONFIGURATION.md; tests compare them.
 */
#include "config/config_keys.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"

#define NS_PER_SECOND 1000000000ull
#define NS_PER_MS 1000000ull
#define NS_PER_DAY (NS_PER_SECOND * 3600 * 24)
#define PPM_PER_PERCENT 10000ull
#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

enum {
	PID_MAX_LIMIT = 4194304, /* of 64-bit kernels */
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define KEY(key_name, key_kind, type, member, key_min, key_max, other)                             \
	{                                                                                          \
		.name = (key_name), .kind = (key_kind), .offset = offsetof(struct type, member),   \
		.size = sizeof(((struct type *)NULL)->member), .min = (key_min), .max = (key_max), \
		.excludes = (other),                                                               \
	}
#define SETTING(name, kind, member, min, max) KEY(name, kind, config, member, min, max, NULL)
#define CHOICE(key_name, member, words)                                                               \
	{                                                                                             \
		.name = (key_name), .kind = CONFIG_CHOICE, .offset = offsetof(struct config, member), \
		.size = sizeof(((struct config *)NULL)->member), .choices = (words),                  \
	}
#define SECTION(section, table)                                                   \
	{                                                                         \
		.name = (section), .keys = (table), .key_count = COUNT_OF(table), \
	}

/* By enum config_placement. */
static const char *const placements[] = {"auto", "never", "always", NULL};

static const struct config_key sampling_keys[] = {
	KEY("rate", CONFIG_RATE, config, sampling.period_ns, 1, CONFIG_MAX_RATE_HZ, "period"),
	KEY("period", CONFIG_DURATION, config, sampling.period_ns, NS_PER_SECOND / CONFIG_MAX_RATE_HZ,
		CONFIG_MAX_PERIOD_NS, "rate"),
	SETTING("max_rate", CONFIG_RATE, sampling.min_period_ns, 1, CONFIG_MAX_RATE_HZ),
	SETTING("max_depth", CONFIG_COUNT, sampling.max_depth, 1, CONFIG_MAX_DEPTH),
	SETTING("realtime", CONFIG_BOOL, sampling.realtime, 0, 0),
	SETTING("threads", CONFIG_COUNT, sampling.threads, 1, CONFIG_MAX_THREADS),
	SETTING("cpu_budget", CONFIG_SHARE, sampling.cpu_budget_ppm, PPM_PER_PERCENT / 10,
		100 * PPM_PER_PERCENT * CONFIG_MAX_THREADS),
	CHOICE("placement", sampling.placement, placements),
};

static const struct config_key limits_keys[] = {
	SETTING("max_targets", CONFIG_COUNT, limits.max_targets, 1, 8192),
	SETTING("max_frames", CONFIG_COUNT, limits.max_frames, 256, 1048576),
	SETTING("max_nodes", CONFIG_COUNT, limits.max_nodes, 64, 1048576),
	SETTING("retained_units", CONFIG_COUNT, limits.retained_units, 0, 4096),
	SETTING("retained_bytes", CONFIG_SIZE64, limits.retained_bytes, 0, 4 * GIB),
	SETTING("retained_for", CONFIG_DURATION, limits.retained_ns, 0, NS_PER_DAY),
	SETTING("auto_max", CONFIG_DURATION, limits.auto_max_ns, NS_PER_SECOND, NS_PER_DAY),
};

static const struct config_key discovery_keys[] = {
	SETTING("interval", CONFIG_DURATION, discovery.interval_ns, 5 * NS_PER_MS, 60 * NS_PER_SECOND),
};

static const struct config_key socket_keys[] = {
	SETTING("path", CONFIG_PATH, socket.path, 0, 0),
	SETTING("mode", CONFIG_MODE, socket.mode, 0, 0),
	SETTING("group", CONFIG_GROUP, socket.group, 0, 0),
	SETTING("admin_group", CONFIG_GROUP, socket.admin_group, 0, 0),
	SETTING("max_clients", CONFIG_COUNT, socket.max_clients, 1, 16384),
	SETTING("max_clients_per_uid", CONFIG_COUNT, socket.max_clients_per_uid, 1, 16384),
	SETTING("requests_per_second_per_uid", CONFIG_COUNT, socket.requests_per_second_per_uid, 1, 1000000),
	SETTING("max_line", CONFIG_SIZE32, socket.max_line_bytes, 4 * KIB, 1 * MIB),
	SETTING("max_pending", CONFIG_SIZE32, socket.max_pending_bytes, 512 * KIB, 256 * MIB),
	SETTING("idle_timeout", CONFIG_DURATION, socket.idle_timeout_ns, NS_PER_SECOND, 3600 * NS_PER_SECOND),
};

static const struct config_key trace_keys[] = {
	SETTING("traceparent", CONFIG_BOOL, trace.traceparent, 0, 0),
};

static const struct config_key pool_keys[] = {
	KEY("name", CONFIG_NAME, config_pool, name, 0, 0, NULL),
	KEY("fpm_pool", CONFIG_GLOB, config_pool, fpm_pool, 0, 0, NULL),
	KEY("master_pid", CONFIG_PID, config_pool, master_pid, 1, PID_MAX_LIMIT, NULL),
	KEY("pid_file", CONFIG_PATH, config_pool, pid_file, 0, 0, NULL),
	KEY("executable", CONFIG_PATH_GLOB, config_pool, executable, 0, 0, NULL),
	KEY("rate", CONFIG_RATE, config_pool, period_ns, 1, CONFIG_MAX_RATE_HZ, "period"),
	KEY("period", CONFIG_DURATION, config_pool, period_ns, NS_PER_SECOND / CONFIG_MAX_RATE_HZ,
		CONFIG_MAX_PERIOD_NS, "rate"),
};

const struct config_section config_sections[] = {
	SECTION("sampling", sampling_keys),
	SECTION("limits", limits_keys),
	SECTION("discovery", discovery_keys),
	SECTION("socket", socket_keys),
	SECTION("trace", trace_keys),
};
const size_t config_section_count = COUNT_OF(config_sections);

const struct config_section config_pool_section = SECTION("pools", pool_keys);

void config_init(struct config *ret_config)
{
	memset(ret_config, 0, sizeof(*ret_config));
	ret_config->sampling.period_ns = NS_PER_SECOND / 100;
	ret_config->sampling.min_period_ns = NS_PER_SECOND / 1000;
	ret_config->sampling.max_period_ns = CONFIG_MAX_PERIOD_NS;
	ret_config->sampling.max_depth = 512;
	ret_config->sampling.realtime = true;
	ret_config->sampling.threads = 1;
	ret_config->sampling.cpu_budget_ppm = 10 * PPM_PER_PERCENT;
	ret_config->limits.max_targets = 1024;
	ret_config->limits.max_frames = 65536;
	ret_config->limits.max_nodes = 16384;
	ret_config->limits.retained_units = 4096;
	ret_config->limits.retained_bytes = 8 * MIB;
	ret_config->limits.retained_ns = 60 * NS_PER_SECOND;
	ret_config->limits.auto_max_ns = 60 * NS_PER_SECOND;
	ret_config->discovery.interval_ns = 20 * NS_PER_MS;
	snprintf(ret_config->socket.path, sizeof(ret_config->socket.path), "/run/cbox-profd/profd.sock");
	ret_config->socket.mode = 0666;
	ret_config->socket.max_clients = 1024;
	ret_config->socket.max_clients_per_uid = 512;
	ret_config->socket.requests_per_second_per_uid = 10000;
	ret_config->socket.max_line_bytes = (uint32_t)(64 * KIB);
	ret_config->socket.max_pending_bytes = (uint32_t)(8 * MIB);
	ret_config->socket.idle_timeout_ns = 60 * NS_PER_SECOND;
	ret_config->trace.traceparent = true;
	snprintf(ret_config->pools[0].fpm_pool, sizeof(ret_config->pools[0].fpm_pool), "*");
	ret_config->pool_count = 1;
}
