/* SPDX-License-Identifier: MIT
 *
 * From a line to its answer. A client has at most one request under way; what it sends meanwhile stays in its
 * buffer and then in the kernel's. That alone keeps answers in the order of requests, though the engine may
 * return orders in any, and bounds what a client can have the engine do. An exchange (request, orders,
 * answer) outlives its client: orders always come back, and then find that nobody waits for them.
 *
 * What takes long to collect and to write, readers get one of a user's at a time: further ones wait here, and
 * nothing is done for them. Long answers are written by the writer's thread; finish and status, which a
 * worker waits for, go past them.
 */
#include "daemon/service/service_state.h"
#include "daemon/service/verbs.h"

#define REQUESTS_PER_TURN 32 /* of one client; then the others have theirs */

static struct verb_host verb_host(struct service *service)
{
	return (struct verb_host){
		.engine = service->engine,
		.options = &service->options,
		.hooks = &service->hooks,
		.socket_path = service->listener.path,
	};
}

/* Sends what is written, and ends the exchange. */
static void send_answer(struct service *service, struct client *client, struct exchange *exchange)
{
	struct text *lines = &exchange->lines;

	if (!lines->error && lines->length > service->limits.pending_bytes) {
		text_free(lines);
		protocol_append_error(lines, exchange->request.id, PROTOCOL_E_LIMIT,
			"the answer is larger than socket.max_pending; ask for less (pool, pid, n, "
			"limit)");
	}
	connection_send(service, client, lines);
	exchange_free(exchange);
}

/* Answers a request whose orders are back, or that needed none, and ends it. */
static void answer(struct service *service, struct client *client, struct exchange *exchange)
{
	struct verb_host host = verb_host(service);

	exchange_write(exchange, &host);
	send_answer(service, client, exchange);
}

static void submit(struct service *service, struct exchange *exchange)
{
	exchange->awaited = exchange->order_count;
	service->awaited += exchange->order_count;
	for (size_t i = 0; i < exchange->order_count; i++) {
		struct order *order = exchange->orders[i];

		order->reply_to = service->mailbox;
		order->cookie = (uint64_t)(uintptr_t)exchange;
		engine_submit(service->engine, order);
	}
}

/* Submits, or waits until the user's long answer under way is written. */
static void submit_long(struct service *service, struct exchange *exchange, struct quota_user *user)
{
	exchange->user = user;
	exchange->waits_for_user = !quota_begin_long(user);
	if (exchange->waits_for_user)
		TAILQ_INSERT_TAIL(&service->waiting, exchange, queued);
	else
		submit(service, exchange);
}

/* The next one of its user's may begin. */
static void end_long(struct service *service, struct exchange *exchange)
{
	struct quota_user *user = exchange->user;
	struct exchange *next;

	if (!user)
		return;
	exchange->user = NULL;
	quota_end_long(user);
	next = TAILQ_FIRST(&service->waiting);
	while (next && next->user != user)
		next = TAILQ_NEXT(next, queued);
	if (!next)
		return;
	TAILQ_REMOVE(&service->waiting, next, queued);
	submit_long(service, next, user);
}

void exchange_abandon(struct service *service, struct exchange *exchange)
{
	exchange->client = NULL;
	if (!exchange->waits_for_user)
		return; /* it comes back */
	TAILQ_REMOVE(&service->waiting, exchange, queued);
	exchange_free(exchange);
}

/* Takes up the request in @line: it is answered at once, or becomes client->exchange. */
static void take_request(struct service *service, struct client *client, const char *line, size_t bytes)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	struct verb_host host = verb_host(service);

	connection_note_activity(service, client);
	if (!exchange) {
		connection_drop(service, client);
		return;
	}
	exchange->peer = client->peer;
	exchange->role = client->role;
	protocol_request_init(&exchange->request, line, bytes);
	if (!exchange->request.error)
		verb_ask(exchange, &host);
	if (!quota_take_request(service->quota, client->user, verb_cost(exchange), monotonic_now_ns())) {
		exchange->request.error = PROTOCOL_OK; /* whatever else is wrong with it */
		protocol_request_fail(&exchange->request, PROTOCOL_E_RATE_LIMITED,
			"uid %u asks more than socket.requests_per_second_per_uid (%u); wait and ask again",
			client->peer.uid, service->options.requests_per_second_per_uid);
	}
	if (exchange->request.error || exchange->order_count == 0) {
		answer(service, client, exchange);
		return;
	}
	exchange->client = client;
	client->exchange = exchange;
	if (verb_is_long(exchange))
		submit_long(service, exchange, client->user);
	else
		submit(service, exchange);
}

void exchanges_serve(struct service *service, struct client *client)
{
	unsigned taken = 0;
	const char *line;
	size_t bytes;

	connection_set_ready(service, client, false);
	while (client->fd >= 0 && !client->exchange && !client->leaving) {
		if (taken++ == REQUESTS_PER_TURN) {
			connection_set_ready(service, client, true);
			break;
		}
		if (client_next_line(client, &service->limits, &line, &bytes) == CLIENT_E_LINE_TOO_LONG) {
			client->leaving = true;
			connection_send_error(service, client, "", PROTOCOL_E_LINE_TOO_LONG,
				"a request is at most socket.max_line long; the connection is closed");
			break;
		}
		if (!line)
			break;
		take_request(service, client, line, bytes);
		urgency_check(&service->urgency);
	}
	connection_settle(service, client);
}

/* Nobody needs the answer, or it can be given now. */
static void end(struct service *service, struct exchange *exchange,
	void (*give)(struct service *service, struct client *client, struct exchange *exchange))
{
	struct client *client = exchange->client;

	end_long(service, exchange);
	if (!client) {
		exchange_free(exchange);
		return;
	}
	client->exchange = NULL;
	connection_note_activity(service, client);
	give(service, client, exchange);
	if (client->fd >= 0)
		exchanges_serve(service, client);
}

static void take_order_back(struct service *service, struct order *order)
{
	struct exchange *exchange = (struct exchange *)(uintptr_t)order->cookie;

	service->awaited--;
	if (--exchange->awaited > 0)
		return;
	if (!exchange->client || !verb_answer_is_long(exchange)) {
		end(service, exchange, answer);
		return;
	}
	service->awaited++;
	writer_write(service->writer, exchange);
}

static void take_written(struct service *service, struct exchange *exchange)
{
	service->awaited--;
	end(service, exchange, send_answer);
}

void exchanges_take_mail(struct service *service)
{
	struct message *message = mailbox_take_all(service->mailbox);

	while (message) {
		struct message *next = message->next;

		if (message->kind == SERVICE_WRITTEN)
			take_written(service, (struct exchange *)message);
		else
			take_order_back(service, (struct order *)message);
		urgency_check(&service->urgency);
		message = next;
	}
}
