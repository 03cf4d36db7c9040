/* SPDX-License-Identifier: MIT
 *
 * The grammar of the trace context: what is of it, what is not, and that what was built is what is parsed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/trace_context.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define PARENT "00-" TRACE "-" SPAN "-01"
#define NO_TRACE "00000000000000000000000000000000"
#define NO_SPAN "0000000000000000"

#define PROPERTY_ROUNDS 20000

static struct trace_context parsed(const char *text)
{
	struct trace_context context;

	assert_int_equal(trace_context_parse(text, strlen(text), &context), 0);
	return context;
}

/* Parses an exact copy on the heap, so that AddressSanitizer sees a byte read past the end. */
static int parse_exact(const char *text, size_t bytes, struct trace_context *ret_context)
{
	char *copy = malloc(bytes ? bytes : 1);
	int r;

	memcpy(copy, text, bytes);
	r = trace_context_parse(copy, bytes, ret_context);
	free(copy);
	return r;
}

static void assert_refused(const char *text)
{
	struct trace_context context;

	memset(&context, 0x5a, sizeof(context));
	assert_int_equal(parse_exact(text, strlen(text), &context), -EINVAL);
	for (size_t i = 0; i < sizeof(context); i++)
		assert_int_equal(((unsigned char *)&context)[i], 0x5a);
}

static void ids_and_flags_alone_have_the_defaults(void **state)
{
	struct trace_context context = parsed(PARENT);

	assert_string_equal(context.trace_id, TRACE);
	assert_string_equal(context.span_id, SPAN);
	assert_true(context.sampled);
	assert_false(context.has_unit_type);
	assert_int_equal(context.unit_type, UNIT_OTHER);
	assert_int_equal(context.handle, 0);
	assert_true(context.profile);
	assert_int_equal(context.period_us, 0);
	assert_int_equal(context.max_depth, 0);
	assert_string_equal(context.name, "");
}

static void all_fields_are_read(void **state)
{
	struct trace_context context = parsed(
		"00-" TRACE "-" SPAN "-00;u=queue;h=9223372036854775807;p=0;r=100;d=256;n=GET /users/{id}");

	assert_false(context.sampled);
	assert_true(context.has_unit_type);
	assert_int_equal(context.unit_type, UNIT_QUEUE);
	assert_int_equal(context.handle, INT64_MAX);
	assert_false(context.profile);
	assert_int_equal(context.period_us, 100);
	assert_int_equal(context.max_depth, 256);
	assert_string_equal(context.name, "GET /users/{id}");
}

static void fields_come_in_any_order(void **state)
{
	struct trace_context context = parsed(PARENT ";n=x;d=7;u=http;p=1;h=42");

	assert_string_equal(context.name, "x");
	assert_int_equal(context.max_depth, 7);
	assert_int_equal(context.unit_type, UNIT_HTTP);
	assert_true(context.profile);
	assert_int_equal(context.handle, 42);
}

static void sampled_is_bit_0_of_the_flags(void **state)
{
	assert_true(parsed("00-" TRACE "-" SPAN "-ff").sampled);
	assert_false(parsed("00-" TRACE "-" SPAN "-fe").sampled);
}

static void zero_ids_are_absent_each_by_itself(void **state)
{
	struct trace_context context = parsed("00-" NO_TRACE "-" NO_SPAN "-01;h=5");

	assert_string_equal(context.trace_id, "");
	assert_string_equal(context.span_id, "");
	assert_int_equal(context.handle, 5);
	context = parsed("00-" TRACE "-" NO_SPAN "-01");
	assert_string_equal(context.trace_id, TRACE);
	assert_string_equal(context.span_id, "");
}

static void unknown_unit_types_are_other(void **state)
{
	assert_int_equal(parsed(PARENT ";u=schedule").unit_type, UNIT_SCHEDULE);
	assert_int_equal(parsed(PARENT ";u=command").unit_type, UNIT_COMMAND);
	assert_int_equal(parsed(PARENT ";u=other").unit_type, UNIT_OTHER);
	assert_int_equal(parsed(PARENT ";u=web_socket").unit_type, UNIT_OTHER);
	assert_true(parsed(PARENT ";u=web_socket").has_unit_type);
	assert_refused(PARENT ";u=");
	assert_refused(PARENT ";u=HTTP");
	assert_refused(PARENT ";u=abcdefghijklmnopqrstuvwxyzabcdefg"); /* 33 */
}

