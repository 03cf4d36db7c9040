/* SPDX-License-Identifier: MIT
 *
 * The engine does the work in its threads; this one waits for whatever ends the measurement, and asks for the
 * profile. The target's end is seen by a pidfd, taken before the engine is told of it, so that a process that
 * ends in between is not taken for a later one with its number.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/options.h"
#include "daemon/cli/process.h"
#include "daemon/cli/session.h"
#include "daemon/sampling/clock.h"
#include "daemon/sampling/engine.h"

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define PROGRESS_NS NS_PER_S
/* Attaching reads the binary of each worker: thousands of them take a while. */
#define ATTACH_TIMEOUT_NS (60 * NS_PER_S)
#define ASK_TIMEOUT_NS (10 * NS_PER_S)

struct session {
	const struct session_options *options;
	struct engine *engine;
	int pidfd, signals;
	uint64_t start_ns;
	char *why;
	size_t why_bytes;
};

__attribute__((format(printf, 3, 4))) static int refuse(
	struct session *session, int status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(session->why, session->why_bytes, format, arguments);
	va_end(arguments);
	return status;
}

static void ending_signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGHUP);
}

void session_block_signals(void)
{
	sigset_t set;

	ending_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void session_unblock_signals(void)
{
	const struct timespec at_once = {0};
	sigset_t set;

	ending_signals(&set);
	while (sigtimedwait(&set, NULL, &at_once) > 0)
		;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Asks the engine one thing about all it has. NULL after a failure. */
static struct order *ask(struct session *session, enum order_verb verb, uint64_t timeout_ns)
{
	_cleanup_(order_freep) struct order *order = NULL;

	if (order_new(verb, &order) < 0)
		return NULL;
	order->uid = ORDER_ANY_UID;
	if (verb == ORDER_ATTACH)
		order->pid = session->options->pid;
	if (engine_ask(session->engine, order, timeout_ns) < 0) {
		order = NULL; /* still under way in the engine's threads: theirs for good */
		return NULL;
	}
	return TAKE(order);
}

static int start_engine(struct session *session)
{
	const struct engine_options options = {
		.period_ns = session->options->period_ns,
		.min_period_ns = NS_PER_S / CLI_MAX_RATE_HZ,
		.max_period_ns = NS_PER_S / CLI_MIN_RATE_HZ,
		.max_depth = STACK_MAX_FRAMES,
		.max_targets = 4096,
		.max_frames = 65536,
		.max_nodes = 262144,
		/* Nobody will ask for single requests: few are kept. */
		.retained_units = 16,
		.retained_bytes = UINT64_C(1) << 20,
		.retained_ns = NS_PER_S,
		/* A script may run for days and is still looked at: longer than any. */
		.auto_max_ns = NS_PER_S * 3600 * 24 * 3650,
		.discovery_interval_ns = 100 * NS_PER_MS,
		.threads = 1,
		.realtime = true,
		.trust_traceparent = true,
		.blocking = session->options->blocking,
	};

	int r = engine_new(&options, &session->engine);
	if (r == 0)
		r = engine_start(session->engine);
	return r < 0 ? refuse(session, EXIT_FAILED, "sampling can't be started: %s", strerror(-r)) : 0;
}

/* One worker that was refused, as a reason: examined again, to know the exit status that goes with it. */
static int refused_worker(struct session *session)
{
	const struct frame_names no_names = {0};
	const struct php_process_options options = {.blocking = session->options->blocking};
	_cleanup_(php_process_closep) struct php_process *process = NULL;
	struct refusal refusal;

	if (engine_refusals(session->engine, &refusal, 1) == 0)
		return 0;
	int r = php_process_open(
		refusal.pid, &no_names, &options, &process, session->why, session->why_bytes);
	if (r == 0) /* it could be opened after all: the engine will see so too */
		return 0;
	return refuse(session, process_exit_status(r), "%s", refusal.why);
}

static int attach(struct session *session)
{
	_cleanup_(order_freep) struct order *order = ask(session, ORDER_ATTACH, ATTACH_TIMEOUT_NS);
	pid_t pid = session->options->pid;

	if (!order)
		return refuse(session, EXIT_FAILED, "process %d: attaching took too long; try again", pid);
	if (order->error == ORDER_E_NOT_A_TARGET)
		return refuse(session, EXIT_NO_TARGET, "process %d: there is no such process", pid);
	if (order->error != ORDER_OK)
		return refuse(
			session, EXIT_FAILED, "%s", order->why[0] ? order->why : "the engine refuses it");
	return order->affected == 0 ? refused_worker(session) : 0;
}

static void clear_progress(const struct session *session)
{
	if (session->options->progress)
		fputs("\r\x1b[K", stderr);
}

static void show_progress(struct session *session)
{
	_cleanup_(order_freep) struct order *order = ask(session, ORDER_METRICS, ASK_TIMEOUT_NS);

	if (!order || !order->metrics)
		return;
	const struct accounting *accounting = &order->metrics->accounting;
	uint64_t seconds = (monotonic_now_ns() - session->start_ns + NS_PER_S / 2) / NS_PER_S;
	fprintf(stderr, "\r\x1b[K%" PRIu64 " s", seconds);
	if (session->options->duration_ns > 0)
		fprintf(stderr, " of %.3g s", (double)session->options->duration_ns / 1e9);
	if (order->metrics->targets == 0 && session->options->is_master)
		fputs(": the master has no workers at the moment; send it requests", stderr);
	else
		fprintf(stderr,
			": %" PRIu64 " %s, %" PRIu64 " samples, idle at %" PRIu64 " of %" PRIu64 " ticks",
			order->metrics->targets, order->metrics->targets == 1 ? "process" : "processes",
			accounting->taken + accounting->unchanged + accounting->torn_lost, accounting->idle,
			accounting->expected);
	fputs("; Ctrl-C ends and shows the result", stderr);
	fflush(stderr);
}

/* Returns when the measurement is over. */
static void wait_for_end(struct session *session)
{
	struct pollfd ends[] = {
		{.fd = session->signals, .events = POLLIN}, {.fd = session->pidfd, .events = POLLIN}};
	uint64_t duration_ns = session->options->duration_ns;
	uint64_t end_ns = duration_ns > 0 ? session->start_ns + duration_ns : UINT64_MAX;
	uint64_t next_progress_ns = session->start_ns + PROGRESS_NS;

	for (;;) {
		uint64_t now = monotonic_now_ns();

		if (now >= end_ns)
			break;
		if (session->options->progress && now >= next_progress_ns) {
			show_progress(session);
			next_progress_ns += PROGRESS_NS;
		}
		uint64_t until_ns =
			session->options->progress && next_progress_ns < end_ns ? next_progress_ns : end_ns;
		uint64_t rest_ms = until_ns > now ? (until_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
		int r = poll(ends, 2, rest_ms < 3600000 ? (int)rest_ms : 3600000);
		if (r > 0 || (r < 0 && errno != EINTR))
			break;
	}
	clear_progress(session);
}

/* Was there ever anything to sample? */
static int check_seen(struct session *session)
{
	_cleanup_(order_freep) struct order *order = ask(session, ORDER_METRICS, ASK_TIMEOUT_NS);
	pid_t pid = session->options->pid;

	if (order && order->metrics && order->metrics->targets_attached_total > 0)
		return 0;
	int r = refused_worker(session);
	if (r != 0)
		return r;
	if (session->options->is_master)
		return refuse(session, EXIT_NO_TARGET,
			"process %d: this FPM master had no workers in all that time (pm = ondemand starts "
			"them with the "
			"first request); send it requests meanwhile",
			pid);
	return refuse(session, EXIT_NO_TARGET, "process %d: it ended before PHP in it had started", pid);
}

static int take_profile(struct session *session, struct profile **ret_profile)
{
	_cleanup_(order_freep) struct order *order = ask(session, ORDER_PROFILE, ASK_TIMEOUT_NS);

	if (!order || !order->profile)
		return refuse(session, EXIT_FAILED, "no profile could be made: %s",
			order && order->error == ORDER_E_NO_MEMORY ? "no memory"
								   : "the sampler does not answer");
	*ret_profile = TAKE(order->profile);
	return 0;
}

static int measure(struct session *session, struct profile **ret_profile)
{
	int r = start_engine(session);

	if (r == 0)
		r = attach(session);
	if (r != 0)
		return r;
	session->start_ns = monotonic_now_ns();
	wait_for_end(session);
	r = check_seen(session);
	return r == 0 ? take_profile(session, ret_profile) : r;
}

int session_run(
	const struct session_options *options, struct profile **ret_profile, char *ret_why, size_t why_bytes)
{
	struct session session = {.options = options, .why = ret_why, .why_bytes = why_bytes};
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, options->pid, 0);
	sigset_t set;

	if (pidfd < 0)
		return refuse(&session, errno == ESRCH ? EXIT_NO_TARGET : EXIT_FAILED, "process %d: %s",
			options->pid,
			errno == ESRCH ? "there is no such process; ps lists those there are"
				       : strerror(errno));
	ending_signals(&set);
	_cleanup_close_ int signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		return refuse(&session, EXIT_FAILED, "signals can't be waited for: %s", strerror(errno));
	session.pidfd = pidfd;
	session.signals = signals;
	int r = measure(&session, ret_profile);
	if (session.engine)
		engine_free(session.engine);
	return r;
}
