/* SPDX-License-Identifier: MIT
 *
 * `dump`: the PHP stack of a process as it is now, leaf first, without stopping it. A process that runs may
 * move while it is read; then it is read again, as is one whose stack is so deep that one look does not come
 * to its outer end. Of an FPM master, which runs no PHP, its workers are dumped.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "reader/php_process.h"
#include "daemon/cli/cli.h"
#include "daemon/cli/options.h"
#include "daemon/cli/process.h"
#include "daemon/export/export.h"
#include "daemon/export/json.h"
#include "daemon/profile/frame_table.h"

/* Looks at a process that keeps moving, with a pause between them that grows to a millisecond. */
#define MAX_LOOKS 100
#define MAX_PAUSE_NS 1000000
/* Looks for the outer end of a stack: each goes on where the last one ended (reader/stack_pages.h). */
#define MAX_LOOKS_FOR_END 3
/* Of one stack, and the stacks of a master's workers: STACK_MAX_FRAMES each. */
#define MAX_FRAMES 65536
#define MAX_FRAME_BYTES ((size_t)64 * 1024 * 1024)

struct dump {
	struct php_process *process;
	struct frame_table *frames;
	struct php_sample sample;
	bool torn; /* only the outer frames are certain */
	const char *state;
};

static uint32_t intern(void *context, const struct function_name *name)
{
	return frame_table_intern(context, name);
}

static const char *state_of(struct php_process *process)
{
	struct activity *activity = php_process_activity(process);
	struct activity_syscall syscall;

	return activity && activity_read_syscall(activity, &syscall) == 0 && syscall.blocked ? "waiting"
											     : "running";
}

static void pause_before(unsigned look)
{
	long pause_ns = 2000l << (look < 10 ? look : 10);

	nanosleep(&(struct timespec){.tv_nsec = pause_ns < MAX_PAUSE_NS ? pause_ns : MAX_PAUSE_NS}, NULL);
}

static bool lacks_outer_end(const struct php_sample *sample)
{
	return sample->omitted > 0 && sample->omitted_after + 1 == sample->count;
}

/* Looks until one snapshot holds. 0, or what php_process_sample() gave last. */
static int look(struct dump *dump)
{
	int r = 0;

	for (unsigned i = 0; i < MAX_LOOKS; i++) {
		r = php_process_sample(dump->process, &dump->sample);
		dump->torn = r == PHP_PROCESS_E_TORN;
		if (r == PHP_PROCESS_E_IDLE) {
			dump->state = "idle";
			dump->sample.count = dump->sample.omitted = 0;
			return 0;
		}
		dump->state = state_of(dump->process);
		if (r == 0 && lacks_outer_end(&dump->sample) && i < MAX_LOOKS_FOR_END)
			continue;
		if (r != PHP_PROCESS_E_TORN && r != PHP_PROCESS_E_UNREADABLE)
			return r;
		pause_before(i);
	}
	return dump->torn ? 0 : r;
}

/* The context in force: the client's own before the incoming header's. NULL: none. */
static const struct trace_context *context_of(const struct request *request)
{
	if (request->context_state == CONTEXT_VALID)
		return &request->context;
	return request->has_traceparent ? &request->traceparent : NULL;
}

static const char *kind_name(enum function_kind kind)
{
	static const char *const names[] = {
		[FUNCTION_USER] = "user",
		[FUNCTION_INTERNAL] = "internal",
		[FUNCTION_MAIN] = "main",
		[FUNCTION_INCLUDE] = "include",
		[FUNCTION_EVAL] = "eval",
		[FUNCTION_CLOSURE] = "closure",
	};

	return names[kind];
}

static bool add_frame(cJSON *list, const struct frame_table *frames, const struct frame *frame)
{
	const struct function_name *name = frame_table_get(frames, frame->name_id);
	cJSON *json = cJSON_CreateObject();
	bool ok = true;

	ok &= json_add_string(json, "function", name->name);
	ok &= json_add_string(json, "file", name->file);
	ok &= json_add_count(json, "line", frame->line);
	ok &= json_add_count(json, "declared_line", name->line);
	ok &= json_add_bool(json, "line_approximate", frame->line_approximate);
	ok &= json_add_string(json, "kind", kind_name(frame->kind));
	return json_append_item(list, json) && ok;
}

