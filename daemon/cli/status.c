/* SPDX-License-Identifier: MIT
 *
 * `status`: is the daemon well, and does it see what it should?
 */
#include <inttypes.h>
#include <stdio.h>

#include "daemon/cli/ask.h"
#include "daemon/cli/cli.h"
#include "daemon/export/export.h"

#define UNSTRETCHED_PPM 1000000u

static void print_pools(const cJSON *status)
{
	const cJSON *pools = cJSON_GetObjectItemCaseSensitive(status, "pools"), *pool;
	const char *separator = " in ";

	cJSON_ArrayForEach(pool, pools)
	{
		printf("%s%s", separator, cJSON_IsString(pool) ? pool->valuestring : "?");
		separator = ", ";
	}
}

/* The entries of pools: that find nothing, by their place in the file and their name. */
static void print_entries(const cJSON *status)
{
	const cJSON *entry;
	unsigned number = 0;

	cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(status, "entries"))
	{
		const char *pool = answer_string(entry, "pool");

		number++;
		if (answer_count(entry, "found") == 0)
			printf("nothing   pool %u%s%s%s: %s: %s\n", number, pool[0] ? " (" : "", pool,
				pool[0] ? ")" : "", answer_string(entry, "selects"),
				answer_string(entry, "why"));
	}
}

static double percent(uint64_t ppm)
{
	return (double)ppm / 1e4;
}

/* That samples are fewer than was asked for, and why. */
static void print_stretch(const cJSON *sampling, const cJSON *metrics)
{
	uint64_t stretch_ppm = answer_count(sampling, "stretch_ppm");
	char asked[SPAN_BYTES];

	if (stretch_ppm > UNSTRETCHED_PPM)
		printf("          STRETCHED from %s: it would take %.1f %% of one processor, and "
		       "sampling.cpu_budget\n"
		       "          allows %.1f %%; ask for lower rates, sample fewer processes, or allow "
		       "more\n",
			period_text(answer_count(sampling, "asked_period_ns"), asked),
			percent(answer_count(metrics, "cpu_demand_ppm")),
			percent(answer_count(metrics, "cpu_budget_ppm")));
}

/* How the work is shared out; nothing where one thread has it all. */
static void print_samplers(const cJSON *metrics)
{
	const cJSON *samplers = cJSON_GetObjectItemCaseSensitive(metrics, "samplers"), *sampler;
	uint64_t most_targets = 0;
	double most_missed = 0;

	if (cJSON_GetArraySize(samplers) < 2)
		return;
	cJSON_ArrayForEach(sampler, samplers)
	{
		uint64_t targets = answer_count(sampler, "targets"),
			 expected = answer_count(sampler, "expected");
		double missed = expected ? (double)answer_count(sampler, "missed") / (double)expected : 0;

		most_targets = targets > most_targets ? targets : most_targets;
		most_missed = missed > most_missed ? missed : most_missed;
	}
	printf("threads   %d; none has more than %" PRIu64
	       " target%s, none misses more than %.2g %% of its ticks\n",
		cJSON_GetArraySize(samplers), most_targets, most_targets == 1 ? "" : "s",
		100.0 * most_missed);
}

static void print_status(const cJSON *status)
{
	const cJSON *sampling = cJSON_GetObjectItemCaseSensitive(status, "sampling");
	const cJSON *limits = cJSON_GetObjectItemCaseSensitive(status, "limits");
	const cJSON *metrics = cJSON_GetObjectItemCaseSensitive(status, "metrics");
	struct accounting accounting = answer_accounting(status);
	_cleanup_text_ struct text ticks = {0};
	uint64_t uptime_ns = answer_count(status, "uptime_ns");
	const cJSON *refusal;
	char span[SPAN_BYTES];

	printf("cbox-profd %s, up %s, at %s\n", answer_string(status, "version"), span_text(uptime_ns, span),
		answer_string(status, "socket"));
	printf("targets   %" PRIu64 " of at most %" PRIu64, answer_count(status, "targets"),
		answer_count(limits, "max_targets"));
	print_pools(status);
	putchar('\n');
	printf("sampling  every %s, stacks up to %" PRIu64 " frames%s\n",
		period_text(answer_count(sampling, "period_ns"), span), answer_count(sampling, "max_depth"),
		answer_flag(sampling, "suspended") ? "; SUSPENDED: cbox-profd ctl resume" : "");
	print_stretch(sampling, metrics);
	printf("priority  %s\n",
		answer_flag(status, "realtime")
			? "real-time (SCHED_FIFO): ticks come on time"
			: "normal: on a busy machine ticks are missed; sampling.realtime must be true,\n"
			  "          and CAP_SYS_NICE given to it");
	print_samplers(metrics);
	if (uptime_ns > 0)
		printf("costs     %.2f %% of one processor for sampling, %.1f MiB of memory\n",
			100.0 * (double)answer_count(metrics, "sampler_cpu_ns") / (double)uptime_ns,
			(double)answer_count(metrics, "rss_bytes") / 1048576.0);
	if (export_accounting_text(&accounting, &ticks) == 0)
		printf("ticks     %s", ticks.bytes);
	print_entries(status);
	cJSON_ArrayForEach(refusal, cJSON_GetObjectItemCaseSensitive(status, "refusals"))
	{
		printf("refused   %s\n", answer_string(refusal, "why"));
	}
}

int cli_status(int argc, char **argv)
{
	struct question question = {0};
	const struct cli_option options[] = {QUESTION_JSON(question), QUESTION_SOCKET(question)};
	const struct cli_command command = {
		.verb = "status",
		.arguments = "",
		.summary = "Asks the daemon what it samples, what that costs, and which processes it could "
			   "not attach,\n"
			   "and which entries of pools: find nothing.",
		CLI_OPTIONS(options),
		.examples = "  cbox-profd status\n"
			    "  cbox-profd status --json | jq .accounting\n",
	};
	_cleanup_(cJSON_Deletep) cJSON *status = NULL;
	int first;

	int r = cli_options_parse(&command, argc, argv, &first);
	if (r != CLI_GO_ON)
		return r;
	_cleanup_(cJSON_Deletep) cJSON *request = question_request(&question, "status");
	r = question_ask(&question, request, &status);
	if (r == EXIT_OK && !question.json)
		print_status(status);
	return r;
}