static void every_name_has_its_unit_type(void **state)
{
	for (enum unit_type type = UNIT_HTTP; type <= UNIT_OTHER; type++)
		assert_int_equal(unit_type_from_name(unit_type_name(type)), type);
	assert_int_equal(unit_type_from_name(""), UNIT_OTHER);
	assert_int_equal(unit_type_from_name("https"), UNIT_OTHER);
}

static void every_byte_of_the_ids_and_flags_matters(void **state)
{
	for (size_t i = 0; i < strlen(PARENT); i++) {
		static const char wrong[] = {'g', 'G', 'F', ' ', '\0', '/', ':', '`', '@', '\x80'};

		for (size_t j = 0; j < sizeof(wrong); j++) {
			struct trace_context context;
			char text[] = PARENT;

			text[i] = wrong[j];
			assert_int_equal(parse_exact(text, strlen(PARENT), &context), -EINVAL);
		}
	}
}

static void every_shorter_text_is_refused(void **state)
{
	struct trace_context context;

	for (size_t bytes = 0; bytes < strlen(PARENT); bytes++)
		assert_int_equal(parse_exact(PARENT, bytes, &context), -EINVAL);
}

static void upper_case_hex_is_refused(void **state)
{
	assert_refused("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01");
	assert_refused("00-" TRACE "-00F067AA0BA902B7-01");
	assert_refused("00-" TRACE "-" SPAN "-0A");
}

static void other_versions_are_refused_in_the_global(void **state)
{
	assert_refused("01-" TRACE "-" SPAN "-01");
	assert_refused("ff-" TRACE "-" SPAN "-01");
}

static void field_twice_is_refused(void **state)
{
	assert_refused(PARENT ";h=1;h=1");
	assert_refused(PARENT ";n=a;u=http;n=b");
}

static void unknown_field_and_stray_separators_are_refused(void **state)
{
	assert_refused(PARENT ";x=1");
	assert_refused(PARENT ";U=http");
	assert_refused(PARENT ";");
	assert_refused(PARENT ";;h=1");
	assert_refused(PARENT ";h=1;");
	assert_refused(PARENT ";h");
	assert_refused(PARENT ";h1");
	assert_refused(PARENT " ;h=1");
	assert_refused(PARENT "h=1");
	assert_refused(PARENT "\n");
}

static void numbers_out_of_range_or_form_are_refused(void **state)
{
	assert_refused(PARENT ";h=");
	assert_refused(PARENT ";h=0");
	assert_refused(PARENT ";h=-1");
	assert_refused(PARENT ";h=+1");
	assert_refused(PARENT ";h=01");
	assert_refused(PARENT ";h=1 ");
	assert_refused(PARENT ";h=0x1");
	assert_refused(PARENT ";h=1e3");
	assert_refused(PARENT ";h=9223372036854775808");
	assert_refused(PARENT ";h=18446744073709551617"); /* 2^64 + 1 */
	assert_refused(PARENT ";r=4294967296");
	assert_refused(PARENT ";d=4294967297");
	assert_refused(PARENT ";p=2");
	assert_refused(PARENT ";p=");
	assert_refused(PARENT ";p=11");
	assert_int_equal(parsed(PARENT ";r=4294967295").period_us, UINT32_MAX);
}

static void name_is_1_to_128_bytes(void **state)
{
	char text[sizeof(PARENT ";n=") + 129] = PARENT ";n=";

	assert_refused(text);
	memset(text + strlen(text), 'n', 128);
	assert_int_equal(strlen(parsed(text).name), 128);
	strcat(text, "n");
	assert_refused(text);
}

static void name_is_printable_utf_8(void **state)
{
	/* 2, 3 and 4 bytes; the first and last of each length; around the surrogates. */
	static const char *const good[] = {"\xc2\xa0", "\xc3\xa9", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
		"\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", " ", "~", "a=b"};
	/* Control characters, lone and missing continuations, overlong forms, surrogates, past U+10FFFF. */
	static const char *const bad[] = {"\x01", "\t", "\n", "\x1b[2J", "\x7f", "\xc2\x80", "\xc2\x9f",
		"\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf",
		"\xed\xa0\x80", "\xed\xbf\xbf", "\xe2\x82", "\xf0\x80\x80\xaf", "\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82("};
	char text[128];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), PARENT ";n=%s", good[i]);
		assert_string_equal(parsed(text).name, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), PARENT ";n=%s", bad[i]);
		assert_refused(text);
	}
}

