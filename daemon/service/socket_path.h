/* SPDX-License-Identifier: MIT
 *
 * The listening socket: made in a directory that nobody else can tamper with, or taken over from who started
 * us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct listening_socket {
	int fd; /* non-blocking, listening; -1: none */
	char path[108];
	bool ours; /* we bound it, so we remove it; an inherited one belongs to who made it */
	dev_t device;
	ino_t inode;
};

/* Makes @path, an absolute one without symbolic links: permissions @mode, group @group ((gid_t)-1: as it
 * comes). A directory that is missing is made, its parents are not. 0, or a negative errno with one line in
 * @ret_why: -EPERM a directory somebody else could change, -EADDRINUSE another daemon listens there, -EEXIST
 * something stands there that is not a socket left behind. */
int listening_socket_make(const char *path, mode_t mode, gid_t group, struct listening_socket *ret_socket,
	char *ret_why, size_t why_bytes);

/* Takes over @fd (LISTEN_FDS); owned by *ret_socket from success on. -EINVAL when it is not a listening Unix
 * stream socket. */
int listening_socket_inherit(int fd, struct listening_socket *ret_socket, char *ret_why, size_t why_bytes);

/* Closes it, and removes the path if the socket there is still the one we made. Also right for one that was
 * never made (fd -1). */
void listening_socket_close(struct listening_socket *socket);
