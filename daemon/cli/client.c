/* SPDX-License-Identifier: MIT
 *
 * A blocking client with a deadline: the descriptor is non-blocking, and each wait is a poll() for what is
 * left of the time. It believes nothing of what it is told: lines and answers are bounded, and an answer must
 * be an object with the question's id.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/cli/client.h"
#include "daemon/export/export.h"
#include "daemon/export/json.h"
#include "daemon/sampling/clock.h"

struct daemon_client {
	int fd;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	uint64_t timeout_ns;
	uint64_t deadline_ns; /* of the question under way */
	bool greeted;
	uint64_t last_id;
	char server_version[32];
	struct text received; /* what arrived and is not a finished line yet */
	size_t line_bytes;    /* of it, the line given out last: dropped with the next read */
};

__attribute__((format(printf, 4, 5))) static int fail(
	int error, char *ret_why, size_t why_bytes, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ret_why, why_bytes, format, arguments);
	va_end(arguments);
	return error;
}

const char *daemon_client_path(const char *asked_for)
{
	const char *from_environment = getenv(CLIENT_PATH_VARIABLE);

	if (asked_for)
		return asked_for;
	return from_environment && from_environment[0] ? from_environment : CLIENT_DEFAULT_PATH;
}

/* Waits until the descriptor can be read or written. false: the deadline came first. */
static bool wait_for(const struct daemon_client *client, short events)
{
	struct pollfd pollfd = {.fd = client->fd, .events = events};

	for (;;) {
		uint64_t now = monotonic_now_ns();

		if (now >= client->deadline_ns)
			return false;
		int r = poll(&pollfd, 1, (int)((client->deadline_ns - now) / 1000000) + 1);
		if (r > 0)
			return true;
		if (r < 0 && errno != EINTR)
			return false;
	}
}

static int no_answer(const struct daemon_client *client, char *ret_why, size_t why_bytes)
{
	if (!client->greeted)
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
			"%s: somebody listens there and did not answer within %.3g s: a daemon that hangs, "
			"or "
			"another program; ss -lxp says which, restart it or name another socket with "
			"--socket",
			client->path, (double)client->timeout_ns / 1e9);
	return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
		"%s: the daemon is there but did not answer within %.3g s: it hangs or has too much to do; "
		"its "
		"log may say why, or restart it",
		client->path, (double)client->timeout_ns / 1e9);
}

static int send_all(
	struct daemon_client *client, const char *bytes, size_t length, char *ret_why, size_t why_bytes)
{
	while (length > 0) {
		ssize_t sent = send(client->fd, bytes, length, MSG_NOSIGNAL);

		if (sent >= 0) {
			bytes += sent;
			length -= (size_t)sent;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
				"%s: the daemon closed the connection: %s", client->path, strerror(errno));
		if (!wait_for(client, POLLOUT))
			return no_answer(client, ret_why, why_bytes);
	}
	return 0;
}

/* The next line, without its end, valid until the next call. */
static int read_line(struct daemon_client *client, const char **ret_line, char *ret_why, size_t why_bytes)
{
	struct text *received = &client->received;
	size_t looked_at = 0;
	char buffer[64 * 1024];

	if (client->line_bytes > 0) {
		received->length -= client->line_bytes;
		memmove(received->bytes, received->bytes + client->line_bytes, received->length);
		client->line_bytes = 0;
	}
	for (;;) {
		char *end = received->length > looked_at
				    ? memchr(received->bytes + looked_at, '\n', received->length - looked_at)
				    : NULL;

		if (end) {
			*end = 0;
			*ret_line = received->bytes;
			client->line_bytes = (size_t)(end - received->bytes) + 1;
			return 0;
		}
		looked_at = received->length;
		if (received->length > CLIENT_MAX_LINE_BYTES)
			return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
				"%s: a line without end: this is not cbox-profd", client->path);
		ssize_t got = recv(client->fd, buffer, sizeof(buffer), 0);
		if (got > 0)
			text_append_bytes(received, buffer, (size_t)got);
		else if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
				"%s: the connection was closed before the answer; %s", client->path,
				client->greeted ? "is the daemon stopping?"
						: "is the daemon stopping, or is this another program's "
						  "socket?");
		else if (errno == EAGAIN && !wait_for(client, POLLIN))
			return no_answer(client, ret_why, why_bytes);
		if (received->error < 0)
			return received->error;
	}
}

