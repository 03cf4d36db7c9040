/* SPDX-License-Identifier: MIT
 *
 * The service from inside: its state, and what its three files want of each other. connections.c has clients
 * come and go, exchanges.c has them asked and answered, service.c turns the loop.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/sampling/clock.h"
#include "daemon/service/client.h"
#include "daemon/service/protocol.h"
#include "daemon/service/service.h"
#include "daemon/service/socket_path.h"
#include "daemon/service/urgency.h"
#include "daemon/service/writer.h"

/* What arrives in its mailbox. */
enum service_message { SERVICE_ORDER = 0, SERVICE_WRITTEN };

#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

struct service {
	struct service_options options;
	struct service_hooks hooks;
	struct engine *engine;
	struct listening_socket listener;
	int epoll_fd;
	int wake_fd;
	struct mailbox *mailbox;
	struct writer *writer;
	size_t awaited; /* orders the engine has, and exchanges the writer has */
	struct quota *quota;
	struct client_limits limits;
	struct urgency urgency;

	struct client_list clients; /* least recently active first */
	struct client_list
		gone; /* closed; freed at the end of the turn, since events of this turn may name them */
	struct client_list ready;                   /* those with is_ready */
	TAILQ_HEAD(waiting_list, exchange) waiting; /* those with waits_for_user, oldest first */
	size_t client_count;
	uint64_t accept_again_ns; /* 0: accepting */
	uint64_t stop_by_ns;      /* 0: not stopping */

	atomic_bool stop;
	pthread_mutex_t news_lock;
	bool has_news;
	struct service_options news; /* given to service_reconfigure(), not taken yet */
};

struct authority_rules service_authority_rules(const struct service *service);

/* connections.c */

/* Takes in who has knocked at the listening socket. */
void connections_accept(struct service *service);
void connections_watch_listener(struct service *service, bool watch);

/* @client has done something: it is the last to be found silent. */
void connection_note_activity(struct service *service, struct client *client);

/* Lines may wait in its input: it gets its share every turn until it is not ready any more. */
void connection_set_ready(struct service *service, struct client *client, bool ready);

/* Sends @lines (emptied); drops the client when that can't be done. */
void connection_send(struct service *service, struct client *client, struct text *lines);
void connection_send_error(struct service *service, struct client *client, const char *id,
	enum protocol_error error, const char *message);

/* Asks epoll for what the client's state calls for now, or drops it when nothing is left to do. */
void connection_settle(struct service *service, struct client *client);

/* Closes the connection; an exchange it has goes on without it. The struct stays until the end of the turn.
 */
void connection_drop(struct service *service, struct client *client);

/* exchanges.c */

/* Its client has left. */
void exchange_abandon(struct service *service, struct exchange *exchange);

/* Takes up what the client has sent, up to a turn's share. */
void exchanges_serve(struct service *service, struct client *client);

/* Answers the requests whose orders have come back. */
void exchanges_take_mail(struct service *service);
