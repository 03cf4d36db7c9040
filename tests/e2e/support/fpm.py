# SPDX-License-Identifier: MIT
"""A php-fpm master of the suite's own, in the foreground, with its pools in a temporary directory.

It is ready when FPM says so and every pool has its workers; it is ended by the process ids this suite started, whatever the
test did in between.
"""
import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import fastcgi, proc, wait
from .php_builds import OFF

READY = "ready to handle connections"
WORKER_TITLE = re.compile(r"^php-fpm: pool (.+?)\s*$")


@dataclass
class Pool:
    name: str = "www"
    workers: int = 1
    user: str = "www-data"
    max_requests: int = 0
    manager: str = "static"
    chroot: Path = None
    more: tuple = ()  # further lines of the pool's section

    def section(self, directory):
        lines = [
            f"[{self.name}]",
            f"user = {self.user}",
            f"group = {self.user}",
            f"listen = {self.socket(directory)}",
            "listen.mode = 0666",
            "listen.backlog = 4096",
            f"pm = {self.manager}",
            f"pm.max_children = {self.workers}",
            f"pm.max_requests = {self.max_requests}",
            "catch_workers_output = yes",
            "clear_env = yes",
        ]
        if self.manager == "ondemand":
            lines.append("pm.process_idle_timeout = 60")
        if self.chroot:
            lines += [f"chroot = {self.chroot}", "chdir = /"]
        return "\n".join([*lines, *self.more]) + "\n"

    def socket(self, directory):
        return Path(directory) / f"{self.name}.sock"


class FpmMaster:
    def __init__(self, build, directory, pools=None, mode=OFF, ini=None, extensions=(), binary=None, prefix=()):
        """`binary` stands in for the build's own php-fpm; `prefix` is a command to run it under (unshare …)."""
        self.build, self.mode, self.directory = build, mode, Path(directory)
        self.pools = {pool.name: pool for pool in (pools or [Pool()])}
        self.binary, self.prefix = Path(binary or build.fpm), list(prefix)
        self.ini, self.extensions = dict(ini or {}), tuple(extensions)
        self.process = self.pid = None

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self, seconds=20.0):
        self.directory.mkdir(parents=True, exist_ok=True)
        os.chmod(self.directory, 0o755)
        self.log = self.directory / "fpm.log"
        self.log.write_text("")
        configuration = self.directory / "fpm.conf"
        configuration.write_text(
            f"[global]\nerror_log = {self.log}\npid = {self.pid_file}\ndaemonize = no\nlog_limit = 8192\n"
            + "".join(pool.section(self.directory) for pool in self.pools.values()))
        arguments = self.build.ini(self.mode, self.extensions, **self.ini)
        self._output = open(self.directory / "fpm.out", "ab")
        self.process = proc.start(
            [*self.prefix, self.binary, *arguments, "-R", "-F", "-y", configuration, "-p", self.directory],
            env=self.build.environment(), cwd=self.directory, stdout=self._output, stderr=subprocess.STDOUT)
        self._known = set()
        wait.until(self._is_ready, lambda: f"{self.build.name} {self.mode} to be ready: {self.tell()}", seconds)
        return self

    def _is_ready(self):
        assert self.process.poll() is None, f"php-fpm ended with status {self.process.returncode}: {self.tell()}"
        if self._times_ready() == 0:
            return False
        self.pid = self._master_pid()
        static = [pool for pool in self.pools.values() if pool.manager == "static"]
        return self.pid is not None and all(len(self.workers(pool.name)) >= pool.workers for pool in static)

    def _times_ready(self):
        return self.log.read_text(errors="replace").count(READY)

    def _master_pid(self):
        """The pid in this namespace: what `prefix` started may be a parent of the master's."""
        candidates = [self.process.pid]
        while candidates:
            pid = candidates.pop()
            try:
                if proc.read(pid, "cmdline").startswith("php-fpm: master process"):
                    self._known.add(pid)
                    return pid
            except (FileNotFoundError, ProcessLookupError):
                continue
            candidates += proc.children(pid)
        return None

    def stop(self):
        if self.process is None:
            return
        ours = self._known | set(self.all_workers()) | {self.process.pid}
        if self.pid and self.pid != self.process.pid and proc.is_alive(self.pid):
            os.kill(self.pid, signal.SIGTERM)
        proc.end(self.process)
        for pid in ours:
            if self._is_ours(pid):
                os.kill(pid, signal.SIGKILL)
        self._output.close()
        self.process = None

    def _is_ours(self, pid):
        """A worker that outlived its master; not whoever has its number by now."""
        try:
            return proc.is_alive(pid) and proc.read(pid, "cmdline").startswith("php-fpm:")
        except (FileNotFoundError, ProcessLookupError):
            return False

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()

    def tell(self):
        logs = [log for log in (self.log, self.directory / "fpm.out") if log.exists()]
        return "".join(log.read_text(errors="replace")[-3000:] for log in logs)

    # -- what it has --------------------------------------------------------------------------------------------------

    @property
    def pid_file(self):
        return self.directory / "fpm.pid"

    def socket(self, pool=None):
        return (self.pools[pool] if pool else next(iter(self.pools.values()))).socket(self.directory)

    def all_workers(self):
        found = proc.children(self.pid) if self.pid else []
        if self.process is not None:
            self._known.update(found)
        return found

    def workers(self, pool=None):
        """Pids of a pool's workers, in the order in which they were started."""
        wanted = pool or next(iter(self.pools))
        found = []
        for pid in self.all_workers():
            try:
                title = WORKER_TITLE.match(proc.read(pid, "cmdline").replace("\0", " "))
            except (FileNotFoundError, ProcessLookupError):
                continue
            if title and title.group(1) == wanted:
                found.append(pid)
        return found

    def worker_at_a_gate(self):
        """The one worker whose request stands before a gate."""
        def find():
            return next((pid for pid in self.workers() if proc.waits_in_a_call(pid) == "poll"), None)

        return wait.until(find, "a worker blocked before the gate")

    # -- what it does -------------------------------------------------------------------------------------------------

    def request(self, script, query="", pool=None, **more):
        return fastcgi.request(self.socket(pool), script, query, **more)

    def connect(self, pool=None, seconds=30.0):
        return fastcgi.Connection(self.socket(pool), seconds)

    def kill_worker(self, pid):
        """Kills one of our workers, and returns when all its pool's are there again, a new one in its place."""
        os.kill(pid, signal.SIGKILL)

        def replaced():
            workers = self.workers()
            return len(workers) >= next(iter(self.pools.values())).workers and pid not in workers

        wait.until(replaced, f"the replacement of worker {pid}")

    def reload(self):
        """FPM's graceful reload: the master executes itself again and keeps its pid."""
        before, said = set(self.all_workers()), self._times_ready()
        os.kill(self.pid, signal.SIGUSR2)

        def reloaded():
            return self._times_ready() > said and not before & set(self.all_workers()) and self._is_ready()

        wait.until(reloaded, lambda: "the reload: " + self.tell(), 20)
