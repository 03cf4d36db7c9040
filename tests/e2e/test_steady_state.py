# SPDX-License-Identifier: MIT
"""What a sample costs, and that nothing grows (Must show 11).

E2E_SAMPLES=1000000 runs the long form of the memory test.
"""
import os
import re
import signal
import subprocess
import time

import pytest

from support import load, php_builds, proc, wait
from support.fpm import Pool

SAMPLES = int(os.environ.get("E2E_SAMPLES", "200000"))


MOST_TRIES = 25  # of one sample whose target moves
CROWD = 4  # calls more for one that queues: has it a CPU, is that still so, and who has driven it off?
ONCE = 0.02  # a function that is seen for the first time is named, which takes a call or two more


def calls_per_sample(daemon, seconds=1.0):
    """System calls that look at targets, by the program's own count, over the ticks at which it looked. A snapshot that is
    taken again because the target moved is another snapshot."""
    def numbers():
        metrics = daemon.metrics()
        accounting = metrics["accounting"]
        again = accounting["torn_retried"] + MOST_TRIES * accounting["torn_lost"]
        calls = metrics["process_vm_readv_total"] + metrics["proc_reads_total"]
        return calls, accounting["expected"] - accounting["missed"] + again

    (calls, ticks), started = numbers(), time.monotonic()
    wait.until(lambda: time.monotonic() - started > seconds, "a while of sampling", seconds + 2, poll=0.05)
    more_calls, more_ticks = numbers()
    assert more_ticks - ticks > 50
    return (more_calls - calls) / (more_ticks - ticks)


def queued_ns(pid):
    return int(proc.read(pid, "schedstat").split()[1])


def most_for(pid, most, queued_before_ns):
    """What a sample of this process may take: more where others want its CPU."""
    return most + ONCE + (CROWD if queued_ns(pid) - queued_before_ns > 250_000 else 0)


@pytest.mark.parametrize("depth", [10, 200, 500])
def test_a_sample_of_a_running_worker_takes_at_most_three_calls(depth, build, make_fpm, make_daemon, scripts):
    fpm = make_fpm(build)
    daemon = make_daemon(fpm, sampling={"rate": 200, "max_depth": 512})
    pid = daemon.targets()[0]["pid"]
    before_ns = queued_ns(pid)
    with fpm.connect() as connection:
        connection.send(scripts / "deep.php", f"d={depth}&seconds=30")
        # the first samples learn where things are
        wait.until(lambda: daemon.targets()[0]["accounting"]["taken"] > 20, "the first samples")
        assert calls_per_sample(daemon) <= most_for(pid, 3, before_ns)


def test_a_sample_of_a_blocked_worker_takes_one_call(build, make_fpm, make_daemon, scripts, gate):
    fpm = make_fpm(build)
    daemon = make_daemon(fpm, rate=200)
    with fpm.connect() as connection:
        connection.send(scripts / "deep.php", f"d=200&gate={gate.path}")
        gate.until_reached()
        # for longer than one that has queued is asked whether it has woken up and queues again
        wait.until(lambda: daemon.targets()[0]["accounting"]["unchanged"] > 250, "it to be proved unmoved")
        assert calls_per_sample(daemon) <= 1.0 + ONCE
        gate.open()
        connection.read()


def test_an_idle_worker_takes_one_call(fpm, make_daemon):
    daemon = make_daemon(fpm, rate=200)
    wait.until(lambda: all(target["accounting"]["expected"] > 5 for target in daemon.targets()), "the first ticks")
    assert calls_per_sample(daemon) <= 1.0 + ONCE


@pytest.mark.parametrize("what, most", [("running", 3), ("blocked", 1)])
def test_strace_counts_the_same_calls(what, most, make_fpm, make_daemon, scripts, gate, place):
    fpm = make_fpm()
    daemon = make_daemon(fpm, sampling={"rate": 100, "max_depth": 512})
    pid = daemon.targets()[0]["pid"]
    before_ns = queued_ns(pid)
    query = "d=500&seconds=30" if what == "running" else f"d=500&gate={gate.path}"
    with fpm.connect() as connection:
        connection.send(scripts / "deep.php", query)
        part = "taken" if what == "running" else "unchanged"
        wait.until(lambda: daemon.targets()[0]["accounting"][part] > 20, "steady state")
        sampler = next(tid for tid, name in proc.threads(daemon.pid).items() if "sampl" in name)
        counted = place / "strace.txt"
        strace = proc.start(["strace", "-c", "-o", counted, "-p", sampler], stderr=subprocess.DEVNULL)
        wait.until(lambda: proc.status_field(sampler, "TracerPid") == str(strace.pid), "strace to be attached")
        before, started = daemon.targets()[0]["accounting"], time.monotonic()
        wait.until(lambda: time.monotonic() - started > 2, "two seconds", 4, poll=0.05)
        after = daemon.targets()[0]["accounting"]
        strace.send_signal(signal.SIGINT)
        strace.wait(10)
    # "% time, seconds, usecs/call, calls, errors, syscall"; errors may be left out
    rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", counted.read_text(), re.M)
    calls = {name: int(count) for count, name in rows}
    looks = sum(after[part] - before[part] for part in ("taken", "unchanged", "torn_lost", "unreadable"))
    looking = calls.get("process_vm_readv", 0) + calls.get("pread64", 0)
    assert looks > 100
    # strace was there a little longer than the two readings of the accounting
    assert looking / looks <= most_for(pid, most, before_ns) * 1.05, f"{calls} for {looks} samples"
    assert calls.get("openat", 0) <= looks / 10, f"something is opened anew each time: {calls}"


def test_memory_with_64_busy_workers_is_small_and_flat(make_fpm, make_daemon, scripts, place, room):
    app = room / "app"
    if not (app / "var" / "app.db").exists():
        load.seed(app)
    fpm = make_fpm(php_builds.DEBIAN, [Pool(workers=64)], extensions=("mbstring", "pdo", "pdo_sqlite"))
    daemon = make_daemon(fpm, rate=1000)

    def samples():
        return daemon.metrics()["accounting"]["expected"]

    with load.Nginx(fpm, place / "nginx", app / "public" / "index.php") as nginx, nginx.under_wrk(100, 600):
        # ended units are kept up to a bound; from there on old ones go
        def units_gone():
            return sum(target["requests_seen"] for target in daemon.targets()) - daemon.metrics()["units_retained"]

        wait.until(lambda: units_gone() > 300, lambda: f"old units to go: {daemon.metrics()}", 60, poll=0.1)
        early, last = proc.rss_bytes(daemon.pid), samples() + SAMPLES
        wait.until(lambda: samples() > last, lambda: f"{last} samples: {samples()}", 60 + SAMPLES / 1000, poll=0.1)
        late = proc.rss_bytes(daemon.pid)
    assert late <= 32 << 20, f"RSS {late >> 10} KiB with 64 workers"
    assert late - early <= 2 << 20, f"RSS grew from {early >> 10} to {late >> 10} KiB over {SAMPLES} samples"
    assert abs(daemon.metrics()["rss_bytes"] - proc.rss_bytes(daemon.pid)) < 4 << 20
