/* SPDX-License-Identifier: MIT
 *
 * `daemon`: puts the rooms together and keeps house: configuration, signals, the service manager, the
 * watchdog. What there is to do is done by the engine's threads and the service's; this one sleeps.
 *
 * Signals are blocked before there is any other thread and read from a descriptor here: no handler ever runs,
 * and no system call of a sampler is interrupted. The order of the start is: all that can be wrong, then the
 * engine, then the socket, then READY=1, so that whoever waits for the service may connect. The order of the
 * end is the other way round: no new clients, answers to what was asked, then the engine.
 *
 * The watchdog is fed only while the sampler ticks. A daemon that answers but no longer samples is as dead as
 * one that hangs, and is restarted.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/daemon_config.h"
#include "daemon/cli/options.h"
#include "daemon/sampling/clock.h"
#include "daemon/sampling/engine.h"
#include "daemon/service/activation.h"
#include "daemon/service/log.h"
#include "daemon/service/notify.h"
#include "daemon/service/service.h"
#include "symbols/cleanup.h"

#define NS_PER_SECOND 1000000000ull
#define WHY_BYTES 512
#define WATCHDOG_CHECKS 4 /* looks at the sampler within the watchdog's time */
#define REFUSALS_EVERY_NS (5 * NS_PER_SECOND)
#define REFUSALS_KNOWN 16
#define BUDGET_TOLD_EVERY_NS (60 * NS_PER_SECOND)
#define NOTABLE_STRETCH_PPM 1050000 /* less is not worth a line */

struct daemon {
	const char *config_path;
	struct log log;
	struct notify notify;
	pthread_mutex_t reload_lock; /* SIGHUP and the verb come from two threads; also guards .settings */
	struct daemon_settings settings; /* in force */
	struct engine *engine;
	struct service *service;
	int service_ended; /* eventfd */
	int service_error;
	struct refusal refusals[REFUSALS_KNOWN]; /* told in the log */
	size_t refusal_count;
	bool told_stretched;
	uint64_t budget_told_ns; /* 0: never */
};

static void tell_ready(const struct daemon *daemon)
{
	char status[256];

	snprintf(status, sizeof(status), "Sampling %zu configured pool(s) at %.6g Hz, answering on %s",
		daemon->settings.selector_count,
		(double)NS_PER_SECOND / (double)daemon->settings.engine.period_ns,
		daemon->settings.service.path);
	notify_ready(&daemon->notify, status);
}

/* What was settled by the start, because a socket, a thread or memory was made by it. */
static void tell_what_waits_for_a_restart(struct daemon *daemon, const struct daemon_settings *settings)
{
	const struct daemon_settings *before = &daemon->settings;
	const struct {
		const char *key;
		bool has_changed;
	} keys[] = {
		{"socket.path", strcmp(before->service.path, settings->service.path) != 0},
		{"socket.mode", before->service.mode != settings->service.mode},
		{"sampling.threads", before->engine.threads != settings->engine.threads},
		{"sampling.realtime", before->engine.realtime != settings->engine.realtime},
		{"limits.max_frames", before->engine.max_frames != settings->engine.max_frames},
		{"limits.max_nodes", before->engine.max_nodes != settings->engine.max_nodes},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i].has_changed)
			log_say(&daemon->log, LOG_WARNING, "%s has changed; it is taken at the next start",
				keys[i].key);
	}
}

/* Puts the settings in force, or leaves the old ones there. */
static int apply(struct daemon *daemon, struct daemon_settings *settings)
{
	int r;

	r = engine_reconfigure(daemon->engine, &settings->engine);
	if (r < 0)
		return r;
	r = engine_select(daemon->engine, settings->selectors, settings->selector_count);
	if (r < 0) {
		engine_reconfigure(daemon->engine, &daemon->settings.engine);
		return r;
	}
	tell_what_waits_for_a_restart(daemon, settings);
	memcpy(settings->service.path, daemon->settings.service.path, sizeof(settings->service.path));
	settings->service.mode = daemon->settings.service.mode;
	service_reconfigure(daemon->service, &settings->service);
	daemon->settings = *settings;
	return 0;
}

static int reload(void *context, char *ret_why, size_t why_bytes)
{
	struct daemon *daemon = context;
	struct daemon_settings settings;
	int r;

	pthread_mutex_lock(&daemon->reload_lock);
	notify_reloading(&daemon->notify);
	r = daemon_settings_load(daemon->config_path, &settings, ret_why, why_bytes);
	if (r >= 0) {
		r = apply(daemon, &settings);
		if (r < 0)
			snprintf(ret_why, why_bytes, "%s: %s", daemon->config_path, strerror(-r));
	}
	if (r < 0)
		log_say(&daemon->log, LOG_ERROR, "the configuration stays as it is: %s", ret_why);
	else
		log_say(&daemon->log, LOG_INFO, "%s is in force", daemon->config_path);
	tell_ready(daemon);
	pthread_mutex_unlock(&daemon->reload_lock);
	return r;
}