static void name_with_a_zero_byte_is_refused(void **state)
{
	static const char text[] = PARENT ";n=a\0b";
	struct trace_context context;

	assert_int_equal(parse_exact(text, sizeof(text) - 1, &context), -EINVAL);
}

static void more_than_512_bytes_are_refused(void **state)
{
	struct trace_context context;
	char text[8192];

	memset(text, 'a', sizeof(text));
	memcpy(text, PARENT, strlen(PARENT));
	assert_int_equal(parse_exact(text, 513, &context), -EINVAL);
	assert_int_equal(parse_exact(text, sizeof(text), &context), -EINVAL);
}

static void header_is_the_first_part_alone(void **state)
{
	struct trace_context context;

	assert_int_equal(trace_context_parse_traceparent(PARENT, strlen(PARENT), &context), 0);
	assert_string_equal(context.trace_id, TRACE);
	assert_string_equal(context.span_id, SPAN);
	assert_true(context.sampled);
	assert_true(context.profile);
	assert_int_equal(
		trace_context_parse_traceparent(PARENT ";h=1", strlen(PARENT ";h=1"), &context), -EINVAL);
	assert_int_equal(
		trace_context_parse_traceparent(PARENT "-00", strlen(PARENT "-00"), &context), -EINVAL);
}

static void later_versions_of_the_header_are_read_as_far_as_they_are_known(void **state)
{
	static const char later[] = "cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like";
	struct trace_context context;

	assert_int_equal(trace_context_parse_traceparent(later, strlen(later), &context), 0);
	assert_string_equal(context.trace_id, TRACE);
	assert_int_equal(trace_context_parse_traceparent(later, strlen(PARENT), &context), 0);
	assert_int_equal(trace_context_parse_traceparent(
				 "cc-" TRACE "-" SPAN "-01.what", strlen(PARENT) + 5, &context),
		-EINVAL);
	assert_int_equal(
		trace_context_parse_traceparent("ff-" TRACE "-" SPAN "-01", strlen(PARENT), &context),
		-EINVAL);
}

