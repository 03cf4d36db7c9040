/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <cmocka.h>

#include "daemon/service/socket_path.h"
#include "symbols/cleanup.h"

#define WWW_DATA 33

struct scene {
	char directory[64];
	char path[108];
	char why[256];
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	if (!scene)
		return -1;
	strcpy(scene->directory, "/tmp/cbox-socket-XXXXXX");
	if (!mkdtemp(scene->directory))
		return -1;
	snprintf(scene->path, sizeof(scene->path), "%s/profd.sock", scene->directory);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	unlink(scene->path);
	rmdir(scene->directory);
	free(scene);
	return 0;
}

static int make(struct scene *scene, struct listening_socket *ret_socket)
{
	return listening_socket_make(
		scene->path, 0660, (gid_t)-1, ret_socket, scene->why, sizeof(scene->why));
}

static void assert_refused(struct scene *scene, int error, const char *words)
{
	struct listening_socket socket;

	assert_int_equal(make(scene, &socket), error);
	if (!strstr(scene->why, words))
		fail_msg("\"%s\" does not say \"%s\"", scene->why, words);
}

/* 0, or the negative errno of connect(). */
static int try_to_connect(const char *path)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static void a_socket_has_the_mode_and_group_asked_for(void **state)
{
	struct scene *scene = *state;
	struct listening_socket socket;
	struct stat status;
	mode_t umask_before = umask(0077);

	assert_int_equal(listening_socket_make(scene->path, 0666, WWW_DATA, &socket, scene->why, 256), 0);
	umask(umask_before);
	assert_int_equal(lstat(scene->path, &status), 0);
	assert_int_equal(status.st_mode, S_IFSOCK | 0666);
	assert_int_equal(status.st_uid, geteuid());
	assert_int_equal(status.st_gid, WWW_DATA);
	assert_int_equal(try_to_connect(scene->path), 0);
	assert_true(fcntl(socket.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(socket.fd, F_GETFD) & FD_CLOEXEC);
	listening_socket_close(&socket);
	assert_int_equal(lstat(scene->path, &status), -1);
}

static void a_missing_directory_is_made_for_everybody_to_enter_and_nobody_to_change(void **state)
{
	struct scene *scene = *state;
	struct listening_socket socket;
	struct stat status;

	rmdir(scene->directory);
	assert_int_equal(make(scene, &socket), 0);
	assert_int_equal(stat(scene->directory, &status), 0);
	assert_int_equal(status.st_mode, S_IFDIR | 0755);
	listening_socket_close(&socket);
}

static void a_socket_nobody_listens_on_is_replaced(void **state)
{
	struct scene *scene = *state;
	struct listening_socket socket;

	assert_int_equal(make(scene, &socket), 0);
	close(socket.fd); /* as a killed daemon would */
	assert_int_equal(try_to_connect(scene->path), -ECONNREFUSED);
	assert_int_equal(make(scene, &socket), 0);
	assert_int_equal(try_to_connect(scene->path), 0);
	listening_socket_close(&socket);
}

static void a_socket_somebody_listens_on_is_left_alone(void **state)
{
	struct scene *scene = *state;
	struct listening_socket socket;

	assert_int_equal(make(scene, &socket), 0);
	assert_refused(scene, -EADDRINUSE, "another daemon listens there");
	assert_int_equal(try_to_connect(scene->path), 0);
	listening_socket_close(&socket);
}

static void what_is_no_socket_is_left_alone(void **state)
{
	struct scene *scene = *state;

	close(open(scene->path, O_CREAT | O_WRONLY, 0600));
	assert_refused(scene, -EEXIST, "something that is no socket");
	assert_int_equal(access(scene->path, F_OK), 0);
	unlink(scene->path);

	assert_int_equal(symlink("/etc/passwd", scene->path), 0);
	assert_refused(scene, -EEXIST, "something that is no socket");
	unlink(scene->path);
	/* A dangling one is not created through. */
	assert_int_equal(symlink("elsewhere", scene->path), 0);
	assert_refused(scene, -EEXIST, "something that is no socket");
}

static void a_directory_others_can_write_to_is_refused_unless_sticky(void **state)
{
	struct scene *scene = *state;
	struct listening_socket socket;

	chmod(scene->directory, 0777);
	assert_refused(scene, -EPERM, "chmod go-w");
	chmod(scene->directory, 0770);
	assert_refused(scene, -EPERM, "chmod go-w");
	chmod(scene->directory, 01777);
	assert_int_equal(make(scene, &socket), 0);
	listening_socket_close(&socket);
}

static void a_directory_of_another_user_is_refused(void **state)
{
	struct scene *scene = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(scene->directory, WWW_DATA, 0), 0);
	assert_refused(scene, -EPERM, "belongs to uid 33");
}

static void a_directory_above_that_others_can_write_to_is_refused(void **state)
{
	struct scene *scene = *state;
	char inner[80];

	snprintf(inner, sizeof(inner), "%s/run", scene->directory);
	assert_int_equal(mkdir(inner, 0755), 0);
	chmod(scene->directory, 0777);
	snprintf(scene->path, sizeof(scene->path), "%s/profd.sock", inner);
	assert_refused(scene, -EPERM, "chmod go-w");
	rmdir(inner);
}

