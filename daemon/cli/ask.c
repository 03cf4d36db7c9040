/* SPDX-License-Identifier: MIT
 *
 * One question to the daemon, from the option table to the exit status.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/cli/ask.h"
#include "daemon/cli/cli.h"

int question_exit_status(int error)
{
	switch (error) {
	case 0:
		return EXIT_OK;
	case CLIENT_E_NO_DAEMON:
		return EXIT_NO_DAEMON;
	case CLIENT_E_FORBIDDEN:
		return EXIT_NO_PERMISSION;
	case CLIENT_E_NOT_FOUND:
		return EXIT_NO_TARGET;
	case CLIENT_E_BAD_PATH:
		return EXIT_USAGE;
	default:
		return EXIT_FAILED;
	}
}

cJSON *question_request(const struct question *question, const char *verb)
{
	_cleanup_(cJSON_Deletep) cJSON *request = cJSON_CreateObject();
	bool ok = json_add_string(request, "verb", verb);

	if (question->pool)
		ok &= json_add_string(request, "pool", question->pool);
	if (question->pid > 0)
		ok &= json_add_signed(request, "pid", question->pid);
	return ok ? TAKE(request) : NULL;
}

int question_ask(const struct question *question, const cJSON *request, cJSON **ret_result)
{
	_cleanup_(daemon_client_closep) struct daemon_client *client = NULL;
	_cleanup_(cJSON_Deletep) cJSON *result = NULL;
	_cleanup_free_ char *text = NULL;
	char why[512];

	if (!request)
		return cli_fail(EXIT_FAILED, "no memory");
	int r = daemon_client_open(
		daemon_client_path(question->socket), CLIENT_TIMEOUT_NS, &client, why, sizeof(why));
	if (r == 0)
		r = daemon_client_ask(client, request, &result, &text, why, sizeof(why));
	if (r != 0)
		return cli_fail(question_exit_status(r), "%s", why);
	if (question->json)
		puts(text);
	*ret_result = TAKE(result);
	return EXIT_OK;
}

uint64_t answer_count(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	/* What is no count converts to none: doubles out of range would be undefined. */
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 18446744073709551615.0))
		return 0;
	return (uint64_t)item->valuedouble;
}

const char *answer_string(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(item) ? item->valuestring : "";
}

bool answer_flag(const cJSON *object, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

struct accounting answer_accounting(const cJSON *object)
{
	const cJSON *json = cJSON_GetObjectItemCaseSensitive(object, "accounting");

	return (struct accounting){
		.expected = answer_count(json, "expected"),
		.taken = answer_count(json, "taken"),
		.unchanged = answer_count(json, "unchanged"),
		.torn_lost = answer_count(json, "torn_lost"),
		.unreadable = answer_count(json, "unreadable"),
		.idle = answer_count(json, "idle"),
		.missed = answer_count(json, "missed"),
		.torn_retried = answer_count(json, "torn_retried"),
		.truncated = answer_count(json, "truncated"),
		.late = answer_count(json, "late"),
		.context_invalid = answer_count(json, "context_invalid"),
		.node_overflow = answer_count(json, "node_overflow"),
	};
}

const char *span_text(uint64_t ns, char into[SPAN_BYTES])
{
	uint64_t s = ns / 1000000000;

	if (s < 60)
		snprintf(into, SPAN_BYTES, "%" PRIu64 " s", s);
	else if (s < 3600)
		snprintf(into, SPAN_BYTES, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(into, SPAN_BYTES, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
	else
		snprintf(into, SPAN_BYTES, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
	return into;
}

const char *period_text(uint64_t ns, char into[SPAN_BYTES])
{
	double ms = (double)ns / 1e6;

	snprintf(into, SPAN_BYTES, ms < 999.5 ? "%.3g ms" : "%.3g s", ms < 999.5 ? ms : ms / 1e3);
	return into;
}
