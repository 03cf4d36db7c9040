/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/service/protocol.h"
#include "reader/utf8.h"

static void parse(struct protocol_request *request, const char *line)
{
	protocol_request_init(request, line, strlen(line));
}

static void assert_parses_as(const char *line, enum protocol_error expected)
{
	struct protocol_request request;

	parse(&request, line);
	if (request.error != expected)
		fail_msg("%s: %s (%s)", line, protocol_error_name(request.error), request.why);
	protocol_request_deinit(&request);
}

static void a_request_has_a_verb_and_arguments(void **state)
{
	struct protocol_request request;

	parse(&request, "{\"verb\":\"top\",\"n\":5,\"pool\":\"w\\u0077w\",\"profile\":true,\"pid\":null,"
			"\"new\":[1]}\r");
	assert_int_equal(request.error, PROTOCOL_OK);
	assert_string_equal(request.verb, "top");
	assert_string_equal(request.id, "");
	assert_int_equal(protocol_request_number(&request, "n", 1, 10, 20), 5);
	assert_string_equal(protocol_request_text(&request, "pool", 3), "www");
	assert_true(protocol_request_flag(&request, "profile", false));
	assert_false(protocol_request_flag(&request, "stacks", false));
	assert_false(protocol_request_has(&request, "pid"));
	assert_int_equal(protocol_request_number(&request, "pid", 1, 10, 7), 7);
	assert_int_equal(request.error, PROTOCOL_OK);
	protocol_request_deinit(&request);
}

static void what_is_not_json_is_bad_json(void **state)
{
	const char with_nul[] = "{\"verb\":\"st\0tus\"}";
	struct protocol_request request;

	assert_parses_as("", PROTOCOL_E_BAD_JSON);
	assert_parses_as("hello", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"status\"", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"status\"}}", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"status\"} {\"verb\":\"status\"}", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"status", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"status\\", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"st\\u0000\"}", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"st\\ud800\"}", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"a\x01\"}", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"\xff\"}", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"\xc0\xaf\"}", PROTOCOL_E_BAD_JSON);
	assert_parses_as("{\"verb\":\"\xe2\x82\"}", PROTOCOL_E_BAD_JSON);
	assert_parses_as("\xef\xbb\xbf{\"verb\":\"status\"}", PROTOCOL_E_BAD_JSON);
	protocol_request_init(&request, with_nul, sizeof(with_nul) - 1);
	assert_int_equal(request.error, PROTOCOL_E_BAD_JSON);
	protocol_request_deinit(&request);
}

static void json_that_is_no_request_is_bad_request(void **state)
{
	assert_parses_as("[]", PROTOCOL_E_BAD_REQUEST);
	assert_parses_as("\"status\"", PROTOCOL_E_BAD_REQUEST);
	assert_parses_as("12345678901234567890", PROTOCOL_E_BAD_REQUEST);
	assert_parses_as("{}", PROTOCOL_E_BAD_REQUEST);
	assert_parses_as("{\"verb\":1}", PROTOCOL_E_BAD_REQUEST);
	assert_parses_as("{\"verb\":\"status\",\"id\":{}}", PROTOCOL_E_BAD_REQUEST);
	assert_parses_as("{\"verb\":\"status\",\"id\":1e999}", PROTOCOL_E_BAD_REQUEST);
	assert_parses_as("{\"Verb\":\"status\"}", PROTOCOL_E_BAD_REQUEST);
}

static void sixteen_levels_of_nesting_are_read_and_seventeen_are_not(void **state)
{
	char line[128];

	/* The request's own object is the first level. */
	snprintf(line, sizeof(line), "{\"verb\":\"status\",\"x\":%.15s%.15s}", "[[[[[[[[[[[[[[[[",
		"]]]]]]]]]]]]]]]]");
	assert_parses_as(line, PROTOCOL_OK);
	snprintf(line, sizeof(line), "{\"verb\":\"status\",\"x\":%.16s%.16s}", "[[[[[[[[[[[[[[[[",
		"]]]]]]]]]]]]]]]]");
	assert_parses_as(line, PROTOCOL_E_BAD_JSON);
	/* Brackets in a string nest nothing. */
	assert_parses_as("{\"verb\":\"status\",\"x\":\"[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"}", PROTOCOL_OK);
}

static void assert_number(const char *value, uint64_t expected)
{
	struct protocol_request request;
	char line[128];

	snprintf(line, sizeof(line), "{\"verb\":\"finish\",\"handle\":%s}", value);
	parse(&request, line);
	assert_int_equal(protocol_request_number(&request, "handle", 0, UINT64_MAX, 99), expected);
	assert_int_equal(request.error, PROTOCOL_OK);
	protocol_request_deinit(&request);
}

static void numbers_are_exact_up_to_64_bits(void **state)
{
	assert_number("0", 0);
	assert_number("1e3", 1000);
	assert_number("999999999999999", 999999999999999);
	/* 2^53 + 1, which a double can't hold */
	assert_number("9007199254740993", UINT64_C(9007199254740993));
	assert_number("\"9007199254740993\"", UINT64_C(9007199254740993));
	assert_number(" 18446744073709551615 ", UINT64_MAX);
	assert_number("\"42\"", 42);
}

