/* SPDX-License-Identifier: MIT
 *
 * A queue between threads that hands over ownership, woken through an eventfd. Senders never wait for the
 * receiver; the receiver never waits for more than one list splice.
 */
#pragma once

#include <stddef.h>

#include "symbols/cleanup.h"

/* The first member of whatever travels. @kind tells a receiver of several sorts what it is; 0 is for those
 * that get only one. */
struct message {
	struct message *next;
	unsigned kind;
};

struct mailbox;

int mailbox_new(struct mailbox **ret_mailbox);
void mailbox_free(struct mailbox *mailbox); /* must be empty */
DEFINE_CLEANUP(struct mailbox, mailbox_free)

/* Readable while there may be messages. */
int mailbox_fd(const struct mailbox *mailbox);

/* Gives @message away. */
void mailbox_post(struct mailbox *mailbox, struct message *message);

/* Takes all messages, oldest first, linked by next; NULL when there are none. Clears the wake-up. */
struct message *mailbox_take_all(struct mailbox *mailbox);