static void *run_service(void *context)
{
	struct daemon *daemon = context;
	uint64_t one = 1;

	daemon->service_error = service_run(daemon->service);
	(void)!write(daemon->service_ended, &one, sizeof(one));
	return NULL;
}

/* Processes that were selected and could not be attached, each once for as long as its reason stays the same.
 */
static void tell_refusals(struct daemon *daemon)
{
	struct refusal refusals[REFUSALS_KNOWN];
	size_t count = engine_refusals(daemon->engine, refusals, REFUSALS_KNOWN);

	for (size_t i = 0; i < count; i++) {
		bool is_known = false;

		for (size_t j = 0; j < daemon->refusal_count && !is_known; j++)
			is_known = daemon->refusals[j].pid == refusals[i].pid &&
				   strcmp(daemon->refusals[j].why, refusals[i].why) == 0;
		if (!is_known)
			log_say(&daemon->log, LOG_WARNING, "not sampled: %s", refusals[i].why);
	}
	memcpy(daemon->refusals, refusals, count * sizeof(refusals[0]));
	daemon->refusal_count = count;
}

/* That samples are fewer than was asked for, once a minute at most, and that they are not any more. */
static void tell_budget(struct daemon *daemon, uint64_t now_ns)
{
	struct budget_report budget = engine_budget(daemon->engine);
	bool is_stretched = budget.stretch_ppm > NOTABLE_STRETCH_PPM;

	if (is_stretched == daemon->told_stretched ||
		(daemon->budget_told_ns && now_ns - daemon->budget_told_ns < BUDGET_TOLD_EVERY_NS))
		return;
	daemon->told_stretched = is_stretched;
	daemon->budget_told_ns = now_ns;
	if (is_stretched)
		log_say(&daemon->log, LOG_WARNING,
			"sampling takes place %.1f times more seldom than was asked for: it would take %.1f "
			"%% of one "
			"processor, and sampling.cpu_budget allows %.1f %%; ask for lower rates, sample "
			"fewer "
			"processes, or allow more",
			(double)budget.stretch_ppm / 1e6, (double)budget.demand_ppm / 1e4,
			(double)budget.limit_ppm / 1e4);
	else
		log_say(&daemon->log, LOG_INFO,
			"sampling keeps to its CPU budget again at the rates that were asked for");
}

/* True: it is time to end. */
static bool handle_signal(struct daemon *daemon, int signals)
{
	char why[WHY_BYTES];
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo == SIGHUP) {
		reload(daemon, why, sizeof(why));
		return false;
	}
	log_say(&daemon->log, LOG_INFO, "stopping on %s", info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
	return true;
}

/* Sleeps until it is time to end. An exit status. */
static int keep_house(struct daemon *daemon, int signals)
{
	const uint64_t check_ns = daemon->notify.watchdog_ns / WATCHDOG_CHECKS;
	uint64_t refusals_due_ns = monotonic_now_ns(),
		 check_due_ns = check_ns ? monotonic_now_ns() : UINT64_MAX;

	for (;;) {
		struct pollfd fds[] = {
			{.fd = signals, .events = POLLIN}, {.fd = daemon->service_ended, .events = POLLIN}};
		uint64_t now = monotonic_now_ns(), due_ns;

		if (now >= check_due_ns) {
			if (engine_is_alive(daemon->engine))
				notify_watchdog(&daemon->notify);
			check_due_ns = now + check_ns;
		}
		if (now >= refusals_due_ns) {
			tell_refusals(daemon);
			tell_budget(daemon, now);
			refusals_due_ns = now + REFUSALS_EVERY_NS;
		}
		due_ns = check_due_ns < refusals_due_ns ? check_due_ns : refusals_due_ns;
		/* Rounded up: waking a moment too early would mean waking again. */
		if (poll(fds, 2, (int)((due_ns - now) / 1000000) + 1) < 0 && errno != EINTR) {
			log_say(&daemon->log, LOG_ERROR, "poll: %s", strerror(errno));
			return EXIT_FAILED;
		}
		if (fds[1].revents) {
			log_say(&daemon->log, LOG_ERROR, "the service has ended: %s",
				strerror(-daemon->service_error));
			return EXIT_FAILED;
		}
		if (fds[0].revents && handle_signal(daemon, signals))
			return EXIT_OK;
	}
}

/* The service thread is there from the start of this to its end. */
static int serve(struct daemon *daemon, int signals)
{
	pthread_t thread;
	int status, error = pthread_create(&thread, NULL, run_service, daemon);

	if (error) {
		log_say(&daemon->log, LOG_ERROR, "can't start the service's thread: %s", strerror(error));
		return EXIT_FAILED;
	}
	tell_ready(daemon);
	log_say(&daemon->log, LOG_INFO, "version %s, answering on %s", CBOX_PROFD_VERSION,
		daemon->settings.service.path);
	status = keep_house(daemon, signals);
	notify_stopping(&daemon->notify);
	service_stop(daemon->service);
	pthread_join(thread, NULL);
	return status;
}

