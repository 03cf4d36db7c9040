/* SPDX-License-Identifier: MIT
 *
 * Who is at the other end of a connection, and what they may ask.
 */
#pragma once

#include <sys/types.h>

struct peer {
	pid_t pid; /* in our pid namespace; 0: it lives in one we can't see into */
	uid_t uid; /* effective, at connect() */
	gid_t gid;
};

/* Each role may do what the ones before it may. */
enum role {
	ROLE_WORKER,     /* ask about the peer's own process: anybody */
	ROLE_READER_OWN, /* read what belongs to targets of the peer's own uid: anybody */
	ROLE_READER,     /* read everything: members of the socket's group */
	ROLE_CONTROL,    /* change what is sampled: root, members of the admin group */
};

struct authority_rules {
	gid_t group, admin_group; /* (gid_t)-1: none */
};

/* Fills *ret_peer for the connected Unix socket @fd. 0, -EPERM when the kernel names no user, or another
 * negative errno. */
int authority_identify(int fd, struct peer *ret_peer);

/* The highest role of the peer of @fd under @rules. 0 or a negative errno. */
int authority_role(int fd, const struct peer *peer, const struct authority_rules *rules, enum role *ret_role);
