/* SPDX-License-Identifier: MIT
 *
 * The daemon's socket as the other verbs use it: ask one thing, wait for its answer, with a deadline. See
 * docs/PROTOCOL.md.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"

#define CLIENT_DEFAULT_PATH "/run/cbox-profd/profd.sock"
#define CLIENT_PATH_VARIABLE "CBOX_PROFD_SOCKET"
/* The whole of one question and answer. */
#define CLIENT_TIMEOUT_NS (UINT64_C(10) * 1000 * 1000 * 1000)
/* A line longer than this, an answer larger than that: not believed to be the daemon's. */
#define CLIENT_MAX_LINE_BYTES ((size_t)4 * 1024 * 1024)
#define CLIENT_MAX_ANSWER_BYTES ((size_t)256 * 1024 * 1024)

enum {
	CLIENT_E_NO_DAEMON = 1, /* nothing listens there, or it is not the daemon, or it doesn't answer */
	CLIENT_E_FORBIDDEN,     /* the socket's mode, or the daemon, says no */
	CLIENT_E_REFUSED,       /* the daemon understood, and the answer is an error */
	CLIENT_E_NOT_FOUND,     /* the same, since the process, pool or unit is not there */
	CLIENT_E_BAD_PATH,      /* no socket can have this path */
};

struct daemon_client;

/* NULL: the path of the environment, else the default one. */
const char *daemon_client_path(const char *asked_for);

/* Connects and reads the greeting. 0 or CLIENT_E_*, with one line in @ret_why; -ENOMEM. */
int daemon_client_open(const char *path, uint64_t timeout_ns, struct daemon_client **ret_client,
	char *ret_why, size_t why_bytes);
void daemon_client_close(struct daemon_client *client);
DEFINE_CLEANUP(struct daemon_client, daemon_client_close)

/* The greeting's "version". */
const char *daemon_client_server_version(const struct daemon_client *client);

/* Asks @request (an object with a verb; stays the caller's) and gives the answer's result, and its text as
 * the daemon wrote it (numbers of 64 bits have all their digits only there); @ret_text may be NULL. Both are
 * owned by the caller. 0 or CLIENT_E_*, with one line in @ret_why; -ENOMEM. After CLIENT_E_NO_DAEMON the
 * connection is of no more use. */
int daemon_client_ask(struct daemon_client *client, const cJSON *request, cJSON **ret_result, char **ret_text,
	char *ret_why, size_t why_bytes);
