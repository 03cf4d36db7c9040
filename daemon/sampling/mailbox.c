/* SPDX-License-Identifier: MIT
 *
 * A lock-free stack that senders push to and the receiver takes whole and reverses: a sender's cost is one
 * compare-and-swap, and only the one that finds the stack empty writes the eventfd. It is the only thing
 * threads of this program share while they run.
 */
#include "daemon/sampling/mailbox.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mailbox {
	_Atomic(struct message *) newest;
	int fd;
};

int mailbox_new(struct mailbox **ret_mailbox)
{
	struct mailbox *mailbox = calloc(1, sizeof(*mailbox));

	if (!mailbox)
		return -ENOMEM;
	mailbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (mailbox->fd < 0) {
		int error = -errno;

		free(mailbox);
		return error;
	}
	*ret_mailbox = mailbox;
	return 0;
}

void mailbox_free(struct mailbox *mailbox)
{
	close(mailbox->fd);
	free(mailbox);
}

int mailbox_fd(const struct mailbox *mailbox)
{
	return mailbox->fd;
}

void mailbox_post(struct mailbox *mailbox, struct message *message)
{
	struct message *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);

	do
		message->next = newest;
	while (!atomic_compare_exchange_weak_explicit(
		&mailbox->newest, &newest, message, memory_order_release, memory_order_relaxed));

	/* Who finds it non-empty knows that a wake-up is under way already. An eventfd's write of 1 fails
	 * only when 2^64-2 wake-ups are pending. */
	if (!newest) {
		ssize_t written = write(mailbox->fd, &(uint64_t){1}, sizeof(uint64_t));

		(void)written;
	}
}

struct message *mailbox_take_all(struct mailbox *mailbox)
{
	struct message *newest, *oldest = NULL;
	uint64_t wakeups;

	/* The wake-up is cleared before the stack is taken: a message posted in between wakes once more, for
	 * nothing, instead of never. */
	while (read(mailbox->fd, &wakeups, sizeof(wakeups)) < 0 && errno == EINTR)
		;
	newest = atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
	while (newest) {
		struct message *next = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}
