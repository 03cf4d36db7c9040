/* SPDX-License-Identifier: MIT
 *
 * Two queues: a worker's answer is never behind more than the one reader's that is being written.
 */
#include "daemon/service/writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

enum { WRITER_WRITE = 1, WRITER_STOP };

TAILQ_HEAD(exchange_list, exchange);

struct writer {
	struct mailbox *inbox, *outbox;
	unsigned outbox_kind;
	pthread_t thread;
	bool running;
	struct message stop;
	atomic_bool stopping;
	struct exchange_list workers, readers;
};

static void give_back(struct writer *writer, struct exchange *exchange)
{
	exchange->message.kind = writer->outbox_kind;
	mailbox_post(writer->outbox, &exchange->message);
}

static void take_mail(struct writer *writer)
{
	struct message *mail = mailbox_take_all(writer->inbox);

	while (mail) {
		struct exchange *exchange = (struct exchange *)mail;
		struct message *next = mail->next;

		if (mail->kind == WRITER_WRITE)
			TAILQ_INSERT_TAIL(verb_is_worker(exchange) ? &writer->workers : &writer->readers,
				exchange, queued);
		mail = next;
	}
}

static struct exchange *take_first(struct exchange_list *list)
{
	struct exchange *exchange = TAILQ_FIRST(list);

	if (exchange)
		TAILQ_REMOVE(list, exchange, queued);
	return exchange;
}

static void *run(void *context)
{
	struct writer *writer = context;
	struct pollfd arrival = {.fd = mailbox_fd(writer->inbox), .events = POLLIN};
	struct exchange *exchange;

	pthread_setname_np(pthread_self(), "writer");
	while (!atomic_load(&writer->stopping)) {
		take_mail(writer);
		exchange = take_first(&writer->workers) ?: take_first(&writer->readers);
		if (exchange) {
			/* Long answers need nothing of the service. */
			exchange_write(exchange, &(struct verb_host){0});
			give_back(writer, exchange);
		} else {
			poll(&arrival, 1, -1);
		}
	}
	return NULL;
}

int writer_new(struct mailbox *outbox, unsigned kind, struct writer **ret_writer)
{
	_cleanup_(writer_freep) struct writer *writer = calloc(1, sizeof(*writer));
	int error;

	if (!writer)
		return -ENOMEM;
	TAILQ_INIT(&writer->workers);
	TAILQ_INIT(&writer->readers);
	writer->outbox = outbox;
	writer->outbox_kind = kind;
	writer->stop.kind = WRITER_STOP;
	error = mailbox_new(&writer->inbox);
	if (error < 0)
		return error;
	error = pthread_create(&writer->thread, NULL, run, writer);
	if (error)
		return -error;
	writer->running = true;
	*ret_writer = TAKE(writer);
	return 0;
}

void writer_free(struct writer *writer)
{
	struct exchange *exchange;

	if (writer->running) {
		atomic_store(&writer->stopping, true);
		mailbox_post(writer->inbox, &writer->stop);
		pthread_join(writer->thread, NULL);
		take_mail(writer);
	}
	while ((exchange = take_first(&writer->workers) ?: take_first(&writer->readers)))
		give_back(writer, exchange);
	if (writer->inbox)
		mailbox_free(writer->inbox);
	free(writer);
}

void writer_write(struct writer *writer, struct exchange *exchange)
{
	exchange->message.kind = WRITER_WRITE;
	mailbox_post(writer->inbox, &exchange->message);
}