static int start_engine(struct daemon *daemon)
{
	int r;

	r = engine_new(&daemon->settings.engine, &daemon->engine);
	if (r < 0)
		return r;
	r = engine_select(daemon->engine, daemon->settings.selectors, daemon->settings.selector_count);
	if (r < 0)
		return r;
	return engine_start(daemon->engine);
}

static int exit_status_of(int error)
{
	return error == -EPERM || error == -EACCES ? EXIT_NO_PERMISSION : EXIT_FAILED;
}

static int run(struct daemon *daemon, int signals, int listen_fd)
{
	struct service_hooks hooks = {.reload = reload, .context = daemon};
	char why[WHY_BYTES] = "";
	int r, status;

	r = start_engine(daemon);
	if (r < 0) {
		cleanup_close(&listen_fd);
		log_say(&daemon->log, LOG_ERROR, "can't start sampling: %s", strerror(-r));
		return exit_status_of(r);
	}
	r = service_new(&daemon->settings.service, &hooks, daemon->engine, listen_fd, &daemon->service, why,
		sizeof(why));
	if (r < 0) {
		log_say(&daemon->log, LOG_ERROR, "can't open the socket: %s", why);
		return exit_status_of(r);
	}
	status = serve(daemon, signals);
	if (engine_stop(daemon->engine) < 0) {
		log_say(&daemon->log, LOG_ERROR,
			"a sampled process's memory does not answer (userfaultfd, or a dead network file "
			"system); "
			"ending without waiting for it");
		_exit(status);
	}
	return status;
}

static void daemon_deinit(struct daemon *daemon)
{
	/* Orders name the service's mailbox until the engine has given them back. */
	if (daemon->engine)
		engine_stop(daemon->engine);
	if (daemon->service)
		service_free(daemon->service);
	if (daemon->engine)
		engine_free(daemon->engine);
	cleanup_close(&daemon->service_ended);
	notify_close(&daemon->notify);
	pthread_mutex_destroy(&daemon->reload_lock);
	log_deinit(&daemon->log);
}

/* Every target is held by a few descriptors: as many as the system lets us have. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Blocks the signals we act on, for this thread and all that it will start. A signalfd or a negative errno.
 */
static int take_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int run_daemon(const char *config_path, const struct daemon_settings *settings)
{
	_cleanup_(daemon_deinit) struct daemon daemon = {
		.config_path = config_path,
		.settings = *settings,
		.notify = {.fd = -1},
		.service_ended = -1,
	};
	_cleanup_close_ int signals = -1;
	char why[WHY_BYTES];
	int listen_fd, r;

	log_init(&daemon.log, stderr);
	pthread_mutex_init(&daemon.reload_lock, NULL);
	r = activation_take(&listen_fd, why, sizeof(why));
	if (r < 0) {
		log_say(&daemon.log, LOG_ERROR, "%s", why);
		return EXIT_FAILED;
	}
	r = notify_open(&daemon.notify);
	if (r < 0)
		log_say(&daemon.log, LOG_WARNING,
			"the service manager can't be told anything: NOTIFY_SOCKET: %s", strerror(-r));
	raise_descriptor_limit();
	signals = take_signals();
	daemon.service_ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (signals < 0 || daemon.service_ended < 0) {
		cleanup_close(&listen_fd);
		log_say(&daemon.log, LOG_ERROR, "no descriptor for signals and events: %s",
			strerror(signals < 0 ? -signals : errno));
		return EXIT_FAILED;
	}
	return run(&daemon, signals, listen_fd);
}

int cli_daemon(int argc, char **argv)
{
	const char *config_path = CONFIG_DEFAULT_PATH;
	bool check = false;
	const struct cli_option options[] = {
		{.name = "config",
			.letter = 'c',
			.argument = "FILE",
			.take = cli_take_text,
			.into = &config_path,
			.help = "the configuration; default " CONFIG_DEFAULT_PATH},
		{.name = "check",
			.take = cli_take_flag,
			.into = &check,
			.help = "only read the configuration: ok, or what is wrong"},
	};
	const struct cli_command command = {
		.verb = "daemon",
		.arguments = "",
		.summary = "Samples the configured pools and answers on its socket, in the foreground, until "
			   "SIGTERM or\n"
			   "SIGINT. SIGHUP reads the configuration again; while that is wrong, the old one "
			   "stays.",
		CLI_OPTIONS(options),
		.examples = "  cbox-profd daemon\n"
			    "  cbox-profd daemon --config ./my.yaml\n"
			    "  cbox-profd daemon --check && systemctl reload cbox-profd\n",
	};
	struct daemon_settings settings;
	char why[WHY_BYTES];
	int first, r;

	r = cli_options_parse(&command, argc, argv, &first);
	if (r != CLI_GO_ON)
		return r;
	r = daemon_settings_load(config_path, &settings, why, sizeof(why));
	if (r < 0)
		return cli_fail(exit_status_of(r), "%s", why);
	if (check) {
		puts("ok");
		return EXIT_OK;
	}
	return run_daemon(config_path, &settings);
}
