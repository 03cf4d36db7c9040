/* SPDX-License-Identifier: MIT
 *
 * The verbs of the protocol: who may use them, what they ask of the engine, and how the answer reads.
 */
#pragma once

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
	struct client *client; /* NULL: has left */
	struct peer peer;
	enum role role;
	struct protocol_request request; /* request.error: the answer is this error */
	const struct verb *verb;
	struct order *orders[EXCHANGE_MAX_ORDERS]; /* owned, but lent to the engine while .awaited > 0 */
	size_t order_count;
	size_t awaited; /* orders that have not come back */
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

/* With all orders back: the result, the caller's; or NULL and .request.error. */
cJSON *verb_answer(struct exchange *exchange, const struct verb_host *host);

void exchange_free(struct exchange *exchange);
DEFINE_CLEANUP(struct exchange, exchange_free)