static int connect_to(const char *path, int *ret_fd, char *ret_why, size_t why_bytes)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return fail(CLIENT_E_BAD_PATH, ret_why, why_bytes,
			"%s: a socket's path has at most %zu bytes, this one has %zu", path,
			sizeof(address.sun_path) - 1, strlen(path));
	memcpy(address.sun_path, path, strlen(path) + 1);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes, "no socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == EACCES || errno == EPERM)
			return fail(CLIENT_E_FORBIDDEN, ret_why, why_bytes,
				"%s: not permitted; run as root, or as a member of the socket's group "
				"(socket.group)",
				path);
		if (errno == EAGAIN)
			return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
				"%s: the daemon is there but accepts nobody: it hangs; restart it", path);
		if (errno == EPROTOTYPE)
			return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
				"%s: this is not cbox-profd's socket; name its own with --socket", path);
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
			"%s: no daemon answers there (%s); start it: systemctl start cbox-profd, or "
			"cbox-profd "
			"daemon; or name its socket with --socket",
			path, strerror(errno));
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* What the daemon says about an error, as our own. */
static int told_error(const cJSON *answer, char *ret_why, size_t why_bytes)
{
	const cJSON *error = cJSON_GetObjectItemCaseSensitive(answer, "error");
	const cJSON *message = cJSON_GetObjectItemCaseSensitive(answer, "message");
	const char *name = cJSON_IsString(error) ? error->valuestring : "an error without a name";

	const char *words = cJSON_IsString(message) ? message->valuestring : "(it does not say why)";

	if (strcmp(name, "not_found") == 0 || strcmp(name, "not_a_target") == 0)
		return fail(CLIENT_E_NOT_FOUND, ret_why, why_bytes, "%s", words);
	if (strcmp(name, "refused") == 0)
		return fail(CLIENT_E_REFUSED, ret_why, why_bytes, "the daemon refuses: %s", words);
	fail(0, ret_why, why_bytes, "the daemon refuses: %s: %s", name, words);
	return strcmp(name, "forbidden") == 0 ? CLIENT_E_FORBIDDEN : CLIENT_E_REFUSED;
}

static int greet(struct daemon_client *client, char *ret_why, size_t why_bytes)
{
	const char *line;
	const cJSON *protocol;
	bool speaks_1 = false;

	client->deadline_ns = monotonic_now_ns() + client->timeout_ns;
	int r = read_line(client, &line, ret_why, why_bytes);
	if (r != 0)
		return r;
	_cleanup_(cJSON_Deletep) cJSON *hello = cJSON_Parse(line);
	if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(hello, "ok")))
		return told_error(hello, ret_why, why_bytes);
	const cJSON *program = cJSON_GetObjectItemCaseSensitive(hello, "hello");
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(hello, "version");
	if (!cJSON_IsString(program) || strcmp(program->valuestring, "cbox-profd") != 0 ||
		!cJSON_IsString(version))
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
			"%s: who answers there is not cbox-profd; name its socket with --socket",
			client->path);
	cJSON_ArrayForEach(protocol, cJSON_GetObjectItemCaseSensitive(hello, "protocols"))
	{
		speaks_1 |= cJSON_IsNumber(protocol) && protocol->valueint == 1;
	}
	client->greeted = true;
	snprintf(client->server_version, sizeof(client->server_version), "%s", version->valuestring);
	if (!speaks_1)
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
			"%s: daemon %s does not speak protocol 1, which is what this program speaks; "
			"install the same version of both",
			client->path, client->server_version);
	return 0;
}

int daemon_client_open(const char *path, uint64_t timeout_ns, struct daemon_client **ret_client,
	char *ret_why, size_t why_bytes)
{
	_cleanup_(daemon_client_closep) struct daemon_client *client = calloc(1, sizeof(*client));

	if (!client)
		return fail(-ENOMEM, ret_why, why_bytes, "no memory");
	client->timeout_ns = timeout_ns;
	client->fd = -1;
	int r = connect_to(path, &client->fd, ret_why, why_bytes);
	if (r != 0)
		return r;
	memcpy(client->path, path, strlen(path) + 1);
	r = greet(client, ret_why, why_bytes);
	if (r != 0)
		return r;
	*ret_client = TAKE(client);
	return 0;
}

void daemon_client_close(struct daemon_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	text_free(&client->received);
	free(client);
}

const char *daemon_client_server_version(const struct daemon_client *client)
{
	return client->server_version;
}

