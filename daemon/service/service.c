/* SPDX-License-Identifier: MIT
 *
 * The service's thread: one epoll loop over the listening socket, the clients, the mailbox in which the
 * engine's answers arrive, and an eventfd by which other threads wake it.
 *
 * Nothing here may spin or grow at a client's will. A client gets a number of requests a turn and then waits
 * for the others; it is dropped when it reads too slowly, is silent too long, or takes too long over one line
 * (only whole lines and read answers count as activity). Nor may a client's work keep others from a CPU: that
 * is urgency's part, which is asked between any two pieces of work.
 *
 * Stopping is treated as every client's end of input: what it has asked is answered, then it is closed.
 */
#include "daemon/service/service.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "daemon/service/service_state.h"
#include "daemon/service/verbs.h"

#define EVENTS_PER_TURN 64
#define PENDING_ANSWERS_PER_USER 4 /* one user's unread bytes, in max_pending_bytes */
#define STOP_GRACE_NS SECOND_NS
#define DRAIN_GRACE_NS SECOND_NS /* for orders that the engine still has when the service is freed */

struct authority_rules service_authority_rules(const struct service *service)
{
	return (struct authority_rules){service->options.group, service->options.admin_group};
}

static void handle_client(struct service *service, struct client *client, uint32_t events)
{
	if (client->fd < 0)
		return;
	if (events & (EPOLLHUP | EPOLLERR)) {
		connection_drop(service, client);
		return;
	}
	if (events & EPOLLOUT) {
		if (client_flush(client) < 0) {
			connection_drop(service, client);
			return;
		}
		if (client_pending_bytes(client) == 0)
			connection_note_activity(service, client);
	}
	if ((events & EPOLLIN) && client_read(client, &service->limits) < 0) {
		connection_drop(service, client);
		return;
	}
	exchanges_serve(service, client);
}

static void drop_silent(struct service *service, uint64_t now_ns)
{
	struct client *client;

	while ((client = TAILQ_FIRST(&service->clients)) &&
		client->active_ns + service->options.idle_timeout_ns <= now_ns) {
		if (client->exchange)
			connection_note_activity(service, client); /* it is we who are slow */
		else
			connection_drop(service, client);
	}
}

static void begin_stop(struct service *service)
{
	struct client *client, *next;
	size_t count;

	service->stop_by_ns = monotonic_now_ns() + STOP_GRACE_NS;
	epoll_ctl(service->epoll_fd, EPOLL_CTL_DEL, service->listener.fd, NULL);
	/* exchanges_serve() moves the client it serves to the end of the list: each is to be met once. */
	count = service->client_count;
	for (client = TAILQ_FIRST(&service->clients); client && count > 0; client = next, count--) {
		next = TAILQ_NEXT(client, clients);
		/* Also of those who wait for an answer: what they asked behind it was asked before the end.
		 */
		if (client_read(client, &service->limits) < 0 && !client->exchange) {
			connection_drop(service, client);
			continue;
		}
		client->input_ended = true;
		exchanges_serve(service, client);
	}
}

/* The grace is over: who still waits is told so. */
static void end_stop(struct service *service)
{
	struct client *client;

	while ((client = TAILQ_FIRST(&service->clients))) {
		if (client->exchange)
			connection_send_error(service, client, client->exchange->request.id,
				PROTOCOL_E_STOPPING, "the daemon is stopping");
		connection_drop(service, client);
	}
}

static void take_options(struct service *service, const struct service_options *options)
{
	struct quota_limits quota = {
		.connections = options->max_clients_per_uid,
		.requests_per_second = options->requests_per_second_per_uid,
		.pending_bytes = (uint64_t)options->max_pending_bytes * PENDING_ANSWERS_PER_USER,
	};

	service->options = *options;
	service->limits = (struct client_limits){options->max_line_bytes, options->max_pending_bytes};
	quota_set_limits(service->quota, &quota);
}

static void take_news(struct service *service)
{
	struct authority_rules rules;
	struct client *client, *next;
	bool has_news;

	pthread_mutex_lock(&service->news_lock);
	has_news = service->has_news;
	if (has_news)
		take_options(service, &service->news);
	service->has_news = false;
	pthread_mutex_unlock(&service->news_lock);
	if (!has_news)
		return;
	/* Who is in which group is for the new rules to say, also for those who are connected. */
	rules = service_authority_rules(service);
	for (client = TAILQ_FIRST(&service->clients); client; client = next) {
		next = TAILQ_NEXT(client, clients);
		if (authority_role(client->fd, &client->peer, &rules, &client->role) < 0)
			connection_drop(service, client);
	}
}

static void handle_wake(struct service *service)
{
	uint64_t count;

	(void)!read(service->wake_fd, &count, sizeof(count));
	take_news(service);
	if (atomic_load(&service->stop) && !service->stop_by_ns)
		begin_stop(service);
}