static void assert_not_number(const char *value, enum protocol_error expected)
{
	struct protocol_request request;
	char line[128];

	snprintf(line, sizeof(line), "{\"verb\":\"finish\",\"handle\":%s}", value);
	parse(&request, line);
	assert_int_equal(protocol_request_number(&request, "handle", 0, UINT64_MAX, 99), 99);
	assert_int_equal(request.error, expected);
	assert_memory_equal(request.why, "handle: ", 8);
	protocol_request_deinit(&request);
}

static void numbers_that_are_none_or_too_large_are_refused(void **state)
{
	assert_not_number("18446744073709551616", PROTOCOL_E_OUT_OF_RANGE);
	assert_not_number("99999999999999999999999999999999999999999999999999999999999999999999999",
		PROTOCOL_E_OUT_OF_RANGE);
	assert_not_number("-1", PROTOCOL_E_OUT_OF_RANGE);
	assert_not_number("-9007199254740993", PROTOCOL_E_OUT_OF_RANGE);
	assert_not_number("1e300", PROTOCOL_E_OUT_OF_RANGE);
	assert_not_number("1.5", PROTOCOL_E_BAD_REQUEST);
	assert_not_number("true", PROTOCOL_E_BAD_REQUEST);
	assert_not_number("[1]", PROTOCOL_E_BAD_REQUEST);
	assert_not_number("\"\"", PROTOCOL_E_BAD_REQUEST);
	assert_not_number("\"-\"", PROTOCOL_E_BAD_REQUEST);
	assert_not_number("\" 1\"", PROTOCOL_E_BAD_REQUEST);
	assert_not_number("\"0x10\"", PROTOCOL_E_BAD_REQUEST);
}

static void the_first_thing_wrong_with_a_request_is_the_one_told(void **state)
{
	struct protocol_request request;

	parse(&request, "{\"verb\":\"top\",\"n\":0,\"pool\":7}");
	assert_int_equal(protocol_request_number(&request, "n", 1, 1000, 20), 20);
	assert_null(protocol_request_text(&request, "pool", 63));
	assert_int_equal(request.error, PROTOCOL_E_OUT_OF_RANGE);
	assert_string_equal(request.why, "n: allowed are 1 to 1000");
	protocol_request_deinit(&request);
}

static void assert_id(const char *line, const char *expected)
{
	struct protocol_request request;

	parse(&request, line);
	assert_string_equal(request.id, expected);
	protocol_request_deinit(&request);
}

static void an_id_comes_back_as_it_was_sent(void **state)
{
	char line[256];

	assert_id("{\"verb\":\"status\",\"id\":7}", "7");
	assert_id("{\"verb\":\"status\",\"id\":123456789012345}", "123456789012345");
	assert_id("{\"verb\":\"status\",\"id\":\"a\\\"b\\n\"}", "\"a\\\"b\\n\"");
	assert_id("{\"verb\":\"status\",\"id\":null}", "");
	/* also when the request is wrong otherwise */
	assert_id("{\"id\":\"x\"}", "\"x\"");
	/* beyond 2^53: the digits, as a string */
	assert_id("{\"verb\":\"status\",\"id\":9007199254740993}", "\"9007199254740993\"");

	snprintf(line, sizeof(line), "{\"verb\":\"status\",\"id\":\"%0126d\"}", 1);
	assert_parses_as(line, PROTOCOL_OK);
	snprintf(line, sizeof(line), "{\"verb\":\"status\",\"id\":\"%0127d\"}", 1);
	assert_parses_as(line, PROTOCOL_E_BAD_REQUEST);
}

static void a_result_is_one_line(void **state)
{
	_cleanup_text_ struct text lines = {0};
	cJSON *result = cJSON_CreateObject();

	cJSON_AddRawToObject(result, "handle", "9007199254740993");
	assert_int_equal(protocol_append_result(&lines, "7", result), 0);
	assert_string_equal(lines.bytes, "{\"id\":7,\"ok\":true,\"result\":{\"handle\":9007199254740993}}\n");
	cJSON_Delete(result);
}

static void an_error_is_a_name_and_a_message(void **state)
{
	_cleanup_text_ struct text lines = {0};

	protocol_append_error(&lines, "", PROTOCOL_E_NO_UNIT, "no \"unit\"\n");
	assert_string_equal(
		lines.bytes, "{\"ok\":false,\"error\":\"no_unit\",\"message\":\"no \\\"unit\\\"\\n\"}\n");
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
	_cleanup_text_ struct text lines = {0};
	cJSON *name = cJSON_CreateString("a\xff\xe2\x82z\xe2\x82\xac");

	protocol_append_line(&lines, name);
	assert_string_equal(lines.bytes, "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\xe2\x82\xac\"\n");
	cJSON_Delete(name);
}

