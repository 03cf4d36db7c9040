/* SPDX-License-Identifier: MIT
 *
 * The configuration in the terms of those who work by it: engine, discovery, service.
 */
#pragma once

#include <stddef.h>

#include "config/config.h"
#include "daemon/sampling/engine.h"
#include "daemon/sampling/selector.h"
#include "daemon/service/service.h"

struct daemon_settings {
	struct engine_options engine;
	struct service_options service;
	struct selector selectors[CONFIG_MAX_POOLS];
	size_t selector_count;
};

/* 0, or -EINVAL with one line in @ret_why: a group that isn't there. @ret_settings is untouched on failure.
 */
int daemon_settings_from(
	const struct config *config, struct daemon_settings *ret_settings, char *ret_why, size_t why_bytes);

/* Reads @path and translates it. 0, or a negative errno with one line in @ret_why. */
int daemon_settings_load(
	const char *path, struct daemon_settings *ret_settings, char *ret_why, size_t why_bytes);
