# SPDX-License-Identifier: MIT
"""Workers come and go, binaries are replaced, namespaces hide things: sampling goes on, and nothing piles up (Must show 6).

E2E_GENERATIONS=10000 runs the long form of the growth test.
"""
import os
import shutil
import signal

import pytest

from support import balance, cli, fastcgi, load, php_builds, proc, wait
from support.fpm import Pool
from test_dump import blocked_chain, frames_of, told
from test_unit import assert_is_consistent, scatter_ns, unit

GENERATIONS = int(os.environ.get("E2E_GENERATIONS", "1000"))
TRACE = "0af7651916cd43dd8448eb211c80319c"


def assert_units_are_right(fpm, scripts, daemon):
    """A request of known work gets its own, right result."""
    answer = unit(fpm, scripts, daemon, {"trace_id": TRACE}, hot=60, wait=20)
    tree = assert_is_consistent(answer["result"])
    assert answer["result"]["trace_id"] == TRACE
    assert tree.total("hot")[2] == pytest.approx(60e6, abs=scatter_ns(answer["result"], 60e6))


def assert_dump_is_right(fpm, scripts, place):
    with blocked_chain(fpm, scripts, place) as backtrace:
        dump = cli.run_json("dump", backtrace["worker"], "--json")
    assert told(dump) == frames_of(backtrace, ("fread", "", 0))


def test_a_killed_workers_replacement_is_sampled(build, make_fpm, make_daemon, scripts):
    fpm = make_fpm(build)
    daemon = make_daemon(fpm)
    for _ in range(3):
        (killed,) = fpm.workers()
        fpm.kill_worker(killed)
        daemon.until_attached(fpm.workers())
        wait.until(lambda: daemon.target(killed) is None, "the killed worker to be let go")
        assert_units_are_right(fpm, scripts, daemon)


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_a_worker_killed_in_mid_request_leaves_its_unit_behind(make_fpm, make_daemon, scripts, gate):
    fpm = make_fpm()
    daemon = make_daemon(fpm)
    (worker,) = fpm.workers()
    with fastcgi.Connection(fpm.socket()) as connection:
        connection.send(scripts / "context.php", f"form=$GLOBALS&value=00-{TRACE}-00f067aa0ba902b7-01&gate={gate.path}")
        gate.until_reached()
        wait.until(lambda: daemon.target(worker)["trace_id"] == TRACE, "the trace to be seen")
        wait.until(lambda: balance.looked(daemon.target(worker)["accounting"]) > 10, "some samples")
        os.kill(worker, signal.SIGKILL)
    wait.until(lambda: daemon.target(worker) is None, "the worker to be let go")
    result = daemon.ask("unit", trace_id=TRACE, profile=True, stacks=True)
    assert assert_is_consistent(result).total("wait_at")[1] > 0


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_generation_after_generation_every_result_is_right_and_nothing_piles_up(make_fpm, make_daemon, scripts):
    """pm.max_requests=1: every request has a worker of its own, most of them gone before anybody could look for them."""
    fpm = make_fpm(pools=[Pool(workers=4, max_requests=1)])
    # ended units are kept for a while: not longer here than the first generations take
    daemon = make_daemon(fpm, rate=1000, limits={"retained_for": "1s"}, socket={"requests_per_second_per_uid": 100000})

    def generations(first, count):
        workers = set()
        for number in range(first, first + count):
            trace = f"{number:032x}"
            answer = fpm.request(scripts / "quick.php", f"trace={trace}&us=500", **daemon.to_be_found()).json()
            assert answer["warnings"] == []
            assert answer["result"].get("available") is not False, f"generation {number}: {answer['result']}"
            assert answer["result"]["trace_id"] == trace
            workers.add(answer["pid"])
        return workers

    def settled():
        """What the daemon holds when no worker is on its way in or out."""
        wait.until(lambda: sorted(fpm.workers()) == sorted(target["pid"] for target in daemon.targets()), "targets = workers")
        return proc.fd_count(daemon.pid), proc.rss_bytes(daemon.pid), len(proc.threads(daemon.pid))

    generations(1, GENERATIONS // 4)
    fds, rss, threads = settled()
    seen = generations(GENERATIONS, GENERATIONS)
    fds_after, rss_after, threads_after = settled()
    assert len(seen) == GENERATIONS or GENERATIONS > 30000, "a worker served twice"
    assert fds_after <= fds + 2, "descriptors of workers that are gone"
    assert threads_after == threads
    assert rss_after - rss <= 2 << 20, f"{(rss_after - rss) >> 10} KiB more after {GENERATIONS} generations"


def test_a_reloaded_pool_is_sampled_again(build, make_fpm, make_daemon, scripts, place):
    fpm = make_fpm(build, [Pool(workers=2)])
    daemon = make_daemon(fpm)
    for _ in range(2):
        fpm.reload()
        daemon.until_attached(fpm.workers())
        wait.until(lambda: len(daemon.targets()) == 2, "the old workers to be let go")
        assert_units_are_right(fpm, scripts, daemon)
    assert_dump_is_right(fpm, scripts, place)


@pytest.mark.parametrize("fate", ["stays", "is deleted", "is replaced"])
def test_a_binary_in_a_path_with_a_space(fate, build, make_fpm, make_daemon, scripts, place):
    binary = place / "php fpm" / "php-fpm (deleted) 8"
    binary.parent.mkdir()
    shutil.copy(build.fpm, binary)
    fpm = make_fpm(build, binary=binary)
    if fate != "stays":
        binary.unlink()
    if fate == "is replaced":
        shutil.copy(next(other for other in php_builds.ALL if other.version != build.version).fpm, binary)
    daemon = make_daemon(fpm)
    assert_units_are_right(fpm, scripts, daemon)
    assert_dump_is_right(fpm, scripts, place)


def test_a_binary_without_section_headers(build, make_fpm, make_daemon, scripts, place):
    """Section headers are for linkers: sstrip and packers leave them out, and the program runs all the same."""
    image = bytearray(build.fpm.read_bytes())
    image[40:48] = bytes(8)  # e_shoff
    image[58:64] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    binary = place / "php-fpm-without-sections"
    binary.write_bytes(image)
    binary.chmod(0o755)
    fpm = make_fpm(build, binary=binary)
    assert_units_are_right(fpm, scripts, make_daemon(fpm))
    assert_dump_is_right(fpm, scripts, place)


def test_a_master_in_namespaces_of_its_own_with_a_binary_nobody_else_sees(build, make_fpm, make_daemon, scripts, place):
    hidden = place / "hidden"
    hidden.mkdir()
    prefix = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
              'mount -t tmpfs none "$0" && cp "$1" "$0/php-fpm" && shift && exec "$0/php-fpm" "$@"', hidden]
    fpm = make_fpm(build, prefix=prefix)
    assert not (hidden / "php-fpm").exists()
    assert_units_are_right(fpm, scripts, make_daemon(fpm))
    with blocked_chain(fpm, scripts, place) as backtrace:
        assert backtrace["pid"] != backtrace["worker"], "PHP should see its own namespace's pid"
        assert told(cli.run_json("dump", backtrace["worker"], "--json")) == frames_of(backtrace, ("fread", "", 0))


