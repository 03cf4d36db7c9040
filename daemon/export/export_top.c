/* SPDX-License-Identifier: MIT
 *
 * The table of functions. For people it has to explain itself: self and total side by side, wall and CPU time
 * in each, and below it what these words mean and how many ticks the numbers rest on. It fits a terminal of
 * 100 columns whatever a function is called.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/json.h"

#define NAME_COLUMNS 34
#define NUMBER_BYTES 24
#define CELL_BYTES 128

/* Eight columns: milliseconds, with a decimal as long as it has room. */
static const char *milliseconds(uint64_t ns, char into[NUMBER_BYTES])
{
	double ms = (double)ns / 1e6;

	if (ms < 999999.95)
		snprintf(into, NUMBER_BYTES, "%.1f", ms);
	else if (ms < 99999999.5)
		snprintf(into, NUMBER_BYTES, "%.0f", ms);
	else
		snprintf(into, NUMBER_BYTES, "%.0fs", ms / 1e3);
	return into;
}

/* Four columns. */
static const char *share(uint64_t part, uint64_t whole, char into[NUMBER_BYTES])
{
	double percent = whole > 0 ? 100.0 * (double)part / (double)whole : 0;

	if (part == 0)
		snprintf(into, NUMBER_BYTES, "-");
	else if (percent < 9.95)
		snprintf(into, NUMBER_BYTES, "%.1f%%", percent);
	else
		snprintf(into, NUMBER_BYTES, "%.0f%%", percent);
	return into;
}

static bool continues_character(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Cuts @text in the middle to at most @columns bytes, between characters: of a long name both ends tell most.
 */
static void cut_middle(const char *text, size_t columns, char into[CELL_BYTES])
{
	size_t length = strlen(text);

	if (length <= columns) {
		memcpy(into, text, length + 1);
		return;
	}
	size_t head = (columns - 2) / 4, tail = columns - 2 - head;
	while (head > 0 && continues_character(text[head]))
		head--;
	const char *end = text + length - tail;
	while (continues_character(*end))
		end++;
	snprintf(into, CELL_BYTES, "%.*s..%s", (int)head, text, end);
}

/* A terminal must not be steered by what a target calls its functions. */
static void replace_controls(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
	}
}

/* The name, and where it is declared if that fits too. */
static void function_cell(const struct function_name *frame, char into[CELL_BYTES])
{
	const char *slash = strrchr(frame->file, '/');
	const char *file = slash ? slash + 1 : frame->file;

	cut_middle(frame->name, NAME_COLUMNS, into);
	size_t used = strlen(into);
	char place[CELL_BYTES];
	int length = snprintf(place, sizeof(place), "  %s:%" PRIu32, file, frame->line);
	if (*file && used + (size_t)length <= NAME_COLUMNS)
		memcpy(into + used, place, (size_t)length + 1);
	replace_controls(into);
}

struct times {
	uint64_t wall_ns, cpu_ns;
};

/* One group of columns; the clock that the table is ordered by comes first. */
static void append_group(struct text *text, struct times part, struct times whole, bool cpu_first)
{
	char wall[NUMBER_BYTES], wall_share[NUMBER_BYTES], cpu[NUMBER_BYTES], cpu_share[NUMBER_BYTES];

	milliseconds(part.wall_ns, wall);
	share(part.wall_ns, whole.wall_ns, wall_share);
	milliseconds(part.cpu_ns, cpu);
	share(part.cpu_ns, whole.cpu_ns, cpu_share);
	if (cpu_first)
		text_append(text, "%8s %4s %8s %4s", cpu, cpu_share, wall, wall_share);
	else
		text_append(text, "%8s %4s %8s %4s", wall, wall_share, cpu, cpu_share);
}

static bool leads_with_cpu(enum profile_order order)
{
	return order == PROFILE_BY_SELF_CPU || order == PROFILE_BY_TOTAL_CPU;
}

static bool leads_with_total(enum profile_order order)
{
	return order == PROFILE_BY_TOTAL_WALL || order == PROFILE_BY_TOTAL_CPU;
}

static void append_heading(struct text *text, enum profile_order order)
{
	static const char *const self = "--------- self ----------", *const total =
									     "--------- total ---------";
	const char *columns =
		leads_with_cpu(order) ? "  cpu ms    %  wall ms    %" : " wall ms    %   cpu ms    %";
	bool total_first = leads_with_total(order);

	text_append(text, "  %s    %s\n", total_first ? total : self, total_first ? self : total);
	text_append(text, "%s  %s %7s  %s\n", columns, columns, "samples", "function");
}

