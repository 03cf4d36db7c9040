/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry for what a client can make of a line: the request is parsed, its verb looks at all its
 * arguments and makes its orders (which go nowhere), and an answer is written with its id. Every line must
 * end in orders or an error, and every answer must be one line of JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/service/verbs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void promise(bool kept)
{
	if (!kept)
		abort();
}

/* What `status` would ask of the engine itself; nothing is answered here. */
size_t engine_refusals(struct engine *engine, struct refusal *ret_refusals, size_t max)
{
	return 0;
}

size_t engine_selector_reports(struct engine *engine, struct selector_report *ret_reports, size_t max)
{
	return 0;
}

static int reload(void *context, char *ret_why, size_t why_bytes)
{
	return 0;
}

static void check_answer(const struct protocol_request *request)
{
	_cleanup_text_ struct text lines = {0};
	cJSON *answer;

	promise(protocol_append_error(&lines, request->id, PROTOCOL_E_INTERNAL, request->why) == 0);
	promise(strchr(lines.bytes, '\n') == lines.bytes + lines.length - 1);
	answer = cJSON_Parse(lines.bytes);
	promise(cJSON_IsObject(answer));
	promise(!*request->id || cJSON_HasObjectItem(answer, "id"));
	cJSON_Delete(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct service_options options = {0};
	struct service_hooks hooks = {.reload = reload};
	struct verb_host host = {.options = &options, .hooks = &hooks, .socket_path = ""};
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return 0;
	exchange->peer = (struct peer){1, 33, 33};
	exchange->role = ROLE_CONTROL;
	protocol_request_init(&exchange->request, (const char *)data, bytes);
	if (!exchange->request.error) {
		verb_ask(exchange, &host);
		promise(exchange->request.error || exchange->order_count > 0 ||
			strcmp(exchange->request.verb, "reload") == 0);
		promise(exchange->order_count <= EXCHANGE_MAX_ORDERS);
	}
	check_answer(&exchange->request);
	exchange_free(exchange);
	return 0;
}
