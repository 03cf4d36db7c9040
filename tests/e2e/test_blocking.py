# SPDX-License-Identifier: MIT
"""`attach --blocking`: reference measurements of a process that stands still meanwhile. Opt-in, said, and invisible to it."""
import json
import subprocess

import pytest

from support import balance, cli, load, php_builds, proc, wait
from test_attach import SHARES, SLEEPER, Profile

NOTICE = "is being stopped for each sample (--blocking)"


def attach(pid, *more, rate=500, seconds="1s"):
    """The profile, and what was said on stderr."""
    done = cli.ok("attach", pid, "--duration", seconds, "--rate", rate, "--format", "json", *more)
    return Profile(json.loads(done.stdout)), done.stderr


def is_legal(path):
    rest = path[1:]
    return path[:1] == ["{main}"] and any(
        rest == [f"{chain}_{number}" for number in range(1, len(rest) + 1)] for chain in "ab")


def test_no_snapshot_of_a_stack_that_changes_all_the_time_is_torn(churning):
    profile, said = attach(churning.pid, "--blocking", rate=1000)
    accounting = profile.told["accounting"]
    assert (accounting["torn_lost"], accounting["unreadable"]) == (0, 0)
    assert accounting["torn_retried"] <= 1, "the first sample has to find out how far the stack goes"
    assert accounting["taken"] > 50
    sampled = [profile.path(index) for index, node in enumerate(profile.nodes) if node["samples"] > 0]
    assert len(sampled) > 20
    assert [path for path in sampled if not is_legal(path)] == []
    assert f"process {churning.pid} {NOTICE}" in said and "EINTR" in said


def test_the_result_has_the_same_shape_and_says_the_same(place):
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        stopped, _ = attach(process.pid, "--blocking", seconds="1500ms")
        running, said = attach(process.pid, seconds="1500ms")
    assert NOTICE not in said
    assert stopped.told.keys() == running.told.keys()
    assert stopped.told["accounting"].keys() == running.told["accounting"].keys()
    # wide: on a busy machine the process gets few turns on a CPU, and these are what is drawn
    for profile in (stopped, running):
        assert profile.share("often", "cpu_ns") == pytest.approx(0.75, abs=0.2)
        assert profile.share("seldom", "cpu_ns") == pytest.approx(0.25, abs=0.2)


def test_a_process_that_waits_is_not_stopped(place):
    """It stands still by itself; a stop would make its system calls fail."""
    with load.php_cli(php_builds.DEBIAN, place, SLEEPER) as process:
        profile, _ = attach(process.pid, "--blocking", rate=100)
        # usleep() that is interrupted returns early: some 20 switch-ins a second if it never is
        started = switches(process.pid)
        attach(process.pid, "--blocking", rate=1000)
        assert switches(process.pid) - started < 30
    assert profile.share("usleep", "wall_ns") > 0.9
    assert profile.told["accounting"]["unchanged"] > profile.told["accounting"]["taken"]


def switches(pid):
    return int(proc.read(pid, "schedstat").split()[2])


def test_requests_are_served_meanwhile(fpm, scripts):
    with load.requests(fpm, scripts / "deep.php", "d=10&seconds=0.01", connections=4) as answers:
        profile, said = attach(fpm.pid, "--blocking", rate=1000)
    assert set(answers) == {200} and len(answers) > 10
    assert profile.share("Deep::bottom", "samples") > 0.7
    assert f"each worker of process {fpm.pid} {NOTICE}" in said


def test_between_samples_nobody_traces_it(churning):
    """strace can come and go, and what it keeps us from is counted."""
    attaching = proc.start(cli.command("attach", churning.pid, "--blocking", "--duration", "2s", "--format", "json"),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert NOTICE in attaching.stderr.readline()
    strace = None

    def traced():
        nonlocal strace
        if strace is None or strace.poll() is not None:  # it came in the very moment of a sample: again
            strace = proc.start(["strace", "-o", "/dev/null", "-p", churning.pid], stderr=subprocess.DEVNULL)
        return proc.status_field(churning.pid, "TracerPid") == str(strace.pid)

    wait.until(traced, "strace to be attached")
    proc.end(strace)
    told = attaching.communicate(timeout=20)[0]
    assert balance.of(json.loads(told)["accounting"])["taken"] > 20


def test_what_somebody_else_traces_is_refused_by_name(churning):
    strace = proc.start(["strace", "-o", "/dev/null", "-p", churning.pid], stderr=subprocess.DEVNULL)
    try:
        wait.until(lambda: proc.status_field(churning.pid, "TracerPid") == str(strace.pid), "strace to be attached")
        done = cli.run("attach", churning.pid, "--blocking", "--duration", "1s")
        assert done.returncode == cli.EXIT_FAILED and done.stdout == ""
        assert done.stderr == (f"cbox-profd: process {churning.pid}: it can't be stopped for samples, because strace (process "
                               f"{strace.pid}) traces it; end that, or sample it without stopping it\n")
    finally:
        proc.end(strace)
