/* SPDX-License-Identifier: MIT
 *
 * Following the workers of one FPM master: a pread of /proc/MASTER/task/MASTER/children on a descriptor that
 * is kept. The descriptor belongs to the process, not to its number, and lives through FPM's re-exec on
 * SIGUSR2; of a dead master it reads as empty, so an empty list is believed only of a master that is still
 * there.
 *
 * FPM says what a process is in its title (fpm_env.c, 7.4 to 8.5): "php-fpm: master process (FILE)" and
 * "php-fpm: pool NAME". Three things follow from how it does so. A worker just forked still has the master's
 * title: it is left out and looked at again, never taken for something else. The title is zeroed and then
 * written byte by byte: it is believed when it reads the same twice. It is written over argv and the
 * environment and cut where these end: a start with neither leaves "php-fpm: ma" and "php-fpm: po". The
 * worker has changed its uid by then (fpm_children.c: fpm_unix_init_child() comes before
 * fpm_env_init_child()), so the uid read after the title is the one it keeps.
 */
#include "daemon/sampling/fpm_master.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/cleanup.h"

enum {
	CHILDREN_PATH_BYTES = 64,
	CHILDREN_CHUNK_BYTES = 4096, /* the kernel gives at most a page a read */
	TITLE_LEAST_BYTES = 2,       /* fpm_env_setproctitle() sets none where fewer would fit */
};

static const char title_prefix[] = "php-fpm: ";
static const char title_master[] = "master process (";
static const char title_worker[] = "pool ";

/* Does @text begin with @word, or was it cut off inside it? */
static bool begins_or_is_cut(const char *text, const char *word)
{
	size_t length = strlen(text);

	if (length < TITLE_LEAST_BYTES)
		return false;
	return strncmp(text, word, length < strlen(word) ? length : strlen(word)) == 0;
}

enum fpm_title fpm_title_parse(const char *title, const char **ret_pool)
{
	if (strncmp(title, title_prefix, strlen(title_prefix)) != 0)
		return FPM_TITLE_OTHER;
	title += strlen(title_prefix);
	if (begins_or_is_cut(title, title_master))
		return FPM_TITLE_MASTER;
	if (!begins_or_is_cut(title, title_worker))
		return FPM_TITLE_OTHER;
	*ret_pool = strlen(title) > strlen(title_worker) ? title + strlen(title_worker) : "";
	return FPM_TITLE_WORKER;
}

/* Takes hold of a process as a master; whether it is one, the caller has found out. */
static int fpm_master_open(pid_t pid, struct fpm_master *ret_master)
{
	char path[CHILDREN_PATH_BYTES];
	_cleanup_close_ int fd = -1;
	struct proc_identity identity;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	/* Identified after it was opened: had the number gone to another process before, the descriptor is
	 * that one's. Had it gone to another since, the list reads as empty and the next look at the start
	 * time finds out. */
	r = proc_identify(pid, &identity);
	if (r < 0)
		return r;
	*ret_master = (struct fpm_master){
		.pid = pid,
		.start_time_ticks = identity.start_time_ticks,
		.children_fd = TAKE_FD(fd),
	};
	return 0;
}

static void fpm_master_close(struct fpm_master *master)
{
	if (master->children_fd >= 0)
		close(master->children_fd);
	free(master->workers);
	*master = (struct fpm_master){.children_fd = -1};
}

static int compare_pids(const void *left, const void *right)
{
	pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;

	return (a > b) - (a < b);
}

struct pid_list {
	pid_t *pids;
	size_t count, room;
};

static void pid_list_free(struct pid_list *list)
{
	free(list->pids);
}

static int pid_list_append(struct pid_list *list, pid_t pid)
{
	if (list->count == FPM_MASTER_MAX_WORKERS)
		return 0;
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		pid_t *pids = realloc(list->pids, room * sizeof(*pids));

		if (!pids)
			return -ENOMEM;
		list->pids = pids;
		list->room = room;
	}
	list->pids[list->count++] = pid;
	return 0;
}