/* A deterministic generator, so that a failure is the same failure tomorrow. */
static uint64_t random_u64(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void random_hex(uint64_t *seed, char *into, size_t digits)
{
	for (size_t i = 0; i < digits; i++)
		into[i] = "0123456789abcdef"[random_u64(seed) % 16];
	into[digits] = '\0';
}

static void random_name(uint64_t *seed, char *into)
{
	static const char *const pieces[] = {
		"a", "Z", "/", "{id}", " ", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
	size_t count = 1 + random_u64(seed) % 32;

	into[0] = '\0';
	while (count-- > 0)
		strcat(into, pieces[random_u64(seed) % 8]);
}

static void what_was_built_is_what_is_parsed(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;

	for (unsigned round = 0; round < PROPERTY_ROUNDS; round++) {
		char fields[6][160], text[TRACE_CONTEXT_MAX_BYTES + 1], trace[33], span[17], name[129];
		uint64_t handle = 1 + random_u64(&seed) % INT64_MAX;
		uint32_t period = 1 + (uint32_t)(random_u64(&seed) % UINT32_MAX);
		uint32_t depth = 1 + (uint32_t)(random_u64(&seed) % UINT32_MAX);
		bool profile = random_u64(&seed) % 2;
		enum unit_type type = (enum unit_type)(random_u64(&seed) % (UNIT_OTHER + 1));
		unsigned flags = (unsigned)(random_u64(&seed) % 256),
			 given = (unsigned)(random_u64(&seed) % 64);
		struct trace_context context;

		random_hex(&seed, trace, 32);
		random_hex(&seed, span, 16);
		random_name(&seed, name);
		snprintf(fields[0], sizeof(fields[0]), ";u=%s", unit_type_name(type));
		snprintf(fields[1], sizeof(fields[1]), ";h=%" PRIu64, handle);
		snprintf(fields[2], sizeof(fields[2]), ";p=%d", profile);
		snprintf(fields[3], sizeof(fields[3]), ";r=%u", period);
		snprintf(fields[4], sizeof(fields[4]), ";d=%u", depth);
		snprintf(fields[5], sizeof(fields[5]), ";n=%s", name);
		snprintf(text, sizeof(text), "00-%s-%s-%02x", trace, span, flags);
		for (size_t i = 0, first = random_u64(&seed) % 6; i < 6; i++)
			if (given & 1U << (first + i) % 6)
				strcat(text, fields[(first + i) % 6]);

		assert_int_equal(parse_exact(text, strlen(text), &context), 0);
		assert_string_equal(context.trace_id, trace);
		assert_string_equal(context.span_id, span);
		assert_int_equal(context.sampled, flags & 1);
		assert_int_equal(context.has_unit_type, given & 1);
		assert_int_equal(context.unit_type, given & 1 ? type : UNIT_OTHER);
		assert_int_equal(context.handle, given & 2 ? handle : 0);
		assert_int_equal(context.profile, given & 4 ? profile : true);
		assert_int_equal(context.period_us, given & 8 ? period : 0);
		assert_int_equal(context.max_depth, given & 16 ? depth : 0);
		assert_string_equal(context.name, given & 32 ? name : "");
	}
}

static void random_bytes_are_never_read_past_and_never_accepted_wrongly(void **state)
{
	uint64_t seed = 4711;

	for (unsigned round = 0; round < PROPERTY_ROUNDS; round++) {
		char text[TRACE_CONTEXT_MAX_BYTES] = PARENT ";u=http;h=42;p=0;r=1000;d=64;n=GET /";
		size_t bytes = strlen(text);
		struct trace_context context;

		/* A good text with some bytes changed and the end cut or grown: nearer to the edge than
		 * noise. */
		for (unsigned changes = random_u64(&seed) % 4; changes > 0; changes--)
			text[random_u64(&seed) % bytes] = (char)random_u64(&seed);
		if (random_u64(&seed) % 2)
			bytes = random_u64(&seed) % (bytes + 16);
		if (parse_exact(text, bytes, &context) != 0)
			continue;
		assert_memory_equal(text, "00-", 3);
		assert_true(strlen(context.trace_id) == 32 || strlen(context.trace_id) == 0);
		assert_true(strlen(context.span_id) == 16 || strlen(context.span_id) == 0);
		assert_true(strlen(context.name) <= TRACE_CONTEXT_MAX_NAME_BYTES);
		assert_null(strchr(context.name, ';'));
		assert_in_range(context.handle, 0, INT64_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_and_flags_alone_have_the_defaults),
		cmocka_unit_test(all_fields_are_read),
		cmocka_unit_test(fields_come_in_any_order),
		cmocka_unit_test(sampled_is_bit_0_of_the_flags),
		cmocka_unit_test(zero_ids_are_absent_each_by_itself),
		cmocka_unit_test(unknown_unit_types_are_other),
		cmocka_unit_test(every_name_has_its_unit_type),
		cmocka_unit_test(every_byte_of_the_ids_and_flags_matters),
		cmocka_unit_test(every_shorter_text_is_refused),
		cmocka_unit_test(upper_case_hex_is_refused),
		cmocka_unit_test(other_versions_are_refused_in_the_global),
		cmocka_unit_test(field_twice_is_refused),
		cmocka_unit_test(unknown_field_and_stray_separators_are_refused),
		cmocka_unit_test(numbers_out_of_range_or_form_are_refused),
		cmocka_unit_test(name_is_1_to_128_bytes),
		cmocka_unit_test(name_is_printable_utf_8),
		cmocka_unit_test(name_with_a_zero_byte_is_refused),
		cmocka_unit_test(more_than_512_bytes_are_refused),
		cmocka_unit_test(header_is_the_first_part_alone),
		cmocka_unit_test(later_versions_of_the_header_are_read_as_far_as_they_are_known),
		cmocka_unit_test(what_was_built_is_what_is_parsed),
		cmocka_unit_test(random_bytes_are_never_read_past_and_never_accepted_wrongly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
