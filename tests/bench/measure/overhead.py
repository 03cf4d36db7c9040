# SPDX-License-Identifier: MIT
"""What being profiled costs requests: the sample application behind nginx and php-fpm, asked by wrk over loopback.

Everyone takes a turn in each round, each time beginning with another: nobody, nobody once more (what that differs by is
what differs by itself), the daemon at three rates, and in-process Excimer, which a pool of its own has loaded and the
request turns on. A daemon is started for its turn and ended after it.

With a CPU to spare: one worker, one request at a time, so that of two CPUs one is free. Saturated: as many workers as
CPUs and more requests than those can take; nginx and wrk want a CPU as well.
"""
import os
import subprocess
from collections import defaultdict, namedtuple
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support import load, php_builds, proc
from support.daemon import Daemon
from support.fpm import FpmMaster, Pool

from .ratios import change
from .table import median, table
from .workers import EXTENSIONS

LATENCIES = Path(__file__).with_name("percentiles.lua")
PLAIN, EXCIMER = "plain", "excimer"
URI = "/catalog/tools/1"

Contender = namedtuple("Contender", "name rate query", defaults=(0, ""))
CONTENDERS = (
    Contender("off"),
    Contender("off again (control)"),
    Contender("cbox-profd, 100 Hz", 100),
    Contender("cbox-profd, 1 kHz", 1000),
    Contender("cbox-profd, 5 kHz", 5000),
    Contender("Excimer, wall 10 ms", query="?ex=real&p=0.01"),
    Contender("Excimer, wall 1 ms", query="?ex=real&p=0.001"),
    Contender("Excimer, CPU 1 ms", query="?ex=cpu&p=0.001"),
)
QUICK = [CONTENDERS[0], *(one for one in CONTENDERS[1:] if "control" in one.name or "1 kHz" in one.name or "wall 1 ms" in one.name)]
Figures = namedtuple("Figures", "rate cpu p50 p95 p99 profiler")


class Site:
    """A master with a pool for those who have nothing in PHP and one for Excimer, and an nginx before each."""

    def __init__(self, room, name, workers):
        self.room, self.name, self.workers = room, name, workers

    def __enter__(self):
        extension = php_builds.DEBIAN.modules / "excimer.so"
        pools = [Pool(PLAIN, self.workers),
                 Pool(EXCIMER, self.workers, more=(f"php_admin_value[extension] = {extension}",))]
        script = self.room / "app" / "public" / "index.php"
        with ExitStack() as stack:
            self.fpm = stack.enter_context(FpmMaster(
                php_builds.DEBIAN, self.room / self.name, pools, php_builds.ON, extensions=EXTENSIONS))
            self.ports = {}
            for port, pool in enumerate((PLAIN, EXCIMER), 18972):
                directory = self.room / f"{self.name}-{pool}"
                self.ports[pool] = stack.enter_context(load.Nginx(self.fpm, directory, script, pool, port)).port
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    @contextmanager
    def sampled(self, rate):
        """Yields the daemon's pid; None where nobody samples."""
        if not rate:
            yield None
            return
        sampling = {"rate": rate, "cpu_budget": "none"}
        with Daemon(self.room / f"{self.name}d", sampling=sampling, pools=[{"fpm_pool": PLAIN}]) as daemon:
            yield daemon.until_attached(self.fpm.workers(PLAIN)).pid

    def turn(self, contender, connections, seconds):
        pool = EXCIMER if contender.query else PLAIN
        workers = self.fpm.workers(pool)
        with self.sampled(contender.rate) as profiler:
            watched = [*workers, *([profiler] if profiler else [])]
            before = [proc.cpu_ns(pid) for pid in watched]
            requests, micros, *latencies = wrk(self.ports[pool], contender.query, connections, seconds)
            used = [proc.cpu_ns(pid) - was for pid, was in zip(watched, before)]
        return Figures(requests * 1e6 / micros, sum(used[:len(workers)]) / 1e3 / requests, *latencies,
                       sum(used[len(workers):]) / 1e3 / micros)


def wrk(port, query, connections, seconds):
    """(requests, microseconds, latencies at 50, 95 and 99 % in microseconds)"""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(LATENCIES), f"http://127.0.0.1:{port}{URI}{query}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("figures "))
    requests, micros, errors, *latencies = map(float, line.split()[1:])
    if errors or not requests:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}")
    return requests, micros, *latencies


def rounds(site, contenders, connections, count, seconds):
    """{contender: [Figures, …]}, one of each round."""
    for pool in (PLAIN, EXCIMER):  # what is slow the first time: compiling, a database's pages
        wrk(site.ports[pool], "", connections, 1)
    figures = defaultdict(list)
    for turn in range(count):
        for place in range(len(contenders)):
            contender = contenders[(turn + place) % len(contenders)]
            figures[contender].append(site.turn(contender, connections, seconds))
    return figures


def rows(figures):
    of = {contender: Figures(*zip(*turns)) for contender, turns in figures.items()}
    off = of.pop(CONTENDERS[0])
    milliseconds = (f"{median(column) / 1000:.2f} ms" for column in off[1:5])
    yield ["off", f"{median(off.rate):.1f} a second", *milliseconds, ""]
    for contender, found in of.items():
        yield [contender.name, *(change(column, base) for column, base in zip(found[:5], off)),
               f"{100 * median(found.profiler):.1f} %" if contender.rate else ""]


def compare(room, what, workers, connections, quick):
    name = what.replace(" ", "-")
    count, contenders = (2, QUICK) if quick else (16, CONTENDERS)
    with Site(room, name, workers) as site:
        figures = rounds(site, contenders, connections, count, 1)
    return table([f"{what}: workers {workers}, requests at once {connections}", "requests", "CPU a request", "p50", "p95",
                  "p99", "the daemon's CPU"], rows(figures))


def sections(room, quick):
    cpus = os.cpu_count()
    yield compare(room, "a CPU to spare", 1, 1, quick)
    yield compare(room, "saturated", cpus, 2 * cpus, quick)
