/* SPDX-License-Identifier: MIT
 *
 * The table of verbs, and what is the same for all of them: the role is checked before a verb sees the
 * request, the engine's errors get the protocol's names, and orders are made with the peer's uid as a filter.
 *
 * Who sees what: to a peer that may read only its own, others' targets do not exist. Its orders are filtered,
 * and what it is told when something was not found are our own general words, the same for what is hidden as
 * for what is not there: the engine's reasons name processes.
 */
#include "daemon/service/verbs.h"

#include <stdio.h>
#include <string.h>

#include "daemon/export/json.h"
#include "daemon/service/verb.h"

#define MAX_PID 4194304 /* the kernel's PID_MAX_LIMIT */
/* Of a unit whose result is written at once, in a fraction of a millisecond. */
#define MAX_SHORT_NODES 500

struct order *verb_add_order(struct exchange *exchange, enum order_verb verb)
{
	struct order *order;

	if (order_new(verb, &order) < 0) {
		protocol_request_fail(&exchange->request, PROTOCOL_E_INTERNAL, "out of memory");
		return NULL;
	}
	order->uid = exchange->role >= ROLE_READER ? ORDER_ANY_UID : exchange->peer.uid;
	exchange->orders[exchange->order_count++] = order;
	return order;
}

void verb_take_pool(struct exchange *exchange, struct order *order)
{
	const char *pool = protocol_request_text(&exchange->request, "pool", sizeof(order->pool) - 1);

	if (pool)
		snprintf(order->pool, sizeof(order->pool), "%s", pool);
}

void verb_take_pid(struct exchange *exchange, struct order *order)
{
	order->pid = (pid_t)protocol_request_number(&exchange->request, "pid", 1, MAX_PID, 0);
}

struct order *verb_add_filtered_order(struct exchange *exchange, enum order_verb verb)
{
	struct order *order = verb_add_order(exchange, verb);

	if (order) {
		verb_take_pool(exchange, order);
		verb_take_pid(exchange, order);
	}
	return order;
}

cJSON *verb_wrap(const char *name, cJSON *value)
{
	_cleanup_(cJSON_Deletep) cJSON *result = cJSON_CreateObject();

	return json_add_item(result, name, value) ? TAKE(result) : NULL;
}

