/* SPDX-License-Identifier: MIT
 *
 * A listening socket that the service manager made for us: sd_listen_fds_with_names(3), spoken directly.
 */
#pragma once

#include <stddef.h>

/* Of several sockets the one by this name is ours: what systemd calls the descriptor of cbox-profd.socket. */
#define ACTIVATION_SOCKET_NAME "cbox-profd.socket"

/* The descriptor that was passed, or -1 when none was: *ret_fd, owned by the caller, close-on-exec. Any
 * others that came along are closed. Takes LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES out of the environment;
 * call it before there are threads. 0, or -EINVAL with one line in @ret_why. */
int activation_take(int *ret_fd, char *ret_why, size_t why_bytes);