static int send_request(struct daemon_client *client, const cJSON *request, char *ret_why, size_t why_bytes)
{
	_cleanup_(cJSON_Deletep) cJSON *with_id = cJSON_Duplicate(request, true);

	if (!json_add_count(with_id, "id", ++client->last_id))
		return fail(-ENOMEM, ret_why, why_bytes, "no memory");
	_cleanup_free_ char *line = cJSON_PrintUnformatted(with_id);
	if (!line)
		return fail(-ENOMEM, ret_why, why_bytes, "no memory");
	/* The terminator's place serves for the line's end. */
	size_t length = strlen(line);
	line[length] = '\n';
	return send_all(client, line, length + 1, ret_why, why_bytes);
}

/* Adds one line of the answer to @whole. 0 and *ret_more, or an error. */
static int receive_piece(
	struct daemon_client *client, struct text *whole, bool *ret_more, char *ret_why, size_t why_bytes)
{
	const char *line = "";

	int r = read_line(client, &line, ret_why, why_bytes);
	if (r != 0)
		return r;
	_cleanup_(cJSON_Deletep) cJSON *answer = cJSON_Parse(line);
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(answer, "id");
	const cJSON *chunk = cJSON_GetObjectItemCaseSensitive(answer, "chunk");
	/* An error that concerns the connection itself belongs to no question. */
	bool is_answer = cJSON_IsNumber(id) ? id->valuedouble == (double)client->last_id
					    : cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(answer, "ok"));

	if (!is_answer)
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
			"%s: not an answer to what was asked; is this cbox-profd?", client->path);
	const char *piece = cJSON_IsString(chunk) ? chunk->valuestring : line;
	*ret_more = cJSON_IsString(chunk) && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "more"));
	size_t length = strlen(piece);
	if (whole->length + length > CLIENT_MAX_ANSWER_BYTES)
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
			"%s: an answer without end: this is not cbox-profd", client->path);
	text_append_bytes(whole, piece, length);
	return whole->error == 0 ? 0 : fail(whole->error, ret_why, why_bytes, "no memory");
}

/* The text of the member "result" of @object, which cJSON has found to be an object; what may stand behind it
 * is not looked at. */
static char *result_text(const char *object)
{
	const char *begin = NULL;
	bool key_comes = true, is_result = false;
	int depth = 0;

	for (const char *at = object; *at; at++) {
		if (*at == '"') {
			const char *string = at + 1;

			for (at++; *at != '"'; at++)
				at += *at == '\\';
			is_result = depth == 1 && key_comes && at - string == 6 &&
				    memcmp(string, "result", 6) == 0;
			key_comes = false;
		} else if (*at == ':' && is_result) {
			begin = at + 1;
			is_result = false;
		} else if (*at == '{' || *at == '[') {
			depth++;
		} else if (*at == '}' || *at == ']') {
			if (--depth == 0)
				return begin ? strndup(begin, (size_t)(at - begin)) : NULL;
		} else if (*at == ',' && depth == 1) {
			if (begin)
				return strndup(begin, (size_t)(at - begin));
			key_comes = true;
		}
	}
	return NULL;
}

int daemon_client_ask(struct daemon_client *client, const cJSON *request, cJSON **ret_result, char **ret_text,
	char *ret_why, size_t why_bytes)
{
	_cleanup_text_ struct text whole = {0};
	bool more = true;

	client->deadline_ns = monotonic_now_ns() + client->timeout_ns;
	int r = send_request(client, request, ret_why, why_bytes);
	while (r == 0 && more)
		r = receive_piece(client, &whole, &more, ret_why, why_bytes);
	if (r != 0)
		return r;
	if (!whole.bytes)
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes, "%s: an empty answer", client->path);
	_cleanup_(cJSON_Deletep) cJSON *answer = cJSON_Parse(whole.bytes);
	if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(answer, "ok")))
		return told_error(answer, ret_why, why_bytes);
	_cleanup_(cJSON_Deletep) cJSON *result = cJSON_DetachItemFromObjectCaseSensitive(answer, "result");
	if (!result)
		return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes, "%s: an answer without a result",
			client->path);
	if (ret_text) {
		char *text = result_text(whole.bytes);

		if (!text)
			return fail(CLIENT_E_NO_DAEMON, ret_why, why_bytes,
				"%s: the text of the result can't be had; is this cbox-profd?", client->path);
		*ret_text = text;
	}
	*ret_result = TAKE(result);
	return 0;
}
