/* SPDX-License-Identifier: MIT
 *
 * From a line to its answer. A client has at most one request under way; what it sends meanwhile stays in its
 * buffer and then in the kernel's. That alone keeps answers in the order of requests, though the engine may
 * return orders in any, and bounds what a client can have the engine do. An exchange (request, orders,
 * answer) outlives its client: orders always come back, and then find that nobody waits for them.
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

/* Answers a request whose orders are back, or that needed none, and ends it. */
static void answer(struct service *service, struct client *client, struct exchange *exchange)
{
	struct protocol_request *request = &exchange->request;
	struct verb_host host = verb_host(service);
	_cleanup_text_ struct text lines = {0};
	cJSON *result = request->error ? NULL : verb_answer(exchange, &host);

	if (result)
		protocol_append_result(&lines, request->id, result);
	else
		protocol_append_error(&lines, request->id, request->error, request->why);
	cJSON_Delete(result);
	if (!lines.error && lines.length > service->limits.pending_bytes) {
		text_free(&lines);
		lines = (struct text){0};
		protocol_append_error(&lines, request->id, PROTOCOL_E_LIMIT,
			"the answer is larger than socket.max_pending; ask for less (pool, pid, n, "
			"limit)");
	}
	connection_send(service, client, &lines);
	exchange_free(exchange);
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
	if (!quota_take_request(service->quota, client->user, monotonic_now_ns())) {
		exchange->request.error = PROTOCOL_OK; /* whatever else is wrong with it */
		protocol_request_fail(&exchange->request, PROTOCOL_E_RATE_LIMITED,
			"uid %u asks more than socket.requests_per_second_per_uid (%u); wait and ask again",
			client->peer.uid, service->options.requests_per_second_per_uid);
	}
	if (!exchange->request.error)
		verb_ask(exchange, &host);
	if (exchange->request.error || exchange->order_count == 0) {
		answer(service, client, exchange);
		return;
	}
	exchange->client = client;
	client->exchange = exchange;
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
	}
	connection_settle(service, client);
}

static void take_order_back(struct service *service, struct order *order)
{
	struct exchange *exchange = (struct exchange *)(uintptr_t)order->cookie;
	struct client *client = exchange->client;

	service->awaited--;
	if (--exchange->awaited > 0)
		return;
	if (!client) {
		exchange_free(exchange);
		return;
	}
	client->exchange = NULL;
	connection_note_activity(service, client);
	answer(service, client, exchange);
	if (client->fd >= 0)
		exchanges_serve(service, client);
}

void exchanges_take_mail(struct service *service)
{
	struct message *message = mailbox_take_all(service->mailbox);

	while (message) {
		struct message *next = message->next;

		take_order_back(service, (struct order *)message);
		message = next;
	}
}