/* All children, sorted, to the end of the file: one read gives a page, some 600 of them. */
static int read_children(int fd, struct pid_list *list)
{
	char chunk[CHILDREN_CHUNK_BYTES];
	off_t offset = 0;
	pid_t pid = 0;

	for (;;) {
		ssize_t got = pread(fd, chunk, sizeof(chunk), offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		offset += got;
		for (ssize_t i = 0; i < got; i++) {
			if (chunk[i] >= '0' && chunk[i] <= '9') {
				pid = pid * 10 + (chunk[i] - '0');
			} else if (pid) {
				int r = pid_list_append(list, pid);

				if (r < 0)
					return r;
				pid = 0;
			}
		}
	}
	if (list->count)
		qsort(list->pids, list->count, sizeof(*list->pids), compare_pids);
	return 0;
}

/* Is this child a worker by now? False also for what is not one and never will be: a process that init's role
 * brought to a master which is pid 1 of its container. */
static bool look_at_child(const struct fpm_master *master, pid_t pid, struct fpm_worker *ret_worker)
{
	char title[PROC_TITLE_BYTES], again[PROC_TITLE_BYTES];
	struct fpm_worker worker = {.note = FPM_WORKER_NEW};
	const char *pool = NULL;

	if (proc_read_title(pid, title) < 0 || fpm_title_parse(title, &pool) != FPM_TITLE_WORKER)
		return false;
	if (proc_identify(pid, &worker.identity) < 0 || worker.identity.parent_pid != master->pid)
		return false;
	if (proc_read_title(pid, again) < 0 || strcmp(title, again) != 0)
		return false;
	snprintf(worker.pool, sizeof(worker.pool), "%.*s", FPM_POOL_NAME_BYTES - 1, pool);
	*ret_worker = worker;
	return true;
}

/* Is a worker seen before still the same process and still this master's? Its uid is brought up to date. */
static bool is_still_there(const struct fpm_master *master, struct fpm_worker *worker)
{
	struct proc_identity identity;

	if (proc_identify(worker->identity.pid, &identity) < 0 || identity.parent_pid != master->pid ||
		identity.start_time_ticks != worker->identity.start_time_ticks)
		return false;
	worker->identity.uid = identity.uid;
	return true;
}

static bool is_unchanged(const struct fpm_master *master, const struct pid_list *list)
{
	if (list->count != master->worker_count)
		return false;
	for (size_t i = 0; i < list->count; i++) {
		if (list->pids[i] != master->workers[i].identity.pid)
			return false;
	}
	return true;
}

/* Merges the list into the workers known; both are sorted. @next has room for both together. */
static size_t merge(
	const struct fpm_master *master, const struct pid_list *list, bool verify, struct fpm_worker *next)
{
	size_t child = 0, known = 0, count = 0;

	while (child < list->count || known < master->worker_count) {
		pid_t child_pid = child < list->count ? list->pids[child] : 0;
		pid_t known_pid = known < master->worker_count ? master->workers[known].identity.pid : 0;

		if (known_pid && (!child_pid || known_pid <= child_pid)) {
			struct fpm_worker worker = master->workers[known++];
			bool listed = known_pid == child_pid;

			/* The kernel's list may skip children while others exit (proc_tid_children(5)): only
			 * the process itself proves that it is gone. */
			if ((listed && !verify) || is_still_there(master, &worker)) {
				next[count++] = worker;
				child += listed;
				continue;
			}
			if (!listed)
				continue;
			/* The number went from one worker to another: what has it now is looked at below. */
		}
		if (look_at_child(master, child_pid, &next[count]))
			count++;
		child++;
	}
	return count;
}

/* -ESRCH: the master is gone. On any failure the workers are as they were. */
static int fpm_master_refresh(struct fpm_master *master, bool verify)
{
	_cleanup_(pid_list_free) struct pid_list list = {0};
	struct fpm_worker *next;
	int r;

	r = read_children(master->children_fd, &list);
	if (r < 0)
		return r;
	if ((list.count == 0 || verify) && !proc_is_same(master->pid, master->start_time_ticks))
		return -ESRCH;
	if (!verify && is_unchanged(master, &list))
		return 0;
	if (list.count + master->worker_count == 0)
		return 0;
	next = calloc(list.count + master->worker_count, sizeof(*next));
	if (!next)
		return -ENOMEM;
	master->worker_count = merge(master, &list, verify, next);
	free(master->workers);
	master->workers = next;
	return 0;
}

bool fpm_is_called_php(const char *executable)
{
	return strstr(proc_base_name(executable), "php") != NULL;
}

enum fpm_title fpm_title_of(pid_t pid)
{
	char title[PROC_TITLE_BYTES];
	const char *pool = NULL;

	return proc_read_title(pid, title) == 0 ? fpm_title_parse(title, &pool) : FPM_TITLE_OTHER;
}

bool fpm_is_believable_master(pid_t pid)
{
	char path[PATH_MAX];

	return fpm_title_of(pid) == FPM_TITLE_MASTER && proc_read_executable(pid, path, sizeof(path)) == 0 &&
	       fpm_is_called_php(path);
}

bool fpm_is_newborn_worker(pid_t pid)
{
	struct proc_identity identity;

	return proc_identify(pid, &identity) == 0 && fpm_is_believable_master(identity.parent_pid);
}

struct fpm_master *fpm_masters_find(struct fpm_masters *masters, pid_t pid)
{
	for (size_t i = 0; i < masters->count; i++) {
		if (masters->items[i].pid == pid)
			return &masters->items[i];
	}
	return NULL;
}

int fpm_masters_add(struct fpm_masters *masters, pid_t pid, struct fpm_master **ret_master)
{
	struct fpm_master *known = fpm_masters_find(masters, pid);
	struct fpm_master master;
	int r;

	if (!known) {
		if (masters->count == FPM_MAX_MASTERS)
			return -E2BIG;
		r = fpm_master_open(pid, &master);
		if (r < 0)
			return r;
		known = &masters->items[masters->count++];
		*known = master;
	}
	*ret_master = known;
	return 0;
}

int fpm_masters_refresh(struct fpm_masters *masters, bool verify, bool *ret_some_gone)
{
	bool some_gone = false;

	for (size_t i = 0; i < masters->count;) {
		struct fpm_master *master = &masters->items[i];
		int r = fpm_master_refresh(master, verify);

		if (r == -ESRCH) {
			fpm_master_close(master);
			*master = masters->items[--masters->count];
			some_gone = true;
			continue;
		}
		if (r < 0)
			return r;
		i++;
	}
	*ret_some_gone = some_gone;
	return 0;
}

void fpm_masters_see_workers_anew(struct fpm_masters *masters)
{
	for (size_t i = 0; i < masters->count; i++) {
		for (size_t j = 0; j < masters->items[i].worker_count; j++)
			masters->items[i].workers[j].note = FPM_WORKER_NEW;
	}
}

void fpm_masters_deinit(struct fpm_masters *masters)
{
	while (masters->count)
		fpm_master_close(&masters->items[--masters->count]);
}
