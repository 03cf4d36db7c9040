/* SPDX-License-Identifier: MIT
 *
 * The whole profile as JSON, lines and accounting included. The nodes are many and all numbers: they are
 * written as text straight away, since a cJSON item for each would take twenty times the memory of the
 * result.
 */
#include <inttypes.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/json.h"

cJSON *export_accounting_json(const struct accounting *accounting)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	bool ok = true;

	ok &= json_add_count(json, "expected", accounting->expected);
	ok &= json_add_count(json, "taken", accounting->taken);
	ok &= json_add_count(json, "unchanged", accounting->unchanged);
	ok &= json_add_count(json, "torn_lost", accounting->torn_lost);
	ok &= json_add_count(json, "unreadable", accounting->unreadable);
	ok &= json_add_count(json, "idle", accounting->idle);
	ok &= json_add_count(json, "missed", accounting->missed);
	ok &= json_add_count(json, "torn_retried", accounting->torn_retried);
	ok &= json_add_count(json, "truncated", accounting->truncated);
	ok &= json_add_count(json, "late", accounting->late);
	cJSON *histogram = cJSON_AddArrayToObject(json, "late_histogram");
	for (int i = 0; i < ACCOUNTING_LATE_BUCKETS; i++)
		ok &= json_append_item(histogram, cJSON_CreateNumber((double)accounting->late_histogram[i]));
	ok &= json_add_count(json, "context_invalid", accounting->context_invalid);
	ok &= json_add_count(json, "node_overflow", accounting->node_overflow);
	return ok ? TAKE(json) : NULL;
}

/* 1234567 -> "1,234,567" */
static const char *grouped(uint64_t value, char into[32])
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, value);
	char *cursor = into;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*cursor++ = ',';
		*cursor++ = digits[i];
	}
	*cursor = 0;
	return into;
}

int export_accounting_text(const struct accounting *accounting, struct text *text)
{
	const struct {
		uint64_t count;
		const char *what;
	} parts[] = {
		{accounting->unchanged, "unchanged"},
		{accounting->torn_lost, "torn"},
		{accounting->unreadable, "unreadable"},
		{accounting->idle, "idle"},
		{accounting->missed, "missed"},
	};
	char number[32];

	text_append(text, "%s ticks expected: ", grouped(accounting->expected, number));
	text_append(text, "%s taken", grouped(accounting->taken, number));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		text_append(text, ", %s %s", grouped(parts[i].count, number), parts[i].what);
	if (accounting->truncated > 0)
		text_append(text, "; %s stacks truncated", grouped(accounting->truncated, number));
	if (accounting->node_overflow > 0)
		text_append(text, "; %s in <other>: the tree was full",
			grouped(accounting->node_overflow, number));
	text_append(text, "\n");
	return text->error;
}

static const char *kind_name(const struct function_name *frame)
{
	/* The daemon's own buckets: no PHP function is called so. */
	if (frame->kind == FUNCTION_INTERNAL && (frame->name[0] == '<' || strcmp(frame->name, "{root}") == 0))
		return "synthetic";
	switch (frame->kind) {
	case FUNCTION_USER:
		return "user";
	case FUNCTION_INTERNAL:
		return "internal";
	case FUNCTION_MAIN:
		return "main";
	case FUNCTION_INCLUDE:
		return "include";
	case FUNCTION_EVAL:
		return "eval";
	case FUNCTION_CLOSURE:
		return "closure";
	}
	return "unknown";
}

static cJSON *frames_json(const struct profile *profile)
{
	_cleanup_(cJSON_Deletep) cJSON *frames = cJSON_CreateArray();
	bool ok = frames;

	for (size_t i = 0; i < profile->frame_count && ok; i++) {
		const struct function_name *frame = &profile->frames[i];
		cJSON *json = cJSON_CreateObject();

		ok &= json_add_string(json, "function", frame->name);
		ok &= json_add_string(json, "file", frame->file);
		ok &= json_add_count(json, "line", frame->line);
		ok &= json_add_string(json, "kind", kind_name(frame));
		ok &= json_append_item(frames, json);
	}
	return ok ? TAKE(frames) : NULL;
}

static cJSON *nodes_json(const struct profile *profile)
{
	_cleanup_text_ struct text text = {0};

	for (size_t i = 0; i < profile->node_count; i++) {
		const struct profile_node *node = &profile->nodes[i];

		text_append(&text,
			"%c[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
			"]",
			i == 0 ? '[' : ',', node->parent, node->frame, node->line, node->samples,
			node->wall_ns, node->cpu_ns, node->queue_ns);
	}
	text_append(&text, "]");
	return text.error == 0 ? cJSON_CreateRaw(text.bytes) : NULL;
}

cJSON *export_profile_json(const struct profile *profile)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	struct profile_node sum = profile_sum(profile);
	bool ok = true;

	ok &= json_add_count(json, "sample_count", sum.samples);
	ok &= json_add_count(json, "period_ns", profile->period_ns);
	ok &= json_add_count(json, "duration_ns", profile->duration_ns);
	ok &= json_add_item(json, "accounting", export_accounting_json(&profile->accounting));
	ok &= json_add_item(json, "frames", frames_json(profile));
	ok &= json_add_item(json, "nodes", nodes_json(profile));
	cJSON *total = cJSON_AddObjectToObject(json, "total");
	ok &= json_add_count(total, "samples", sum.samples);
	ok &= json_add_count(total, "wall_ns", sum.wall_ns);
	ok &= json_add_count(total, "cpu_ns", sum.cpu_ns);
	ok &= json_add_count(total, "queue_ns", sum.queue_ns);
	return ok ? TAKE(json) : NULL;
}