/* Takes the lines of a long answer apart as a client would: the joined pieces, freed by the caller. */
static char *join(char *lines, const char *id, size_t *ret_line_count)
{
	struct text whole = {0};
	bool more = true;

	*ret_line_count = 0;
	for (char *line = lines, *end; *line; line = end + 1, ++*ret_line_count) {
		cJSON *piece;

		end = strchr(line, '\n');
		assert_non_null(end);
		*end = 0;
		assert_true(end - line < PROTOCOL_MAX_ANSWER_LINE_BYTES);
		for (const char *at = line; *at;) {
			size_t bytes = utf8_character_bytes(at, (size_t)(end - at));

			assert_true(bytes > 0);
			at += bytes;
		}
		assert_true(more);
		piece = cJSON_Parse(line);
		assert_non_null(piece);
		assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(piece, "id")), id);
		more = cJSON_IsTrue(cJSON_GetObjectItem(piece, "more"));
		text_append(&whole, "%s", cJSON_GetStringValue(cJSON_GetObjectItem(piece, "chunk")));
		cJSON_Delete(piece);
	}
	assert_false(more);
	return whole.bytes;
}

/* @shift moves the characters against the cuts, so that each of their bytes is once where a cut would fall.
 */
static void assert_comes_in_pieces(size_t shift)
{
	const char *character = "\xF0\x9F\x90\x98"; /* four bytes */
	_cleanup_text_ struct text value = {0}, lines = {0};
	_cleanup_free_ char *whole = NULL;
	cJSON *result = cJSON_CreateObject(), *answer;
	size_t line_count;

	text_append(&value, "%.*s", (int)shift, "xxxx");
	for (size_t i = 0; i < 80000; i++)
		text_append(&value, "%s", character);
	text_append(&value, "\\\"\n");
	cJSON_AddStringToObject(result, "name", value.bytes);
	assert_int_equal(protocol_append_result(&lines, "\"q\"", result), 0);

	/* 320 kB of text in pieces of 130,560 bytes */
	whole = join(lines.bytes, "q", &line_count);
	assert_int_equal(line_count, 3);
	answer = cJSON_Parse(whole);
	assert_non_null(answer);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(answer, "ok")));
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(answer, "result"), "name")),
		value.bytes);
	cJSON_Delete(answer);
	cJSON_Delete(result);
}

static void a_long_result_comes_in_pieces_cut_between_characters(void **state)
{
	for (size_t shift = 0; shift < 4; shift++)
		assert_comes_in_pieces(shift);
}

static void pieces_full_of_quotes_stay_within_a_line(void **state)
{
	_cleanup_text_ struct text value = {0}, lines = {0};
	_cleanup_free_ char *whole = NULL;
	cJSON *result, *answer;
	size_t line_count;

	for (size_t i = 0; i < 300000; i++)
		text_append_bytes(&value, "\"", 1);
	result = cJSON_CreateString(value.bytes);
	assert_int_equal(protocol_append_result(&lines, "\"q\"", result), 0);
	whole = join(lines.bytes, "q", &line_count);
	answer = cJSON_Parse(whole);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(answer, "result")), value.bytes);
	cJSON_Delete(answer);
	cJSON_Delete(result);
}

/* Deterministic, so that a failure is found again. */
static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

static void damaged_requests_are_answered_or_refused_but_never_read_past(void **state)
{
	const char model[] = "{\"verb\":\"finish\",\"id\":\"\\u00e9\xc3\xa9\",\"handle\":9007199254740993,"
			     "\"x\":[{},-1.5e3]}";
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		size_t bytes = sizeof(model) - 1 - next_random(&seed) % 4;
		/* Exactly so large, for the address sanitizer. */
		_cleanup_free_ char *line = malloc(bytes);
		struct protocol_request request;

		memcpy(line, model, bytes);
		for (unsigned i = next_random(&seed) % 4; i > 0; i--)
			line[next_random(&seed) % bytes] = (char)next_random(&seed);
		protocol_request_init(&request, line, bytes);
		assert_true(request.error || request.verb);
		if (!request.error)
			protocol_request_number(&request, "handle", 0, UINT64_MAX, 0);
		protocol_request_deinit(&request);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_a_verb_and_arguments),
		cmocka_unit_test(what_is_not_json_is_bad_json),
		cmocka_unit_test(json_that_is_no_request_is_bad_request),
		cmocka_unit_test(sixteen_levels_of_nesting_are_read_and_seventeen_are_not),
		cmocka_unit_test(numbers_are_exact_up_to_64_bits),
		cmocka_unit_test(numbers_that_are_none_or_too_large_are_refused),
		cmocka_unit_test(the_first_thing_wrong_with_a_request_is_the_one_told),
		cmocka_unit_test(an_id_comes_back_as_it_was_sent),
		cmocka_unit_test(a_result_is_one_line),
		cmocka_unit_test(an_error_is_a_name_and_a_message),
		cmocka_unit_test(bytes_that_are_not_utf8_become_replacement_characters),
		cmocka_unit_test(a_long_result_comes_in_pieces_cut_between_characters),
		cmocka_unit_test(pieces_full_of_quotes_stay_within_a_line),
		cmocka_unit_test(damaged_requests_are_answered_or_refused_but_never_read_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
