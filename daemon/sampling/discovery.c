/* SPDX-License-Identifier: MIT
 *
 * Which processes the selectors select. Two things are kept apart by what they cost: following the masters
 * that are known (one system call each, every time) and looking through /proc for what is new (every now and
 * then, or when a master is gone).
 *
 * A title is a claim that any process can make. A master found by its title is believed only when its
 * executable is called something with "php", or matches a pattern that the operator wrote. A wrong belief
 * costs nothing but a look: whether there is PHP in it, and which, is proved by whoever attaches.
 */
#include "daemon/sampling/discovery.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "daemon/sampling/fpm_master.h"
#include "daemon/sampling/proc_read.h"
#include "daemon/sampling/selection.h"

enum {
	MAX_LOOSE = 8192, /* processes selected by their executable */
};

/* A process found, and the rule that names its group: the first that selects it. */
struct finding {
	struct discovered process;
	int rule;
};

struct findings {
	struct finding *items;
	size_t count, room;
};

struct discovery {
	struct selection selection;
	struct fpm_masters masters;
	struct findings loose; /* selected by executable; renewed by each look through /proc */
	struct findings found; /* scratch of a scan */
	struct discovered *results;
	unsigned scans;   /* since the last look through /proc */
	bool look_is_due; /* the selectors are new */
};

int discovery_new(struct discovery **ret_discovery)
{
	struct discovery *discovery = calloc(1, sizeof(*discovery));

	if (!discovery)
		return -ENOMEM;
	*ret_discovery = discovery;
	return 0;
}

void discovery_free(struct discovery *discovery)
{
	fpm_masters_deinit(&discovery->masters);
	selection_deinit(&discovery->selection);
	free(discovery->loose.items);
	free(discovery->found.items);
	free(discovery->results);
	free(discovery);
}

int discovery_select(struct discovery *discovery, const struct selector *selectors, size_t count)
{
	int r = selection_replace(&discovery->selection, selectors, count);

	if (r < 0)
		return r;
	discovery->loose.count = 0;
	discovery->look_is_due = true;
	fpm_masters_see_workers_anew(&discovery->masters);
	return 0;
}

static int findings_add(struct findings *findings, const struct discovered *process, int rule)
{
	if (findings->count == findings->room) {
		size_t room = findings->room ? 2 * findings->room : 64;
		struct finding *items = realloc(findings->items, room * sizeof(*items));

		if (!items)
			return -ENOMEM;
		findings->items = items;
		findings->room = room;
	}
	findings->items[findings->count++] = (struct finding){.process = *process, .rule = rule};
	return 0;
}

static int look_at_process(struct discovery *discovery, pid_t pid)
{
	struct candidate candidate = {0};
	struct discovered process;
	char title[PROC_TITLE_BYTES];
	bool is_named;
	int rule;

	if (fpm_masters_find(&discovery->masters, pid) ||
		proc_read_executable(pid, candidate.executable, sizeof(candidate.executable)) < 0)
		return 0;
	is_named = selection_names_executable(&discovery->selection, candidate.executable);
	if ((!is_named && !fpm_is_called_php(candidate.executable)) || proc_read_title(pid, title) < 0)
		return 0;
	if (fpm_title_parse(title, &candidate.pool) == FPM_TITLE_MASTER) {
		struct fpm_master *master;
		int r = fpm_is_newborn_worker(pid) ? 0 : fpm_masters_add(&discovery->masters, pid, &master);

		return r == -ENOMEM ? r : 0;
	}
	if (!is_named || proc_identify(pid, &candidate.identity) < 0 ||
		fpm_masters_find(&discovery->masters, candidate.identity.parent_pid) ||
		discovery->loose.count == MAX_LOOSE)
		return 0;
	rule = selection_first_rule(&discovery->selection, &candidate);
	if (rule == SELECTION_NO_RULE)
		return 0;
	process = selection_describe(&discovery->selection, &candidate, rule);
	return findings_add(&discovery->loose, &process, rule);
}

static void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

static int look_through_proc(struct discovery *discovery)
{
	_cleanup_(close_directory) DIR *directory = NULL;
	struct dirent *entry;

	discovery->loose.count = 0;
	if (!selection_is_open(&discovery->selection))
		return 0;
	directory = opendir("/proc");
	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		int r;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = look_at_process(discovery, (pid_t)strtol(entry->d_name, NULL, 10));
		if (r < 0)
			return r;
	}
	return 0;
}

