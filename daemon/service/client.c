/* SPDX-License-Identifier: MIT
 *
 * A connection's two buffers. What bounds them is that nothing is taken in while there is no use for it:
 * input is read only while no request is under way, and never beyond the longest line allowed, so a client
 * that sends faster than it is answered waits in send(), at its own cost. Output grows only by answers, up to
 * a limit of the connection and one of its user. Idle clients hold neither buffer.
 *
 * Which events are asked of epoll follows from the same states. EPOLLHUP can't be masked, so a client whose
 * connection is wholly gone is dropped at once even with a request under way; one that has only finished
 * sending
 * (`nc -N`) shows as an end of input and still gets its answers.
 */
#include "daemon/service/client.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define FIRST_INPUT_BYTES 4096

int client_new(int fd, const struct peer *peer, struct quota_user *user, struct client **ret_client)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->fd = fd;
	client->peer = *peer;
	client->user = user;
	*ret_client = client;
	return 0;
}

static void release_input(struct client *client)
{
	free(client->input);
	client->input = NULL;
	client->input_start = client->input_end = client->input_room = 0;
}

/* Pays back what is no longer pending. */
static void settle(struct client *client)
{
	size_t pending = client_pending_bytes(client);

	if (client->charged_bytes > pending) {
		quota_return_bytes(client->user, client->charged_bytes - pending);
		client->charged_bytes = pending;
	}
}

static void release_output(struct client *client)
{
	text_free(&client->output);
	client->output = (struct text){0};
	client->output_sent = 0;
	settle(client);
}

void client_close(struct client *client)
{
	if (client->fd < 0)
		return;
	release_input(client);
	release_output(client);
	quota_disconnect(client->user);
	client->user = NULL;
	close(client->fd);
	client->fd = -1;
}

void client_free(struct client *client)
{
	client_close(client);
	free(client);
}

/* Makes room for more input within @limits. 0, -ENOMEM, or CLIENT_E_LINE_TOO_LONG: as much as allowed is
 * there already (it may still be several lines). */
static int make_room(struct client *client, const struct client_limits *limits)
{
	size_t most = limits->line_bytes + 1, held = client->input_end - client->input_start, room;
	char *input;

	if (client->input_start > 0) {
		memmove(client->input, client->input + client->input_start, held);
		client->input_start = 0;
		client->input_end = held;
	}
	if (held < client->input_room)
		return 0;
	if (held >= most)
		return CLIENT_E_LINE_TOO_LONG;
	room = client->input_room ? client->input_room * 2 : FIRST_INPUT_BYTES;
	if (room > most)
		room = most;
	input = realloc(client->input, room);
	if (!input)
		return -ENOMEM;
	client->input = input;
	client->input_room = room;
	return 0;
}

int client_read(struct client *client, const struct client_limits *limits)
{
	int error;

	while (!(error = make_room(client, limits))) {
		ssize_t count = recv(client->fd, client->input + client->input_end,
			client->input_room - client->input_end, MSG_DONTWAIT);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno != EAGAIN)
			return -errno;
		if (count <= 0) {
			client->input_ended |= count == 0;
			break;
		}
		client->input_end += (size_t)count;
	}
	if (client->input_end == client->input_start)
		release_input(client);
	return error < 0 ? error : 0;
}

int client_next_line(
	struct client *client, const struct client_limits *limits, const char **ret_line, size_t *ret_bytes)
{
	size_t held = client->input_end - client->input_start;
	const char *line = held ? client->input + client->input_start : NULL;
	const char *end = held ? memchr(line, '\n', held) : NULL;
	size_t bytes = end ? (size_t)(end - line) : held;

	if (bytes > limits->line_bytes)
		return CLIENT_E_LINE_TOO_LONG;
	if (end)
		client->input_start += bytes + 1;
	*ret_line = end ? line : NULL;
	*ret_bytes = bytes;
	return 0;
}

size_t client_pending_bytes(const struct client *client)
{
	return client->output.length - client->output_sent;
}

int client_flush(struct client *client)
{
	while (client_pending_bytes(client) > 0) {
		ssize_t count = send(client->fd, client->output.bytes + client->output_sent,
			client_pending_bytes(client), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno == EAGAIN)
			break;
		if (count < 0)
			return -errno;
		client->output_sent += (size_t)count;
	}
	if (client_pending_bytes(client) == 0)
		release_output(client);
	settle(client);
	return 0;
}

int client_send(
	struct client *client, struct quota *quota, const struct client_limits *limits, struct text *lines)
{
	size_t pending;
	int error;

	if (client_pending_bytes(client) == 0) {
		release_output(client);
		client->output = *lines;
		*lines = (struct text){0};
	} else {
		text_append_bytes(&client->output, lines->bytes, lines->length);
		text_free(lines);
		*lines = (struct text){0};
	}
	if (client->output.error)
		return client->output.error;
	error = client_flush(client);
	if (error)
		return error;
	pending = client_pending_bytes(client);
	if (pending > limits->pending_bytes ||
		!quota_take_bytes(quota, client->user, pending - client->charged_bytes))
		return CLIENT_E_NOT_READING;
	client->charged_bytes = pending;
	return 0;
}

bool client_is_done(const struct client *client)
{
	return (client->input_ended || client->leaving) && !client->exchange && !client->is_ready &&
	       client_pending_bytes(client) == 0;
}

uint32_t client_wanted_events(const struct client *client)
{
	uint32_t events = 0;

	if (client_pending_bytes(client) > 0)
		events |= EPOLLOUT;
	if (!client->exchange && !client->is_ready && !client->input_ended && !client->leaving)
		events |= EPOLLIN;
	return events;
}
