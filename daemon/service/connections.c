/* SPDX-License-Identifier: MIT
 *
 * How clients come and go. The list of clients is in the order of their last activity, so that finding the
 * silent ones is a look at its head. A client that is dropped is closed at once and freed at the end of the
 * turn: events already fetched from epoll, and callers further up, may still name it.
 *
 * Out of descriptors, accepting pauses: whoever waits stays in the kernel's backlog, and the listening socket
 * stays readable, so looking at it again at once would be a busy loop. It goes on when a client has left, or
 * a moment later.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "daemon/export/json.h"
#include "daemon/service/service_state.h"
#include "daemon/service/verbs.h"

#define ACCEPTS_PER_TURN 64
/* Beyond max_clients: an operator gets in when others hold all connections. */
#define CLIENTS_RESERVED_FOR_ROOT 4
#define ACCEPT_PAUSE_NS (100 * MILLISECOND_NS)

void connection_note_activity(struct service *service, struct client *client)
{
	client->active_ns = monotonic_now_ns();
	TAILQ_REMOVE(&service->clients, client, clients);
	TAILQ_INSERT_TAIL(&service->clients, client, clients);
}

void connection_set_ready(struct service *service, struct client *client, bool ready)
{
	if (client->is_ready == ready)
		return;
	client->is_ready = ready;
	if (ready)
		TAILQ_INSERT_TAIL(&service->ready, client, ready);
	else
		TAILQ_REMOVE(&service->ready, client, ready);
}

void connection_drop(struct service *service, struct client *client)
{
	if (client->fd < 0)
		return;
	if (client->exchange)
		exchange_abandon(service, client->exchange);
	client->exchange = NULL;
	connection_set_ready(service, client, false);
	/* Closing is not enough where a forked child holds the connection too: events would go on, for a
	 * freed client. */
	epoll_ctl(service->epoll_fd, EPOLL_CTL_DEL, client->fd, NULL);
	client_close(client);
	TAILQ_REMOVE(&service->clients, client, clients);
	TAILQ_INSERT_TAIL(&service->gone, client, clients);
	service->client_count--;
	/* A descriptor is free again. */
	if (service->accept_again_ns)
		service->accept_again_ns = 1;
}

void connection_settle(struct service *service, struct client *client)
{
	struct epoll_event event = {.data.ptr = client};

	if (client->fd < 0)
		return;
	if (client_is_done(client)) {
		connection_drop(service, client);
		return;
	}
	event.events = client_wanted_events(client);
	if (event.events == client->watched)
		return;
	if (epoll_ctl(service->epoll_fd, EPOLL_CTL_MOD, client->fd, &event) < 0)
		connection_drop(service, client);
	client->watched = event.events;
}

void connection_send(struct service *service, struct client *client, struct text *lines)
{
	if (lines->error || client_send(client, service->quota, &service->limits, lines) != 0)
		connection_drop(service, client);
}

void connection_send_error(struct service *service, struct client *client, const char *id,
	enum protocol_error error, const char *message)
{
	_cleanup_text_ struct text lines = {0};

	protocol_append_error(&lines, id, error, message);
	connection_send(service, client, &lines);
}

/* Tells who can't be a client why, as far as the socket takes it, and closes. */
static void turn_away(int fd, const char *message)
{
	_cleanup_text_ struct text lines = {0};

	if (protocol_append_error(&lines, "", PROTOCOL_E_TOO_MANY_CONNECTIONS, message) == 0)
		(void)!send(fd, lines.bytes, lines.length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void say_hello(struct service *service, struct client *client)
{
	_cleanup_text_ struct text lines = {0};
	_cleanup_(cJSON_Deletep) cJSON *hello = cJSON_CreateObject();
	cJSON *protocols;
	bool ok = true;

	ok &= json_add_string(hello, "hello", "cbox-profd");
	ok &= json_add_string(hello, "version", CBOX_PROFD_VERSION);
	protocols = cJSON_AddArrayToObject(hello, "protocols");
	ok &= json_append_item(protocols, cJSON_CreateNumber(PROTOCOL_VERSION));
	ok &= json_add_item(hello, "features", verbs_list());
	if (!ok) {
		connection_drop(service, client);
		return;
	}
	protocol_append_line(&lines, hello);
	connection_send(service, client, &lines);
}

/* Makes @connection (taken over) a client. */
static void welcome(struct service *service, int connection)
{
	_cleanup_close_ int fd = connection;
	struct authority_rules rules = service_authority_rules(service);
	struct epoll_event event = {.events = EPOLLIN};
	struct client *client = NULL;
	struct quota_user *user;
	struct peer peer;
	enum role role;
	int error;

	if (authority_identify(fd, &peer) < 0 || authority_role(fd, &peer, &rules, &role) < 0)
		return;
	if (service->client_count >=
		service->options.max_clients + (peer.uid == 0 ? CLIENTS_RESERVED_FOR_ROOT : 0)) {
		turn_away(fd, "socket.max_clients is reached; try again later");
		return;
	}
	error = quota_connect(service->quota, peer.uid, monotonic_now_ns(), &user);
	if (error) {
		turn_away(fd, error == QUOTA_E_CONNECTIONS
				      ? "your user has socket.max_clients_per_uid connections; close one"
				      : "too many users; try again later");
		return;
	}
	if (client_new(fd, &peer, user, &client) < 0) {
		quota_disconnect(user);
		return;
	}
	TAKE_FD(fd);
	client->role = role;
	client->watched = event.events;
	client->active_ns = monotonic_now_ns();
	TAILQ_INSERT_TAIL(&service->clients, client, clients);
	service->client_count++;
	event.data.ptr = client;
	if (epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, client->fd, &event) < 0) {
		connection_drop(service, client);
		return;
	}
	say_hello(service, client);
	connection_settle(service, client);
}

void connections_watch_listener(struct service *service, bool watch)
{
	struct epoll_event event = {.events = watch ? EPOLLIN : 0, .data.ptr = &service->listener};

	epoll_ctl(service->epoll_fd, EPOLL_CTL_MOD, service->listener.fd, &event);
}

void connections_accept(struct service *service)
{
	for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(service->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			welcome(service, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN)
			return;
		service->accept_again_ns = monotonic_now_ns() + ACCEPT_PAUSE_NS;
		connections_watch_listener(service, false);
		return;
	}
}
