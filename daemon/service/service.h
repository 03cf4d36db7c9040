/* SPDX-License-Identifier: MIT
 *
 * The socket: clients, protocol, roles and quotas. One thread, epoll; it owns its clients and nothing of the
 * engine's. See docs/PROTOCOL.md for what is said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "daemon/sampling/engine.h"

struct service_options {
	char path[108];
	gid_t group;       /* (gid_t)-1: none */
	gid_t admin_group; /* (gid_t)-1: none */
	mode_t mode;
	uint32_t max_clients, max_clients_per_uid;
	uint32_t requests_per_second_per_uid;
	uint32_t max_line_bytes, max_pending_bytes;
	uint64_t idle_timeout_ns;
	struct engine_options sampling; /* the engine's, for `status` to tell */
};

/* What the service asks of the program it is part of. */
struct service_hooks {
	/* Reads the configuration again. 0, or a negative errno with the reason. */
	int (*reload)(void *context, char *ret_why, size_t why_bytes);
	void *context;
};

struct service;

/* @listen_fd: an inherited listening socket (LISTEN_FDS), owned by the service from now on; -1: it makes its
 * own at options->path, after checking the directory. One line in @ret_why on failure. */
int service_new(const struct service_options *options, const struct service_hooks *hooks,
	struct engine *engine, int listen_fd, struct service **ret_service, char *ret_why, size_t why_bytes);

/* Serves until service_stop(). Blocks; call it from the service's own thread. */
int service_run(struct service *service); /* 0, or the negative errno that ended it */

/* From any thread or a signal handler's fd: stops accepting, answers what was asked (at most 1 s), returns
 * from service_run(). */
void service_stop(struct service *service);

/* From any thread: takes new limits and groups; path, mode and descriptors stay. */
void service_reconfigure(struct service *service, const struct service_options *options);

/* After engine_stop(), so that all orders are back; before it, this waits up to a second for them. */
void service_free(struct service *service);
DEFINE_CLEANUP(struct service, service_free)
