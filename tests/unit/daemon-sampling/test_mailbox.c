/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/sampling/mailbox.h"

struct letter {
	struct message message;
	int sender, number;
};

static struct message *wait_for_mail(struct mailbox *mailbox)
{
	struct pollfd pollfd = {.fd = mailbox_fd(mailbox), .events = POLLIN};

	assert_int_equal(poll(&pollfd, 1, 5000), 1);
	return mailbox_take_all(mailbox);
}

static void messages_come_out_in_the_order_they_were_posted(void **state)
{
	struct letter letters[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
	_cleanup_(mailbox_freep) struct mailbox *mailbox = NULL;
	struct message *mail;

	assert_int_equal(mailbox_new(&mailbox), 0);
	assert_null(mailbox_take_all(mailbox));
	for (int i = 0; i < 3; i++)
		mailbox_post(mailbox, &letters[i].message);
	mail = wait_for_mail(mailbox);
	assert_ptr_equal(mail, &letters[0].message);
	assert_ptr_equal(mail->next, &letters[1].message);
	assert_ptr_equal(mail->next->next, &letters[2].message);
	assert_null(mail->next->next->next);
	assert_null(mailbox_take_all(mailbox));
}

static void an_emptied_mailbox_is_not_readable(void **state)
{
	_cleanup_(mailbox_freep) struct mailbox *mailbox = NULL;
	struct letter letter = {.number = 1};

	assert_int_equal(mailbox_new(&mailbox), 0);
	mailbox_post(mailbox, &letter.message);
	assert_non_null(mailbox_take_all(mailbox));
	assert_int_equal(poll(&(struct pollfd){.fd = mailbox_fd(mailbox), .events = POLLIN}, 1, 0), 0);
}

#define SENDERS 4
#define LETTERS 5000

static struct mailbox *shared;
static struct letter sent[SENDERS][LETTERS];

static void *send_letters(void *argument)
{
	int sender = (int)(intptr_t)argument;

	for (int i = 0; i < LETTERS; i++) {
		sent[sender][i] = (struct letter){.sender = sender, .number = i};
		mailbox_post(shared, &sent[sender][i].message);
	}
	return NULL;
}

static void every_message_of_concurrent_senders_arrives_once_and_in_its_senders_order(void **state)
{
	int next[SENDERS] = {0}, received = 0;
	pthread_t threads[SENDERS];

	assert_int_equal(mailbox_new(&shared), 0);
	for (intptr_t i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, send_letters, (void *)i), 0);
	while (received < SENDERS * LETTERS) {
		struct message *mail = wait_for_mail(shared);

		for (; mail; mail = mail->next, received++) {
			struct letter *letter = (struct letter *)mail;

			assert_int_equal(letter->number, next[letter->sender]++);
		}
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	assert_null(mailbox_take_all(shared));
	mailbox_free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_out_in_the_order_they_were_posted),
		cmocka_unit_test(an_emptied_mailbox_is_not_readable),
		cmocka_unit_test(every_message_of_concurrent_senders_arrives_once_and_in_its_senders_order),
	};

	return cmocka_run_group_tests_name("mailbox", tests, NULL, NULL);
}
