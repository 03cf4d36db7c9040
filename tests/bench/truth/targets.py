# SPDX-License-Identifier: MIT
"""Starts a program as php-cli or on a worker of php-fpm, and keeps it on one CPU."""
import itertools
import os
import subprocess
import threading
from contextlib import contextmanager

from measure import driver
from support import php_builds, proc, wait
from support.fpm import FpmMaster, Pool

MODES = {"off": php_builds.OFF, "opcache": php_builds.ON, "jit": php_builds.JIT_TRACING}
EXTENSIONS = ("mbstring", "pdo", "pdo_sqlite")
BUILD = php_builds.DEBIAN
# More CPU than starting takes (some 30 ms), and than the JIT needs to compile what there is.
PAST_START_NS = 150_000_000


def script_of(program, room):
    """Its file where a worker may read it. A generated one is generated."""
    if not program.arguments:
        return room / "php" / program.script
    path = room / "php" / f"{program.name.replace(' ', '_').replace('/', '_')}.php"
    if not path.exists():
        command = [BUILD.cli, "-n", room / "php" / program.script, *program.arguments]
        path.write_bytes(subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=20).stdout)
        os.chmod(path, 0o644)
    return path


def _arguments(query):
    return [part.partition("=")[2] for part in query.split("&") if part]


@contextmanager
def on_cli(program, room, mode, cpu):
    command = [BUILD.cli, *BUILD.ini(MODES[mode]), script_of(program, room), *_arguments(program.query)]
    process = proc.start(list(map(str, command)), stdout=subprocess.DEVNULL)
    try:
        os.sched_setaffinity(process.pid, {cpu})
        wait.until(lambda: proc.cpu_ns(process.pid) > PAST_START_NS, f"{program.name} to get going")
        yield process.pid
    finally:
        proc.end(process)


@contextmanager
def by_turns(fpm, scripts, query="", **parameters):
    """Requests for these scripts, one after the other, on one worker for ever."""
    ended = threading.Event()

    def drive():
        with fpm.connect() as connection:
            for script in itertools.cycle(scripts):
                if ended.is_set():
                    return
                connection.request(script, query, **parameters)

    thread = threading.Thread(target=drive, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(30)


class Fpm:
    """A master with one worker, which is replaced after each program that never ends."""

    def __init__(self, room, mode):
        self.room = room
        self._master = FpmMaster(BUILD, room / f"fpm-{mode}", [Pool(workers=1)], MODES[mode],
                                 ini={"max_execution_time": 0}, extensions=EXTENSIONS)

    def __enter__(self):
        self.master = self._master.start()
        return self

    def __exit__(self, *_):
        self._master.stop()

    @contextmanager
    def worker(self, cpu):
        """A worker of our own on this CPU."""
        pid = self.master.workers()[0]
        os.sched_setaffinity(pid, {cpu})
        began = proc.cpu_ns(pid)
        yield pid, lambda: wait.until(lambda: proc.cpu_ns(pid) > began + PAST_START_NS, "the worker to get going")

    @contextmanager
    def requests(self, scripts, cpu, query="", **parameters):
        with self.worker(cpu) as (pid, until_it_runs), by_turns(self.master, scripts, query, **parameters):
            until_it_runs()
            yield pid

    @contextmanager
    def running(self, program, cpu):
        if program.by_turns:
            with self.requests([self.room / "php" / script for script in program.by_turns], cpu) as pid:
                yield pid
            return
        with self.worker(cpu) as (pid, until_it_runs), self.master.connect() as connection:
            connection.send(script_of(program, self.room), program.query)
            until_it_runs()
            yield pid
        self.master.kill_worker(pid)
