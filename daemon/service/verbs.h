/* SPDX-License-Identifier: MIT
 *
 * The verbs of the protocol: who may use them, what they ask of the engine, and how the answer reads.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/export/export.h"
#include "daemon/sampling/engine.h"
#include "daemon/service/authority.h"
#include "daemon/service/protocol.h"
#include "daemon/service/service.h"

#define EXCHANGE_MAX_ORDERS 3

struct client;
struct verb;

/* A request under way: from its line until its answer. It outlives its client, since orders always come back.
 */
struct exchange {
	struct message message;  /* first: long answers travel to the writer and back */
	struct client *client;   /* NULL: has left */
	struct quota_user *user; /* whose one long answer under way it is; NULL: of nobody */
	bool waits_for_user;     /* its orders are not submitted yet: another one is that */
	TAILQ_ENTRY(exchange) queued;
	struct peer peer;
	enum role role;
	struct protocol_request request; /* request.error: the answer is this error */
	const struct verb *verb;
	struct order *orders[EXCHANGE_MAX_ORDERS]; /* owned, but lent to the engine while .awaited > 0 */
	size_t order_count;
	size_t awaited;    /* orders that have not come back */
	struct text lines; /* once it is written */
};

/* What verbs may use of the service. */
struct verb_host {
	struct engine *engine;
	struct service_options *options;
	const struct service_hooks *hooks;
	const char *socket_path;
};

/* The names of all verbs, in the order of the documentation; NULL for lack of memory. The caller's
 * (cJSON_Delete). */
cJSON *verbs_list(void);

/* Finds the request's verb, checks the peer's role and makes the orders it needs: .verb and .orders, or
 * .request.error. */
void verb_ask(struct exchange *exchange, const struct verb_host *host);

/* What the request counts for in its user's quota, also when it is none. */
unsigned verb_cost(const struct exchange *exchange);
/* A worker asks, which serves nobody while it waits. */
bool verb_is_worker(const struct exchange *exchange);
/* A reader's, whose answer takes long to collect and to write. */
bool verb_is_long(const struct exchange *exchange);
/* With all orders back: the answer takes long to write, whosever it is. Then it can be done by any thread,
 * and with an empty host. */
bool verb_answer_is_long(const struct exchange *exchange);

/* With all orders back, or .request.error: the answer's .lines. */
void exchange_write(struct exchange *exchange, const struct verb_host *host);

void exchange_free(struct exchange *exchange);
DEFINE_CLEANUP(struct exchange, exchange_free)