static bool add_request(cJSON *json, const struct request *request)
{
	static const char *const states[] = {
		[CONTEXT_ABSENT] = "absent", [CONTEXT_VALID] = "valid", [CONTEXT_INVALID] = "invalid"};
	const struct trace_context *context = context_of(request);
	cJSON *object = cJSON_AddObjectToObject(json, "request");
	bool ok = true;

	ok &= json_add_string(object, "method", request->method);
	ok &= json_add_string(object, "path", request->path);
	ok &= json_add_string_or_null(object, "trace_id", context ? context->trace_id : "");
	ok &= json_add_string_or_null(object, "span_id", context ? context->span_id : "");
	ok &= json_add_string(object, "context", states[request->context_state]);
	ok &= json_add_count(object, "generation", request->generation);
	return ok;
}

static cJSON *dump_json(const struct dump *dump)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	const struct php_binary *binary = php_process_binary(dump->process);
	bool ok = true;

	ok &= json_add_signed(json, "pid", php_process_pid(dump->process));
	ok &= json_add_string(json, "php_version", binary->version);
	ok &= json_add_string(json, "sapi", binary->sapi);
	ok &= json_add_string(json, "state", dump->state);
	ok &= json_add_bool(json, "torn", dump->torn);
	ok &= add_request(json, &dump->sample.request);
	cJSON *list = cJSON_AddArrayToObject(json, "frames");
	for (size_t i = 0; i < dump->sample.count && ok; i++)
		ok &= add_frame(list, dump->frames, &dump->sample.frames[i]);
	ok &= json_add_count(json, "omitted", dump->sample.omitted);
	ok &= json_add_bool(json, "omitted_at_least", dump->sample.omitted_at_least);
	return ok ? TAKE(json) : NULL;
}

static void print_frame(size_t number, const struct frame_table *frames, const struct frame *frame)
{
	const struct function_name *name = frame_table_get(frames, frame->name_id);
	bool called = frame->kind != FUNCTION_MAIN && name->name[0] != '<';

	printf("#%-3zu %s%s", number, name->name, called ? "()" : "");
	if (name->file[0])
		printf("  %s:%" PRIu32 "%s", name->file, frame->line,
			frame->line_approximate ? "  (or near: the line of a running function is a guess)"
						: "");
	else if (called)
		printf("  [internal]");
	putchar('\n');
}

static void print_gap(const struct php_sample *sample)
{
	if (!sample->omitted_at_least)
		printf("     ... %zu frames left out\n", sample->omitted);
	else if (!lacks_outer_end(sample))
		printf("     ... too deep to be read whole: %zu frames or more left out, the outermost ones "
		       "follow\n",
			sample->omitted);
	else
		printf("     ... too deep to be read whole: %zu frames or more are outside of these, and the "
		       "outermost ones could not be reached\n",
			sample->omitted);
}

static void print_dump(const struct dump *dump)
{
	const struct php_binary *binary = php_process_binary(dump->process);
	const struct php_sample *sample = &dump->sample;
	const struct trace_context *context = context_of(&sample->request);

	printf("process %d: PHP %s (%s), %s", php_process_pid(dump->process), binary->version, binary->sapi,
		dump->state);
	if (sample->request.method[0] && strcmp(dump->state, "idle") != 0)
		printf(", %s %s", sample->request.method, sample->request.path);
	if (context && context->trace_id[0] && strcmp(dump->state, "idle") != 0)
		printf(", trace %s", context->trace_id);
	putchar('\n');
	if (sample->count == 0)
		puts("no PHP code on its stack: it waits for a request");
	if (dump->torn)
		printf("     ... it moved at each of %d looks: the frames below are certain, those above are "
		       "not known\n",
			MAX_LOOKS);
	for (size_t i = 0; i < sample->count; i++) {
		print_frame(i, dump->frames, &sample->frames[i]);
		if (sample->omitted > 0 && i == sample->omitted_after)
			print_gap(sample);
	}
}