static void another_users_socket_in_a_sticky_directory_is_left_alone(void **state)
{
	struct scene *scene = *state;
	struct listening_socket socket;

	if (geteuid() != 0)
		skip();
	assert_int_equal(make(scene, &socket), 0);
	close(socket.fd);
	assert_int_equal(lchown(scene->path, WWW_DATA, (gid_t)-1), 0);
	assert_refused(scene, -EEXIST, "a socket of uid 33");
}

static void a_way_through_a_symbolic_link_is_refused(void **state)
{
	struct scene *scene = *state;
	char link[64] = "/tmp/cbox-link-XXXXXX";

	assert_true(mkdtemp(link) && rmdir(link) == 0);
	assert_int_equal(symlink(scene->directory, link), 0);
	snprintf(scene->path, sizeof(scene->path), "%s/profd.sock", link);
	assert_refused(scene, -ENOTDIR, "symbolic link");
	unlink(link);
}

static void paths_that_mean_something_else_than_they_say_are_refused(void **state)
{
	struct scene *scene = *state;

	strcpy(scene->path, "run/profd.sock");
	assert_refused(scene, -EINVAL, "not an absolute path");
	strcpy(scene->path, "");
	assert_refused(scene, -EINVAL, "not an absolute path");
	strcpy(scene->path, "/tmp/../profd.sock");
	assert_refused(scene, -EINVAL, "without empty components");
	strcpy(scene->path, "/tmp//profd.sock");
	assert_refused(scene, -EINVAL, "without empty components");
	strcpy(scene->path, "/tmp/");
	assert_refused(scene, -EINVAL, "a directory's name");
	strcpy(scene->path, "/tmp/no-such-place/either/profd.sock");
	assert_refused(scene, -ENOENT, "/tmp/no-such-place: No such file");
}

static void a_path_too_long_for_a_socket_is_refused(void **state)
{
	struct listening_socket socket;
	char path[200], why[256];

	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[108] = 0;
	assert_int_equal(
		listening_socket_make(path, 0600, (gid_t)-1, &socket, why, sizeof(why)), -ENAMETOOLONG);
	assert_non_null(strstr(why, "107 bytes"));
}

static void closing_leaves_the_socket_of_a_successor(void **state)
{
	struct scene *scene = *state;
	struct listening_socket old, successor;

	assert_int_equal(make(scene, &old), 0);
	unlink(scene->path);
	assert_int_equal(make(scene, &successor), 0);
	listening_socket_close(&old);
	assert_int_equal(try_to_connect(scene->path), 0);
	listening_socket_close(&successor);
	assert_int_equal(access(scene->path, F_OK), -1);
}

static void an_inherited_socket_keeps_its_path(void **state)
{
	struct scene *scene = *state;
	struct listening_socket theirs, inherited;

	assert_int_equal(make(scene, &theirs), 0);
	assert_int_equal(listening_socket_inherit(dup(theirs.fd), &inherited, scene->why, 256), 0);
	assert_string_equal(inherited.path, scene->path);
	listening_socket_close(&inherited);
	assert_int_equal(try_to_connect(scene->path), 0);
	listening_socket_close(&theirs);
}

static void what_is_no_listening_unix_stream_socket_is_not_inherited(void **state)
{
	struct scene *scene = *state;
	struct listening_socket inherited;
	int pair[2];
	_cleanup_close_ int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0), null = open("/dev/null", O_RDONLY);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(listening_socket_inherit(pair[0], &inherited, scene->why, 256), -EINVAL);
	assert_non_null(strstr(scene->why, "ListenStream"));
	assert_int_equal(listening_socket_inherit(datagrams, &inherited, scene->why, 256), -EINVAL);
	assert_int_equal(listening_socket_inherit(null, &inherited, scene->why, 256), -ENOTSOCK);
	close(pair[0]);
	close(pair[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_socket_has_the_mode_and_group_asked_for),
		TEST(a_missing_directory_is_made_for_everybody_to_enter_and_nobody_to_change),
		TEST(a_socket_nobody_listens_on_is_replaced),
		TEST(a_socket_somebody_listens_on_is_left_alone),
		TEST(what_is_no_socket_is_left_alone),
		TEST(a_directory_others_can_write_to_is_refused_unless_sticky),
		TEST(a_directory_of_another_user_is_refused),
		TEST(a_directory_above_that_others_can_write_to_is_refused),
		TEST(another_users_socket_in_a_sticky_directory_is_left_alone),
		TEST(a_way_through_a_symbolic_link_is_refused),
		TEST(paths_that_mean_something_else_than_they_say_are_refused),
		TEST(a_path_too_long_for_a_socket_is_refused),
		TEST(closing_leaves_the_socket_of_a_successor),
		TEST(an_inherited_socket_keeps_its_path),
		TEST(what_is_no_listening_unix_stream_socket_is_not_inherited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
