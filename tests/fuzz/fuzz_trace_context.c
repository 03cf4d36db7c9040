/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry for the trace context's grammar, in the global and in the header. What is accepted must be
 * what the header file promises of it; what is written in the canonical form again must parse to the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/trace_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void promise(bool kept)
{
	if (!kept)
		abort();
}

static const char *id_or_zeros(const char *id, const char *zeros)
{
	return id[0] ? id : zeros;
}

static void check(const struct trace_context *context)
{
	char text[TRACE_CONTEXT_MAX_BYTES + 1], number[32];
	struct trace_context again;

	promise(strlen(context->trace_id) == 32 || context->trace_id[0] == '\0');
	promise(strlen(context->span_id) == 16 || context->span_id[0] == '\0');
	promise(strlen(context->name) <= TRACE_CONTEXT_MAX_NAME_BYTES);
	promise(context->handle <= INT64_MAX);

	snprintf(text, sizeof(text), "00-%s-%s-%02x;p=%d",
		id_or_zeros(context->trace_id, "00000000000000000000000000000000"),
		id_or_zeros(context->span_id, "0000000000000000"), context->sampled, context->profile);
	if (context->has_unit_type)
		strcat(strcat(text, ";u="), unit_type_name(context->unit_type));
	if (context->handle && snprintf(number, sizeof(number), ";h=%" PRIu64, context->handle) > 0)
		strcat(text, number);
	if (context->period_us && snprintf(number, sizeof(number), ";r=%" PRIu32, context->period_us) > 0)
		strcat(text, number);
	if (context->max_depth && snprintf(number, sizeof(number), ";d=%" PRIu32, context->max_depth) > 0)
		strcat(text, number);
	if (context->name[0])
		strcat(strcat(text, ";n="), context->name);

	promise(trace_context_parse(text, strlen(text), &again) == 0);
	promise(strcmp(again.trace_id, context->trace_id) == 0);
	promise(strcmp(again.span_id, context->span_id) == 0);
	promise(strcmp(again.name, context->name) == 0);
	promise(again.sampled == context->sampled && again.profile == context->profile);
	promise(again.has_unit_type == context->has_unit_type && again.unit_type == context->unit_type);
	promise(again.handle == context->handle && again.period_us == context->period_us);
	promise(again.max_depth == context->max_depth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct trace_context context;

	if (trace_context_parse((const char *)data, bytes, &context) == 0)
		check(&context);
	if (trace_context_parse_traceparent((const char *)data, bytes, &context) == 0)
		check(&context);
	return 0;
}
