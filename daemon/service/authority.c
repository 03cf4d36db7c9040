/* SPDX-License-Identifier: MIT
 *
 * Authority comes from what the kernel noted at connect(): SO_PEERCRED's uid and gid, and the supplementary
 * groups of SO_PEERGROUPS. They can't be forged and don't change when the peer drops or gains privileges
 * afterwards. Groups are taken from the process and not looked up by user name: that would need NSS (network,
 * files, locks) in a root daemon's loop, and would miss groups given by `sg` or by systemd.
 *
 * The pid is never a reason to allow anything. It says which worker a worker verb is about, and the engine
 * then demands that this worker's uid is the peer's: whoever inherits or is passed a connection can at most
 * end a unit of its own user.
 */
#include "daemon/service/authority.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "symbols/cleanup.h"

#define MAX_PEER_GROUPS 65536 /* the kernel's NGROUPS_MAX */

int authority_identify(int fd, struct peer *ret_peer)
{
	struct ucred credentials;
	socklen_t bytes = sizeof(credentials);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) < 0)
		return -errno;
	/* (uid_t)-1 is nobody's, and is what "any uid" is called in an order. */
	if (credentials.uid == (uid_t)-1)
		return -EPERM;
	*ret_peer = (struct peer){credentials.pid, credentials.uid, credentials.gid};
	return 0;
}

/* The array is the caller's to free; NULL and 0 for a peer without supplementary groups. */
static int supplementary_groups(int fd, gid_t **ret_groups, size_t *ret_count)
{
	_cleanup_free_ gid_t *groups = NULL;
	socklen_t bytes = 0;

	/* With no room the kernel says how much it wants; the list is fixed from connect() on, so that stays
	 * true. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) < 0 && errno != ERANGE)
		return -errno;
	if (bytes > MAX_PEER_GROUPS * sizeof(gid_t))
		return -E2BIG;
	if (bytes > 0) {
		groups = malloc(bytes);
		if (!groups)
			return -ENOMEM;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
			return -errno;
	}
	*ret_groups = TAKE(groups);
	*ret_count = bytes / sizeof(gid_t);
	return 0;
}

static bool is_member(gid_t wanted, const struct peer *peer, const gid_t *groups, size_t count)
{
	if (wanted == (gid_t)-1)
		return false;
	if (peer->gid == wanted)
		return true;
	for (size_t i = 0; i < count; i++)
		if (groups[i] == wanted)
			return true;
	return false;
}

int authority_role(int fd, const struct peer *peer, const struct authority_rules *rules, enum role *ret_role)
{
	_cleanup_free_ gid_t *groups = NULL;
	size_t count = 0;
	int error;

	if (peer->uid == 0) {
		*ret_role = ROLE_CONTROL;
		return 0;
	}
	error = supplementary_groups(fd, &groups, &count);
	if (error)
		return error;
	if (is_member(rules->admin_group, peer, groups, count))
		*ret_role = ROLE_CONTROL;
	else if (is_member(rules->group, peer, groups, count))
		*ret_role = ROLE_READER;
	else
		*ret_role = ROLE_READER_OWN;
	return 0;
}