static uint64_t earlier(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* How long epoll may wait. */
static int wait_ms(const struct service *service, uint64_t now_ns)
{
	const struct client *oldest = TAILQ_FIRST(&service->clients);
	uint64_t wake_ns = UINT64_MAX;

	if (!TAILQ_EMPTY(&service->ready))
		return 0;
	if (oldest)
		wake_ns = oldest->active_ns + service->options.idle_timeout_ns;
	if (service->accept_again_ns)
		wake_ns = earlier(wake_ns, service->accept_again_ns);
	if (service->stop_by_ns)
		wake_ns = earlier(wake_ns, service->stop_by_ns);
	wake_ns = earlier(wake_ns, urgency_due_ns(&service->urgency));
	if (wake_ns == UINT64_MAX)
		return -1;
	if (wake_ns <= now_ns)
		return 0;
	/* Rounded up: waking a moment too early would mean waking again and again. */
	return (int)earlier((wake_ns - now_ns) / MILLISECOND_NS + 1, 60000);
}

/* What is due by the clock, and what is left over from this turn. */
static void end_turn(struct service *service)
{
	size_t ready = 0;
	uint64_t now_ns;
	struct client *client;

	/* Those that were ready when the turn began; exchanges_serve() puts who has more to the end. */
	TAILQ_FOREACH(client, &service->ready, ready)
	ready++;
	while (ready-- > 0 && (client = TAILQ_FIRST(&service->ready))) {
		exchanges_serve(service, client);
		urgency_check(&service->urgency);
	}

	now_ns = monotonic_now_ns();
	drop_silent(service, now_ns);
	if (service->accept_again_ns && service->accept_again_ns <= now_ns && !service->stop_by_ns) {
		service->accept_again_ns = 0;
		connections_watch_listener(service, true);
	}
	if (service->stop_by_ns && service->stop_by_ns <= now_ns)
		end_stop(service);
	while ((client = TAILQ_FIRST(&service->gone))) {
		TAILQ_REMOVE(&service->gone, client, clients);
		client_free(client);
	}
	urgency_check(&service->urgency);
}

int service_run(struct service *service)
{
	struct epoll_event events[EVENTS_PER_TURN];

	pthread_setname_np(pthread_self(), "service");
	urgency_begin(&service->urgency, service->options.sampling.realtime);
	while (!service->stop_by_ns || service->client_count > 0) {
		int count = epoll_wait(
			service->epoll_fd, events, EVENTS_PER_TURN, wait_ms(service, monotonic_now_ns()));

		if (count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < count; i++) {
			void *source = events[i].data.ptr;

			if (source == &service->listener)
				connections_accept(service);
			else if (source == &service->mailbox)
				exchanges_take_mail(service);
			else if (source == &service->wake_fd)
				handle_wake(service);
			else
				handle_client(service, source, events[i].events);
			urgency_check(&service->urgency);
		}
		end_turn(service);
	}
	return 0;
}

static void wake(struct service *service)
{
	uint64_t one = 1;

	(void)!write(service->wake_fd, &one, sizeof(one));
}

void service_stop(struct service *service)
{
	atomic_store(&service->stop, true);
	wake(service);
}

void service_reconfigure(struct service *service, const struct service_options *options)
{
	pthread_mutex_lock(&service->news_lock);
	service->news = *options;
	service->has_news = true;
	pthread_mutex_unlock(&service->news_lock);
	wake(service);
}

static int watch(struct service *service, int fd, void *source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	return epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int set_up_loop(struct service *service)
{
	struct quota_limits none = {0};
	int error;

	service->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (service->epoll_fd < 0)
		return -errno;
	service->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service->wake_fd < 0)
		return -errno;
	if ((error = mailbox_new(&service->mailbox)) || (error = quota_new(&none, &service->quota)) ||
		(error = writer_new(service->mailbox, SERVICE_WRITTEN, &service->writer)) ||
		(error = watch(service, service->wake_fd, &service->wake_fd)))
		return error;
	return watch(service, mailbox_fd(service->mailbox), &service->mailbox);
}

int service_new(const struct service_options *options, const struct service_hooks *hooks,
	struct engine *engine, int listen_fd, struct service **ret_service, char *ret_why, size_t why_bytes)
{
	_cleanup_(service_freep) struct service *service = calloc(1, sizeof(*service));
	int error;

	if (!service) {
		snprintf(ret_why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	service->hooks = *hooks;
	service->engine = engine;
	service->listener.fd = service->epoll_fd = service->wake_fd = -1;
	TAILQ_INIT(&service->clients);
	TAILQ_INIT(&service->gone);
	TAILQ_INIT(&service->ready);
	TAILQ_INIT(&service->waiting);
	pthread_mutex_init(&service->news_lock, NULL);

	error = set_up_loop(service);
	if (error) {
		snprintf(
			ret_why, why_bytes, "the service's event loop can't be set up: %s", strerror(-error));
		return error;
	}
	take_options(service, options);
	if (listen_fd >= 0)
		error = listening_socket_inherit(listen_fd, &service->listener, ret_why, why_bytes);
	else
		error = listening_socket_make(
			options->path, options->mode, options->group, &service->listener, ret_why, why_bytes);
	if (error)
		return error;
	error = watch(service, service->listener.fd, &service->listener);
	if (error) {
		snprintf(ret_why, why_bytes, "%s: can't be watched: %s", service->listener.path,
			strerror(-error));
		return error;
	}
	*ret_service = TAKE(service);
	return 0;
}

/* Waits for the orders the engine still has. False: it keeps some. */
static bool drain(struct service *service)
{
	struct pollfd pollfd = {.fd = mailbox_fd(service->mailbox), .events = POLLIN};
	uint64_t give_up_ns = monotonic_now_ns() + DRAIN_GRACE_NS;

	exchanges_take_mail(service);
	while (service->awaited > 0 && monotonic_now_ns() < give_up_ns) {
		poll(&pollfd, 1, 50);
		exchanges_take_mail(service);
	}
	return service->awaited == 0;
}

void service_free(struct service *service)
{
	end_stop(service);
	end_turn(service);
	/* A mailbox that an order still names can't be freed; with an engine that never answers, it is left
	 * behind. */
	if (service->writer)
		writer_free(service->writer);
	if (service->mailbox && drain(service))
		mailbox_free(service->mailbox);
	listening_socket_close(&service->listener);
	if (service->quota)
		quota_free(service->quota);
	cleanup_close(&service->epoll_fd);
	cleanup_close(&service->wake_fd);
	pthread_mutex_destroy(&service->news_lock);
	free(service);
}
