/* SPDX-License-Identifier: MIT
 *
 * One connection: bytes in become lines, lines out wait until they are read. Knows nothing of what the lines
 * say.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/export/export.h"
#include "daemon/service/authority.h"
#include "daemon/service/quota.h"

struct exchange;

struct client_limits {
	size_t line_bytes;    /* of one request, without its end of line */
	size_t pending_bytes; /* of answers the client has not read yet */
};

enum client_error {
	CLIENT_E_LINE_TOO_LONG = 1,
	CLIENT_E_NOT_READING, /* more would wait for it than it, or its user, may leave unread */
};

struct client {
	int fd; /* -1: it is gone and will be freed when nobody looks at it any more */
	struct peer peer;
	enum role role;
	struct quota_user *user;
	struct exchange *exchange; /* the request under way; NULL: none */
	bool input_ended;          /* it will send no more */
	bool leaving;       /* it gets what waits for it and is closed; what it sends is not looked at */
	bool is_ready;      /* complete lines may wait in its input */
	uint32_t watched;   /* the events epoll was asked for */
	uint64_t active_ns; /* of the last complete request, or the last time all was read */
	TAILQ_ENTRY(client) clients, ready;

	/* client.c's own */
	char *input;
	size_t input_start, input_end, input_room;
	struct text output;
	size_t output_sent;
	size_t charged_bytes; /* of output, to its user's quota */
};

TAILQ_HEAD(client_list, client);

/* A client of the connected non-blocking socket @fd, both owned by it from success on. @user is one
 * quota_connect(). */
int client_new(int fd, const struct peer *peer, struct quota_user *user, struct client **ret_client);

/* Closes the connection and returns what it had of its user's quota. The struct stays, with fd -1. */
void client_close(struct client *client);
void client_free(struct client *client);
DEFINE_CLEANUP(struct client, client_free)

/* Takes in what has arrived, as far as there is room for one line of the longest kind. 0 or a negative errno:
 * the connection is broken. The end of input is noted in client->input_ended. */
int client_read(struct client *client, const struct client_limits *limits);

/* The next complete line, without its end, valid until the next client_read(); it counts as consumed. 0 with
 * *ret_line, NULL when there is none; or CLIENT_E_LINE_TOO_LONG. */
int client_next_line(
	struct client *client, const struct client_limits *limits, const char **ret_line, size_t *ret_bytes);

/* Sends @lines, or keeps what the socket does not take; @lines is empty afterwards. 0, CLIENT_E_NOT_READING
 * or a negative errno: in both cases the connection is of no more use. */
int client_send(
	struct client *client, struct quota *quota, const struct client_limits *limits, struct text *lines);

/* Sends what waits, as far as the socket takes it. 0 or a negative errno. */
int client_flush(struct client *client);

size_t client_pending_bytes(const struct client *client);

/* Nothing is under way or waiting, and nothing will come. */
bool client_is_done(const struct client *client);

/* The events to ask epoll for. */
uint32_t client_wanted_events(const struct client *client);