/* Dumps one process; an exit status. */
static int dump_process(pid_t pid, bool json)
{
	_cleanup_free_ struct dump *dump = calloc(1, sizeof(*dump));
	_cleanup_(frame_table_freep) struct frame_table *frames = NULL;
	_cleanup_(php_process_closep) struct php_process *process = NULL;
	const struct php_process_options options = {0};
	char why[512] = "";

	if (!dump || frame_table_new(MAX_FRAMES, MAX_FRAME_BYTES, &frames) < 0)
		return cli_fail(EXIT_FAILED, "no memory");
	const struct frame_names names = {.intern = intern, .context = frames};
	int r = php_process_open(pid, &names, &options, &process, why, sizeof(why));
	if (r != 0)
		return cli_fail(process_exit_status(r), "%s", why);
	dump->process = process;
	dump->frames = frames;
	r = look(dump);
	if (r == PHP_PROCESS_E_GONE)
		return cli_fail(EXIT_NO_TARGET, "process %d: it has ended", pid);
	if (r != 0)
		return cli_fail(process_exit_status(r),
			"process %d: its stack could not be read in %d looks (%s); is it starting or ending? "
			"try again",
			pid, MAX_LOOKS, r < 0 ? strerror(-r) : "its memory makes no sense");
	if (!json) {
		print_dump(dump);
		return EXIT_OK;
	}
	_cleanup_(cJSON_Deletep) cJSON *told = dump_json(dump);
	_cleanup_free_ char *text = cJSON_PrintUnformatted(told);
	if (!text)
		return cli_fail(EXIT_FAILED, "no memory");
	puts(text);
	return EXIT_OK;
}

static int dump_workers(pid_t master, bool json)
{
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	const struct discovered *workers;
	size_t count = 0;
	int status = EXIT_OK;

	int r = discovery_new(&discovery);
	if (r == 0)
		r = process_means(master, discovery, &workers, &count);
	if (r < 0)
		return cli_fail(
			EXIT_FAILED, "process %d: its workers can't be listed: %s", master, strerror(-r));
	if (count == 0)
		return cli_fail(EXIT_NO_TARGET,
			"process %d: this FPM master has no workers (pm = ondemand starts them with the "
			"first "
			"request); send it a request meanwhile",
			master);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && !json)
			putchar('\n');
		int worker_status = dump_process(workers[i].pid, json);
		if (worker_status != EXIT_OK)
			status = worker_status;
	}
	return status;
}

int cli_dump(int argc, char **argv)
{
	bool json = false;
	const struct cli_option options[] = {
		{"json", 0, NULL, cli_take_flag, &json, "JSON, one line a process"},
	};
	const struct cli_command command = {
		.verb = "dump",
		.arguments = "PID",
		.summary = "Prints the PHP stack of a process as it is now, innermost frame first, with the "
			   "line each\n"
			   "frame runs. PID is any PHP process, or an FPM master: then each of its workers "
			   "is printed.\n"
			   "The process is not stopped.",
		CLI_OPTIONS(options),
		.examples = "  cbox-profd dump 4711\n"
			    "  cbox-profd dump $(pgrep -o php-fpm)\n"
			    "  cbox-profd dump --json 4711 | jq -r '.frames[].function'\n",
		.min_arguments = 1,
		.max_arguments = 1,
	};
	pid_t pid;
	int first;

	int r = cli_options_parse(&command, argc, argv, &first);
	if (r != CLI_GO_ON)
		return r;
	const char *allowed = cli_take_pid(argv[first], &pid);
	if (allowed)
		return cli_usage_error("dump", "\"%s\": must be %s", argv[first], allowed);
	if (process_is_kernel_thread(pid))
		return cli_fail(EXIT_NO_TARGET, "process %d: it is a kernel thread, not PHP", pid);
	return process_is_master(pid) ? dump_workers(pid, json) : dump_process(pid, json);
}
