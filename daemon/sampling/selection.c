/* SPDX-License-Identifier: MIT
 *
 * The selectors in force. Patterns are tried on what is found; those that name a process (a pid, a master's
 * pid, a PID file) are tied to it. A title is a claim that any process can make: where the operator names the
 * process or the file, a master's title is enough to be taken for one (whoever selects by pattern must ask
 * for more, see discovery.c).
 *
 * A selector that names a pid is tied to the process that has it when it is first seen, and ends with that
 * process: the number will be another's one day. A PID file is read again whenever its master is gone.
 */
#include "daemon/sampling/selection.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/cleanup.h"
#include "symbols/printable.h"

enum {
	PID_FILE_BYTES = 32,
};

int selection_first_rule(const struct selection *selection, const struct candidate *candidate)
{
	for (size_t i = 0; i < selection->count; i++) {
		const struct rule *rule = &selection->rules[i];
		bool selects = false;

		switch (rule->selector.kind) {
		case SELECT_FPM_POOL:
			selects = candidate->master_pid &&
				  fnmatch(rule->selector.pattern, candidate->pool, 0) == 0;
			break;
		case SELECT_FPM_MASTER:
		case SELECT_PID_FILE:
			selects = candidate->master_pid && candidate->master_pid == rule->pid;
			break;
		case SELECT_EXECUTABLE:
			/* An asterisk stands for slashes too: a folder means all that is below it. */
			selects = fnmatch(rule->selector.pattern, candidate->executable, 0) == 0;
			break;
		case SELECT_PID:
			if (rule->is_master)
				selects = candidate->master_pid && candidate->master_pid == rule->pid;
			else
				selects = candidate->identity.pid == rule->pid &&
					  candidate->identity.start_time_ticks == rule->start_time_ticks;
			break;
		}
		if (selects)
			return (int)i;
	}
	return SELECTION_NO_RULE;
}

struct discovered selection_describe(
	const struct selection *selection, const struct candidate *candidate, int rule)
{
	const struct selector *selector = &selection->rules[rule].selector;
	struct discovered process = {
		.pid = candidate->identity.pid,
		.master_pid = candidate->master_pid,
		.start_time_ticks = candidate->identity.start_time_ticks,
		.uid = candidate->identity.uid,
		.period_ns = selector->period_ns,
		.selector = (size_t)rule,
	};
	const char *name = proc_base_name(candidate->executable);

	if (candidate->pool && candidate->pool[0])
		name = candidate->pool;
	if (selector->pool[0])
		name = selector->pool;
	printable_copy(process.pool, sizeof(process.pool), name);
	return process;
}

/* Ties the rules of the list before to the processes they were tied to: a pid given once never means another
 * process. */
static void inherit_ties(struct rule *rules, size_t count, const struct selection *selection)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < selection->count; j++) {
			const struct rule *before = &selection->rules[j];

			if (before->selector.kind != rules[i].selector.kind ||
				before->selector.pid != rules[i].selector.pid ||
				strcmp(before->selector.pattern, rules[i].selector.pattern) != 0)
				continue;
			rules[i].pid = before->pid;
			rules[i].start_time_ticks = before->start_time_ticks;
			rules[i].is_master = before->is_master;
			rules[i].is_spent = before->is_spent;
		}
	}
}

int selection_replace(struct selection *selection, const struct selector *selectors, size_t count)
{
	struct rule *rules;

	if (count > SELECTION_MAX_SELECTORS)
		return -E2BIG;
	rules = calloc(count ? count : 1, sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		rules[i].selector = selectors[i];
	inherit_ties(rules, count, selection);
	free(selection->rules);
	*selection = (struct selection){.rules = rules, .count = count};
	return 0;
}

void selection_deinit(struct selection *selection)
{
	free(selection->rules);
	*selection = (struct selection){0};
}

bool selection_is_open(const struct selection *selection)
{
	for (size_t i = 0; i < selection->count; i++) {
		enum selector_kind kind = selection->rules[i].selector.kind;

		if (kind == SELECT_FPM_POOL || kind == SELECT_EXECUTABLE)
			return true;
	}
	return false;
}

bool selection_names_executable(const struct selection *selection, const char *path)
{
	for (size_t i = 0; i < selection->count; i++) {
		const struct selector *selector = &selection->rules[i].selector;

		if (selector->kind == SELECT_EXECUTABLE && fnmatch(selector->pattern, path, 0) == 0)
			return true;
	}
	return false;
}

int selection_read_pid_file(const char *path, pid_t *ret_pid)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char text[PID_FILE_BYTES];
	char *end;
	ssize_t length;
	long pid;

	if (fd < 0)
		return -errno;
	length = read(fd, text, sizeof(text) - 1);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	errno = 0;
	pid = strtol(text, &end, 10);
	if (errno || end == text || (*end && !isspace((unsigned char)*end)) || pid <= 0 || pid > INT_MAX)
		return -EINVAL;
	*ret_pid = (pid_t)pid;
	return 0;
}

static int tie_to_master(struct rule *rule, struct fpm_masters *masters, pid_t pid)
{
	struct fpm_master *master;
	int r = fpm_masters_add(masters, pid, &master);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	rule->pid = pid;
	rule->start_time_ticks = master->start_time_ticks;
	rule->is_master = true;
	fpm_masters_see_workers_anew(masters);
	return 0;
}

/* Ties @rule to its process, or leaves it for the next time. */
static int tie(struct rule *rule, struct fpm_masters *masters)
{
	struct proc_identity identity;
	pid_t pid = rule->selector.pid;

	/* A file that isn't there (yet) or holds something else is looked at again next time. */
	if (rule->selector.kind == SELECT_PID_FILE &&
		selection_read_pid_file(rule->selector.pattern, &pid) < 0)
		return 0;
	if (proc_identify(pid, &identity) < 0) {
		rule->is_spent = rule->selector.kind == SELECT_PID;
		return 0;
	}
	if (fpm_title_of(pid) == FPM_TITLE_MASTER)
		return fpm_is_newborn_worker(pid) ? 0 : tie_to_master(rule, masters, pid);
	if (rule->selector.kind == SELECT_PID) {
		rule->pid = pid;
		rule->start_time_ticks = identity.start_time_ticks;
	}
	return 0;
}

int selection_tie(struct selection *selection, struct fpm_masters *masters, bool verify)
{
	for (size_t i = 0; i < selection->count; i++) {
		struct rule *rule = &selection->rules[i];
		bool is_gone;
		int r;

		if (rule->selector.kind == SELECT_FPM_POOL || rule->selector.kind == SELECT_EXECUTABLE ||
			rule->is_spent)
			continue;
		if (rule->is_master) {
			struct fpm_master *master = fpm_masters_find(masters, rule->pid);

			/* The rule may have outlived its master by a change of the selectors. */
			is_gone = !master || master->start_time_ticks != rule->start_time_ticks;
		} else {
			is_gone = rule->pid && !proc_is_same(rule->pid, rule->start_time_ticks);
		}
		if (is_gone) {
			rule->pid = 0;
			rule->is_master = false;
			rule->is_spent = rule->selector.kind == SELECT_PID;
		}
		if (rule->is_spent || (rule->pid && (rule->is_master || !verify)))
			continue;
		r = tie(rule, masters);
		if (r < 0)
			return r;
	}
	return 0;
}
