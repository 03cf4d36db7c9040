/* SPDX-License-Identifier: MIT
 *
 * See harvest.h.
 */
#include "daemon/sampling/harvest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/sampling/fpm_master.h"
#include "daemon/sampling/proc_read.h"
#include "daemon/sampling/selection.h"

void harvest_init(struct harvest *harvest)
{
	*harvest = (struct harvest){.count = 0};
	pthread_mutex_init(&harvest->lock, NULL);
}

void harvest_deinit(struct harvest *harvest)
{
	pthread_mutex_destroy(&harvest->lock);
}

void harvest_replace(struct harvest *harvest, const struct selector *selectors, size_t count)
{
	pthread_mutex_lock(&harvest->lock);
	harvest->count = count < HARVEST_MAX ? count : HARVEST_MAX;
	for (size_t i = 0; i < harvest->count; i++) {
		harvest->selectors[i] = selectors[i];
		harvest->found[i] = 0;
	}
	pthread_mutex_unlock(&harvest->lock);
}

void harvest_note(struct harvest *harvest, const struct discovered *found, size_t found_count)
{
	pthread_mutex_lock(&harvest->lock);
	memset(harvest->found, 0, sizeof(harvest->found));
	for (size_t i = 0; i < found_count; i++)
		if (found[i].selector < harvest->count)
			harvest->found[found[i].selector]++;
	pthread_mutex_unlock(&harvest->lock);
}

static void describe(const struct selector *selector, struct selector_report *report)
{
	static const char *const words[] = {
		[SELECT_FPM_POOL] = "fpm_pool", [SELECT_EXECUTABLE] = "executable"};

	switch (selector->kind) {
	case SELECT_FPM_POOL:
	case SELECT_EXECUTABLE:
		snprintf(report->selects, sizeof(report->selects), "%s %s", words[selector->kind],
			selector->pattern);
		break;
	case SELECT_PID_FILE:
		snprintf(report->selects, sizeof(report->selects), "%s", selector->pattern);
		break;
	case SELECT_FPM_MASTER:
	case SELECT_PID:
		snprintf(report->selects, sizeof(report->selects), "process %d", selector->pid);
		break;
	}
}

static const char *why_no_master(pid_t pid)
{
	struct proc_identity identity;

	if (proc_identify(pid, &identity) < 0)
		return "there is no such process";
	if (fpm_title_of(pid) != FPM_TITLE_MASTER)
		return "it is no PHP-FPM master";
	return "it has no workers now, or they belong to an earlier entry";
}

static void explain(const struct selector *selector, struct selector_report *report)
{
	pid_t pid;

	switch (selector->kind) {
	case SELECT_FPM_POOL:
		snprintf(report->why, sizeof(report->why),
			"no worker of such a pool is there, or all belong to an earlier entry");
		break;
	case SELECT_EXECUTABLE:
		snprintf(report->why, sizeof(report->why),
			"no process runs such a file, or all belong to an earlier entry");
		break;
	case SELECT_PID_FILE: {
		int r = selection_read_pid_file(selector->pattern, &pid);

		if (r == 0)
			snprintf(report->why, sizeof(report->why), "process %d: %s", pid, why_no_master(pid));
		else
			snprintf(report->why, sizeof(report->why), "%s",
				r == -EINVAL ? "there is no process id in it" : strerror(-r));
		break;
	}
	case SELECT_FPM_MASTER:
	case SELECT_PID:
		snprintf(report->why, sizeof(report->why), "%s", why_no_master(selector->pid));
		break;
	}
}

size_t harvest_copy(struct harvest *harvest, struct selector_report *ret_reports, size_t max)
{
	struct selector selectors[HARVEST_MAX];
	size_t count;

	pthread_mutex_lock(&harvest->lock);
	count = harvest->count < max ? harvest->count : max;
	for (size_t i = 0; i < count; i++) {
		selectors[i] = harvest->selectors[i];
		ret_reports[i] = (struct selector_report){.found = harvest->found[i]};
	}
	pthread_mutex_unlock(&harvest->lock);
	for (size_t i = 0; i < count; i++) {
		snprintf(ret_reports[i].pool, sizeof(ret_reports[i].pool), "%s", selectors[i].pool);
		describe(&selectors[i], &ret_reports[i]);
		if (ret_reports[i].found == 0)
			explain(&selectors[i], &ret_reports[i]);
	}
	return count;
}
