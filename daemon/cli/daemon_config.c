/* SPDX-License-Identifier: MIT
 *
 * The one place that knows the configuration's words and the rooms' at once. config/ knows none of the rooms,
 * and none of them knows that there is a file. Group names become numbers here: the service compares numbers.
 */
#include "daemon/cli/daemon_config.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_BUFFER_BYTES 65536 /* a group's entry with all its members */

static enum placement placement_from(enum config_placement placement)
{
	switch (placement) {
	case CONFIG_PLACEMENT_NEVER:
		return PLACEMENT_NEVER;
	case CONFIG_PLACEMENT_ALWAYS:
		return PLACEMENT_ALWAYS;
	case CONFIG_PLACEMENT_AUTO:
		break;
	}
	return PLACEMENT_AUTO;
}

static struct engine_options engine_options_from(const struct config *config)
{
	return (struct engine_options){
		.period_ns = config->sampling.period_ns,
		.min_period_ns = config->sampling.min_period_ns,
		.max_period_ns = config->sampling.max_period_ns,
		.max_depth = config->sampling.max_depth,
		.max_targets = config->limits.max_targets,
		.max_frames = config->limits.max_frames,
		.max_nodes = config->limits.max_nodes,
		.retained_units = config->limits.retained_units,
		.retained_bytes = config->limits.retained_bytes,
		.retained_ns = config->limits.retained_ns,
		.auto_max_ns = config->limits.auto_max_ns,
		.discovery_interval_ns = config->discovery.interval_ns,
		.threads = config->sampling.threads,
		.cpu_budget_ppm = config->sampling.cpu_budget_ppm,
		.placement = placement_from(config->sampling.placement),
		.realtime = config->sampling.realtime,
		.trust_traceparent = config->trace.traceparent,
	};
}

/* "" is none, digits are a number, anything else a name. */
static int group_from(const char *key, const char *name, gid_t *ret_group, char *ret_why, size_t why_bytes)
{
	char buffer[GROUP_BUFFER_BYTES], *end;
	struct group group, *found = NULL;
	unsigned long number;
	int error;

	if (!name[0]) {
		*ret_group = (gid_t)-1;
		return 0;
	}
	errno = 0;
	number = strtoul(name, &end, 10);
	if (!*end && !errno && number < (gid_t)-1) {
		*ret_group = (gid_t)number;
		return 0;
	}
	error = getgrnam_r(name, &group, buffer, sizeof(buffer), &found);
	if (!found) {
		snprintf(ret_why, why_bytes,
			"socket.%s: no group is called \"%s\"%s%s; make it with groupadd, or name another",
			key, name, error ? ": " : "", error ? strerror(error) : "");
		return -EINVAL;
	}
	*ret_group = found->gr_gid;
	return 0;
}

static int service_options_from(
	const struct config *config, struct service_options *ret_options, char *ret_why, size_t why_bytes)
{
	struct service_options options = {
		.mode = config->socket.mode,
		.max_clients = config->socket.max_clients,
		.max_clients_per_uid = config->socket.max_clients_per_uid,
		.requests_per_second_per_uid = config->socket.requests_per_second_per_uid,
		.max_line_bytes = config->socket.max_line_bytes,
		.max_pending_bytes = config->socket.max_pending_bytes,
		.idle_timeout_ns = config->socket.idle_timeout_ns,
		.sampling = engine_options_from(config),
	};
	int r;

	memcpy(options.path, config->socket.path, sizeof(options.path));
	r = group_from("group", config->socket.group, &options.group, ret_why, why_bytes);
	if (r < 0)
		return r;
	r = group_from("admin_group", config->socket.admin_group, &options.admin_group, ret_why, why_bytes);
	if (r < 0)
		return r;
	*ret_options = options;
	return 0;
}

static struct selector selector_from(const struct config_pool *pool)
{
	struct selector selector = {.period_ns = pool->period_ns, .pid = pool->master_pid};
	const char *pattern = "";

	if (pool->fpm_pool[0]) {
		selector.kind = SELECT_FPM_POOL;
		pattern = pool->fpm_pool;
	} else if (pool->pid_file[0]) {
		selector.kind = SELECT_PID_FILE;
		pattern = pool->pid_file;
	} else if (pool->executable[0]) {
		selector.kind = SELECT_EXECUTABLE;
		pattern = pool->executable;
	} else {
		selector.kind = SELECT_FPM_MASTER;
	}
	snprintf(selector.pattern, sizeof(selector.pattern), "%s", pattern);
	snprintf(selector.pool, sizeof(selector.pool), "%s", pool->name);
	return selector;
}

int daemon_settings_from(
	const struct config *config, struct daemon_settings *ret_settings, char *ret_why, size_t why_bytes)
{
	struct daemon_settings settings = {
		.engine = engine_options_from(config), .selector_count = config->pool_count};
	int r;

	r = service_options_from(config, &settings.service, ret_why, why_bytes);
	if (r < 0)
		return r;
	for (size_t i = 0; i < config->pool_count; i++)
		settings.selectors[i] = selector_from(&config->pools[i]);
	*ret_settings = settings;
	return 0;
}

int daemon_settings_load(
	const char *path, struct daemon_settings *ret_settings, char *ret_why, size_t why_bytes)
{
	struct config config;
	char why[512];
	int r;

	r = config_load(path, &config, ret_why, why_bytes);
	if (r < 0)
		return r;
	r = daemon_settings_from(&config, ret_settings, why, sizeof(why));
	if (r < 0)
		snprintf(ret_why, why_bytes, "%s: %s", path, why);
	return r;
}
