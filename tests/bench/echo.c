/* SPDX-License-Identifier: MIT
 *
 * The control row of the `finish` measurement: the same client, the same machine, the same kind of socket,
 * and a server that does nothing. What its round trips take is the kernel's and the client's.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/bench/driver.h"

#define LINE_BYTES 65536

static void serve(int client)
{
	static char line[LINE_BYTES];
	ssize_t bytes = send(client, "{}\n", 3, MSG_NOSIGNAL);

	while (bytes > 0) {
		bytes = recv(client, line, sizeof(line), 0);
		if (bytes > 0)
			bytes = send(client, line, (size_t)bytes, MSG_NOSIGNAL);
	}
}

int driver_echo(char **arguments)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(arguments[0]) >= sizeof(address.sun_path))
		return 2;
	strcpy(address.sun_path, arguments[0]);
	if (server < 0 || bind(server, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		chmod(address.sun_path, 0666) < 0 || listen(server, 1) < 0) {
		perror(arguments[0]);
		return 1;
	}
	for (;;) {
		int client = accept4(server, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0)
			return 1;
		serve(client);
		close(client);
	}
}