static void append_row(struct text *text, const struct top_table *table, size_t row, enum profile_order order)
{
	const struct profile_function *function = &table->functions[row];
	struct times self = {function->self_wall_ns, function->self_cpu_ns};
	struct times total = {function->total_wall_ns, function->total_cpu_ns};
	struct times whole = {table->wall_ns, table->cpu_ns};
	bool total_first = leads_with_total(order);
	char cell[CELL_BYTES];

	append_group(text, total_first ? total : self, whole, leads_with_cpu(order));
	text_append(text, "  ");
	append_group(text, total_first ? self : total, whole, leads_with_cpu(order));
	function_cell(&table->frames[function->frame], cell);
	text_append(text, " %7" PRIu64 "  %s\n", function->self_samples, cell);
}

int export_why_empty_text(const struct accounting *accounting, struct text *text)
{
	if (accounting->expected == 0)
		text_append(text, "Nothing was sampled: no tick fell into this time.\n");
	else if (accounting->idle + accounting->missed == accounting->expected)
		text_append(text,
			"No PHP code ran: idle at %" PRIu64 " of %" PRIu64
			" ticks. Send it some requests meanwhile.\n",
			accounting->idle, accounting->expected);
	else
		text_append(text, "No sample could be taken; the ticks below say what became of each.\n");
	return text->error;
}

static void append_legend(struct text *text)
{
	text_append(text,
		"self   time in the function's own code          wall  time that passed, waiting included\n"
		"total  with everything it called, recursion     cpu   of that, the time on a processor\n"
		"       counted once                             %%     of all wall, or cpu, time in this "
		"table\n"
		"ticks  moments at which a sample was due, and what became of them:\n");
}

int export_top_table(const struct top_table *table, enum profile_order order, struct text *text)
{
	char wall[NUMBER_BYTES], cpu[NUMBER_BYTES], period[NUMBER_BYTES];

	if (table->samples == 0 && table->wall_ns == 0) {
		export_why_empty_text(&table->accounting, text);
	} else {
		text_append(text,
			"%s ms of PHP, %s ms of it on a processor; %" PRIu64 " samples, one each %s ms\n\n",
			milliseconds(table->wall_ns, wall), milliseconds(table->cpu_ns, cpu), table->samples,
			milliseconds(table->period_ns, period));
		append_heading(text, order);
		for (size_t row = 0; row < table->row_count; row++)
			append_row(text, table, row, order);
		if (table->function_count > table->row_count)
			text_append(text, "%64s... and %zu more functions\n", "",
				table->function_count - table->row_count);
		text_append(text, "\n");
		append_legend(text);
	}
	return export_accounting_text(&table->accounting, text);
}

int export_top_text(const struct profile *profile, enum profile_order order, size_t rows, struct text *text)
{
	_cleanup_free_ struct profile_function *functions = NULL;
	struct profile_node sum = profile_sum(profile);
	size_t count;

	int r = profile_functions(profile, order, &functions, &count);
	if (r < 0)
		return r;
	struct top_table table = {
		.period_ns = profile->period_ns,
		.samples = sum.samples,
		.wall_ns = sum.wall_ns,
		.cpu_ns = sum.cpu_ns,
		.accounting = profile->accounting,
		.frames = profile->frames,
		.functions = functions,
		.row_count = count < rows ? count : rows,
		.function_count = count,
	};
	return export_top_table(&table, order, text);
}

static bool add_times(cJSON *function, const char *key, uint64_t samples, uint64_t wall_ns, uint64_t cpu_ns)
{
	cJSON *json = cJSON_AddObjectToObject(function, key);
	bool ok = true;

	ok &= json_add_count(json, "samples", samples);
	ok &= json_add_count(json, "wall_ns", wall_ns);
	ok &= json_add_count(json, "cpu_ns", cpu_ns);
	return ok;
}

cJSON *export_top_json(const struct profile *profile, enum profile_order order, size_t rows)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	_cleanup_free_ struct profile_function *functions = NULL;
	struct profile_node sum = profile_sum(profile);
	size_t count = 0;

	bool ok = profile_functions(profile, order, &functions, &count) == 0;
	ok &= json_add_count(json, "period_ns", profile->period_ns);
	ok &= json_add_count(json, "duration_ns", profile->duration_ns);
	ok &= add_times(json, "total", sum.samples, sum.wall_ns, sum.cpu_ns);
	ok &= json_add_item(json, "accounting", export_accounting_json(&profile->accounting));
	ok &= json_add_count(json, "function_count", count);
	cJSON *list = cJSON_AddArrayToObject(json, "functions");
	for (size_t i = 0; i < count && i < rows && ok; i++) {
		const struct profile_function *function = &functions[i];
		const struct function_name *frame = &profile->frames[function->frame];
		cJSON *item = cJSON_CreateObject();

		ok &= json_add_string(item, "function", frame->name);
		ok &= json_add_string(item, "file", frame->file);
		ok &= json_add_count(item, "line", frame->line);
		ok &= add_times(
			item, "self", function->self_samples, function->self_wall_ns, function->self_cpu_ns);
		ok &= add_times(item, "total", function->total_samples, function->total_wall_ns,
			function->total_cpu_ns);
		ok &= json_append_item(list, item);
	}
	return ok ? TAKE(json) : NULL;
}