static const struct verb verbs[] = {
	{"finish", ROLE_WORKER, 1, false, verb_ask_finish, verb_answer_unit},
	{"status", ROLE_WORKER, 2, false, verb_ask_status, verb_answer_status},
	{"targets", ROLE_READER_OWN, 10, true, verb_ask_targets, verb_answer_targets},
	{"top", ROLE_READER_OWN, 100, true, verb_ask_top, verb_answer_top},
	{"profile", ROLE_READER_OWN, 100, true, verb_ask_profile, verb_answer_profile},
	{"unit", ROLE_READER_OWN, 20, true, verb_ask_unit, verb_answer_unit},
	{"units", ROLE_READER_OWN, 50, true, verb_ask_units, verb_answer_units},
	{"metrics", ROLE_READER, 1, false, verb_ask_metrics,
		verb_answer_metrics}, /* counts everybody's targets */
	{"attach", ROLE_CONTROL, 1, false, verb_ask_attach, verb_answer_affected},
	{"detach", ROLE_CONTROL, 1, false, verb_ask_detach, verb_answer_affected},
	{"rate", ROLE_CONTROL, 1, false, verb_ask_rate, verb_answer_rate},
	{"reset", ROLE_CONTROL, 1, false, verb_ask_reset, verb_answer_affected},
	{"suspend", ROLE_CONTROL, 1, false, verb_ask_suspend, verb_answer_affected},
	{"resume", ROLE_CONTROL, 1, false, verb_ask_resume, verb_answer_affected},
	{"reload", ROLE_CONTROL, 1, false, verb_ask_reload, verb_answer_reload},
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

cJSON *verbs_list(void)
{
	_cleanup_(cJSON_Deletep) cJSON *list = cJSON_CreateArray();
	bool ok = list != NULL;

	for (size_t i = 0; i < VERB_COUNT; i++)
		ok &= json_append_item(list, cJSON_CreateString(verbs[i].name));
	return ok ? TAKE(list) : NULL;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < VERB_COUNT; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static const char *role_remedy(enum role role)
{
	return role == ROLE_CONTROL ? "ask as root or as a member of socket.admin_group"
				    : "ask as root or as a member of socket.group";
}

void verb_ask(struct exchange *exchange, const struct verb_host *host)
{
	struct protocol_request *request = &exchange->request;
	const struct verb *verb = find_verb(request->verb);

	if (!verb) {
		protocol_request_fail(
			request, PROTOCOL_E_UNKNOWN_VERB, "verb: none of those the hello lists as features");
		return;
	}
	if (exchange->role < verb->needs) {
		protocol_request_fail(request, PROTOCOL_E_FORBIDDEN, "%s: uid %u may not; %s", verb->name,
			exchange->peer.uid, role_remedy(verb->needs));
		return;
	}
	exchange->verb = verb;
	verb->ask(exchange, host);
}

/* The protocol's name for what the engine said, and words for when it gave none. */
static enum protocol_error translate(enum order_error error, const char **ret_words)
{
	switch (error) {
	case ORDER_OK:
		break;
	case ORDER_E_NOT_A_TARGET:
		*ret_words = "that process is not sampled; `cbox-profd status` may say why";
		return PROTOCOL_E_NOT_A_TARGET;
	case ORDER_E_NO_UNIT:
		*ret_words = "the process has no open unit with this handle";
		return PROTOCOL_E_NO_UNIT;
	case ORDER_E_NOT_FOUND:
		*ret_words = "no such target, pool or unit";
		return PROTOCOL_E_NOT_FOUND;
	case ORDER_E_RANGE:
		*ret_words = "the period is outside sampling.max_rate and 1 s";
		return PROTOCOL_E_OUT_OF_RANGE;
	case ORDER_E_LIMIT:
		*ret_words = "limits.max_targets is reached";
		return PROTOCOL_E_LIMIT;
	case ORDER_E_REFUSED:
		*ret_words = "the process can't be sampled; `cbox-profd doctor PID` says why";
		return PROTOCOL_E_REFUSED;
	case ORDER_E_STOPPING:
		*ret_words = "the daemon is stopping";
		return PROTOCOL_E_STOPPING;
	case ORDER_E_NO_MEMORY:
		*ret_words = "out of memory";
		return PROTOCOL_E_INTERNAL;
	}
	*ret_words = "";
	return PROTOCOL_OK;
}

static cJSON *answer(struct exchange *exchange, const struct verb_host *host)
{
	struct protocol_request *request = &exchange->request;
	bool hide_reason = exchange->role < ROLE_READER && exchange->verb->needs != ROLE_WORKER;
	cJSON *result;

	for (size_t i = 0; i < exchange->order_count; i++) {
		const struct order *order = exchange->orders[i];
		const char *words;
		enum protocol_error error = translate(order->error, &words);

		/* That the peer is no target is an answer of `status`, not an error. */
		if (!error || (order->verb == ORDER_WORKER && error == PROTOCOL_E_NOT_A_TARGET))
			continue;
		protocol_request_fail(request, error, "%s", *order->why && !hide_reason ? order->why : words);
		return NULL;
	}
	result = exchange->verb->answer(exchange, host);
	if (!result)
		protocol_request_fail(request, PROTOCOL_E_INTERNAL, "out of memory");
	return result;
}

unsigned verb_cost(const struct exchange *exchange)
{
	return exchange->verb ? exchange->verb->cost : 1;
}

bool verb_is_worker(const struct exchange *exchange)
{
	return exchange->verb->needs == ROLE_WORKER;
}

bool verb_is_long(const struct exchange *exchange)
{
	return exchange->verb->is_long;
}

bool verb_answer_is_long(const struct exchange *exchange)
{
	const struct order *order = exchange->order_count ? exchange->orders[0] : NULL;

	return exchange->verb->is_long || (order && order->verb == ORDER_FINISH && order->unit &&
						  order->unit->node_count > MAX_SHORT_NODES);
}

void exchange_write(struct exchange *exchange, const struct verb_host *host)
{
	struct protocol_request *request = &exchange->request;
	cJSON *result = request->error ? NULL : answer(exchange, host);

	if (result)
		protocol_append_result(&exchange->lines, request->id, result);
	else
		protocol_append_error(&exchange->lines, request->id, request->error, request->why);
	cJSON_Delete(result);
}

void exchange_free(struct exchange *exchange)
{
	for (size_t i = 0; i < exchange->order_count; i++)
		order_free(exchange->orders[i]);
	protocol_request_deinit(&exchange->request);
	text_free(&exchange->lines);
	free(exchange);
}