def test_a_pool_in_a_chroot(build, make_fpm, make_daemon, scripts, place, room, gate):
    fpm = make_fpm(build, [Pool(chroot=room)])
    daemon = make_daemon(fpm)
    (worker,) = fpm.workers()
    inside = "/" + str(scripts.relative_to(room))
    with fpm.connect() as connection:
        connection.send(f"{inside}/deep.php", f"d=50&gate=/{gate.path.relative_to(room)}")
        gate.until_reached()
        proc.until_blocked(worker)
        dump = cli.run_json("dump", worker, "--json")
        gate.open()
        connection.read().json()
    assert [frame["function"] for frame in dump["frames"]] == ["fread", "Deep::bottom"] + ["Deep::descend"] * 48 + ["{main}"]
    assert dump["frames"][-1]["file"] == f"{inside}/deep.php"
    answer = fpm.request(f"{inside}/quick.php", f"trace={TRACE}&us=30000",
                         **daemon.to_be_found() | {"CBOX_PROFD_SOCKET": f"/{daemon.socket.relative_to(room)}"}).json()
    assert answer["result"]["trace_id"] == TRACE and answer["result"]["counters"]["profiler.samples"] > 0


def test_all_versions_side_by_side_are_read_each_in_its_own_way(shared_master, make_daemon, scripts):
    masters = {build: shared_master(build, php_builds.ON) for build in php_builds.ALL if build.is_there}
    daemon = make_daemon(*masters.values())
    versions = {target["pid"]: target["php_version"] for target in daemon.targets()}
    for build, fpm in masters.items():
        for worker in fpm.workers():
            assert versions[worker].startswith(".".join(map(str, build.version)) + ".")
        assert_units_are_right(fpm, scripts, daemon)


def test_a_pid_file_is_followed_to_the_next_master(make_fpm, make_daemon, scripts, place):
    directory = place / "followed"
    fpm = make_fpm(directory=directory)
    daemon = make_daemon(pools=[{"name": "followed", "pid_file": str(fpm.pid_file)}])
    daemon.until_attached(fpm.workers())
    fpm.stop()
    wait.until(lambda: daemon.targets() == [], "the workers to be let go")
    fpm = make_fpm(directory=directory)
    daemon.until_attached(fpm.workers())
    assert {target["pool"] for target in daemon.targets()} == {"followed"}


def test_pools_are_found_by_the_name_fpm_gives_them(make_fpm, make_daemon):
    name = f"e2e-{os.getpid()}"
    fpm = make_fpm(pools=[Pool(f"{name}-shop", 2), Pool(f"{name}-blog", 1)])
    daemon = make_daemon(pools=[{"fpm_pool": f"{name}-sh*"}])
    daemon.until_attached(fpm.workers(f"{name}-shop"))
    assert [target["pool"] for target in daemon.targets()] == [f"{name}-shop"] * 2
    assert daemon.targets(pool=f"{name}-blog") == []


def test_processes_are_found_by_their_executable(make_daemon, place):
    binary = place / "my-php"
    shutil.copy(php_builds.DEBIAN.cli, binary)
    with load.php_cli(php_builds.DEBIAN, place, "sleep(60);", binary=binary) as process:
        daemon = make_daemon(pools=[{"name": "jobs", "executable": f"{place}/my-*"}])
        daemon.until_attached([process.pid])
        assert daemon.target(process.pid)["pool"] == "jobs"
        assert daemon.target(process.pid)["sapi"] == "cli"