/* The rule of a worker is found once and kept with it: it changes only with the selectors and their ties. */
static int collect_workers(struct discovery *discovery, struct fpm_master *master)
{
	for (size_t i = 0; i < master->worker_count; i++) {
		struct fpm_worker *worker = &master->workers[i];
		struct candidate candidate = {
			.identity = worker->identity, .master_pid = master->pid, .pool = worker->pool};
		struct discovered process;
		int r;

		if (worker->note == FPM_WORKER_NEW || !worker->pool[0]) {
			if (proc_read_executable(worker->identity.pid, candidate.executable,
				    sizeof(candidate.executable)) < 0)
				candidate.executable[0] = '\0';
			worker->note = selection_first_rule(&discovery->selection, &candidate);
		}
		if (worker->note == SELECTION_NO_RULE)
			continue;
		process = selection_describe(&discovery->selection, &candidate, worker->note);
		r = findings_add(&discovery->found, &process, worker->note);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What was selected by its executable, unless it has died since the last look. Signal 0 is sent to nobody. */
static int collect_loose(struct discovery *discovery)
{
	for (size_t i = 0; i < discovery->loose.count; i++) {
		const struct finding *finding = &discovery->loose.items[i];
		int r;

		if (kill(finding->process.pid, 0) < 0 && errno == ESRCH)
			continue;
		r = findings_add(&discovery->found, &finding->process, finding->rule);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What the rules want to know of @pid; @title is room for what the answer points into. -ESRCH also for
 * masters. */
static int examine(
	struct discovery *discovery, pid_t pid, char title[PROC_TITLE_BYTES], struct candidate *ret_candidate)
{
	enum fpm_title kind = FPM_TITLE_OTHER;
	pid_t parent;
	int r;

	r = proc_read_title(pid, title);
	if (r < 0)
		return r;
	r = proc_identify(pid, &ret_candidate->identity);
	if (r < 0)
		return r;
	r = proc_read_executable(pid, ret_candidate->executable, sizeof(ret_candidate->executable));
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	parent = ret_candidate->identity.parent_pid;
	kind = fpm_title_parse(title, &ret_candidate->pool);
	if (kind == FPM_TITLE_MASTER)
		return -ESRCH;
	if (kind == FPM_TITLE_WORKER &&
		(fpm_masters_find(&discovery->masters, parent) || fpm_is_believable_master(parent)))
		ret_candidate->master_pid = parent;
	return 0;
}

static int collect_named_pids(struct discovery *discovery)
{
	for (size_t i = 0; i < discovery->selection.count; i++) {
		const struct rule *rule = &discovery->selection.rules[i];
		struct candidate candidate = {0};
		char title[PROC_TITLE_BYTES];
		struct discovered process;
		int r;

		if (rule->selector.kind != SELECT_PID || !rule->pid || rule->is_master ||
			examine(discovery, rule->pid, title, &candidate) < 0 ||
			candidate.identity.start_time_ticks != rule->start_time_ticks)
			continue;
		process = selection_describe(&discovery->selection, &candidate, (int)i);
		r = findings_add(&discovery->found, &process, (int)i);
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare_findings(const void *left, const void *right)
{
	const struct finding *a = left, *b = right;

	if (a->process.pid != b->process.pid)
		return a->process.pid < b->process.pid ? -1 : 1;
	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	return (a->process.master_pid < b->process.master_pid) -
	       (a->process.master_pid > b->process.master_pid);
}

/* Each process once, ordered by pid. */
static int publish(struct discovery *discovery, size_t *ret_count)
{
	struct findings *found = &discovery->found;
	struct discovered *results;
	size_t count = 0;

	if (found->count)
		qsort(found->items, found->count, sizeof(*found->items), compare_findings);
	results = realloc(discovery->results, (found->count ? found->count : 1) * sizeof(*results));
	if (!results)
		return -ENOMEM;
	discovery->results = results;
	for (size_t i = 0; i < found->count; i++) {
		if (!count || results[count - 1].pid != found->items[i].process.pid)
			results[count++] = found->items[i].process;
	}
	*ret_count = count;
	return 0;
}

int discovery_scan(struct discovery *discovery, unsigned full_scan_every,
	const struct discovered **ret_processes, size_t *ret_count)
{
	bool is_full = discovery->look_is_due || ++discovery->scans >= full_scan_every;
	bool some_gone;
	size_t count;
	int r;

	r = fpm_masters_refresh(&discovery->masters, is_full, &some_gone);
	if (r < 0)
		return r;
	is_full = is_full || some_gone;
	if (is_full) {
		r = look_through_proc(discovery);
		if (r < 0)
			return r;
		discovery->look_is_due = false;
		discovery->scans = 0;
	}
	r = selection_tie(&discovery->selection, &discovery->masters, is_full);
	if (r < 0)
		return r;
	/* Masters that were just found have no workers yet. */
	if (is_full) {
		r = fpm_masters_refresh(&discovery->masters, false, &some_gone);
		if (r < 0)
			return r;
	}
	discovery->found.count = 0;
	for (size_t i = 0; i < discovery->masters.count; i++) {
		r = collect_workers(discovery, &discovery->masters.items[i]);
		if (r < 0)
			return r;
	}
	r = collect_loose(discovery);
	if (r < 0)
		return r;
	r = collect_named_pids(discovery);
	if (r < 0)
		return r;
	r = publish(discovery, &count);
	if (r < 0)
		return r;
	*ret_processes = discovery->results;
	*ret_count = count;
	return 0;
}

int discovery_find(struct discovery *discovery, pid_t pid, struct discovered *ret_process)
{
	struct candidate candidate = {0};
	char title[PROC_TITLE_BYTES];
	int r, rule;

	r = selection_tie(&discovery->selection, &discovery->masters, false);
	if (r < 0)
		return r;
	r = examine(discovery, pid, title, &candidate);
	if (r < 0)
		return r;
	rule = selection_first_rule(&discovery->selection, &candidate);
	if (rule == SELECTION_NO_RULE)
		return -ESRCH;
	*ret_process = selection_describe(&discovery->selection, &candidate, rule);
	return 0;
}

int discovery_identify(pid_t pid, struct discovered *ret_process)
{
	struct proc_identity identity;
	int r = proc_identify(pid, &identity);

	if (r < 0)
		return r;
	*ret_process = (struct discovered){
		.pid = pid,
		.master_pid = identity.parent_pid,
		.start_time_ticks = identity.start_time_ticks,
		.uid = identity.uid,
	};
	return 0;
}
