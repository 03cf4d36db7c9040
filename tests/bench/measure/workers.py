# SPDX-License-Identifier: MIT
"""What N workers cost the daemon: the real engine, php-fpm with opcache."""
import time
from contextlib import ExitStack, contextmanager

from support import load, php_builds, proc, wait
from support.daemon import Daemon
from support.fpm import FpmMaster, Pool

from .table import table

DEPTH = 50
RATES = (100, 1000)
EXTENSIONS = ("mbstring", "pdo", "pdo_sqlite")
SHOP = {"SCRIPT_NAME": "/index.php", "REQUEST_URI": "/catalog/tools/1"}


@contextmanager
def watched(room, name, workers):
    """A master with its workers, and a daemon that samples them."""
    pools = [Pool(workers=workers)]
    with FpmMaster(php_builds.DEBIAN, room / name, pools, php_builds.ON, extensions=EXTENSIONS) as fpm:
        # The cost of what is asked for, not of what the daemon would limit itself to.
        sampling, chosen = {"cpu_budget": "none"}, {"name": "bench", "master_pid": fpm.pid}
        with Daemon(room / f"{name}d", sampling=sampling, pools=[chosen]) as daemon:
            yield fpm, daemon.until_attached(fpm.workers())


@contextmanager
def requests(fpm, script, query, count):
    """That many requests under way, one a worker."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(fpm.connect()).send(script, query)
        yield


@contextmanager
def busy(room, fpm, daemon, count, doing):
    """So many workers blocked or running with DEPTH frames, and known to the daemon as such."""
    script, query, seen_as = {
        "blocked": ("sleep.php", f"t=600&d={DEPTH}", "unchanged"),
        "running": ("deep.php", f"t=600&d={DEPTH}&m=method", "taken"),
    }[doing]

    def settled():
        return sum(target["unit"]["open"] and target["accounting"][seen_as] > 3 for target in daemon.targets()) >= count

    with requests(fpm, room / "php" / script, query, count):
        wait.until(settled, f"{count} workers to be {doing}", 30, poll=0.05)
        yield


def state(daemon):
    sampler = next(tid for tid, name in proc.threads(daemon.pid).items() if name == "sampler")
    metrics = daemon.metrics()
    return {
        "cpu": int(proc.read(daemon.pid, f"task/{sampler}/schedstat").split()[0]),
        "time": time.monotonic_ns(),
        "calls": metrics["process_vm_readv_total"] + metrics["proc_reads_total"],
        **{key: metrics["accounting"][key] for key in ("expected", "missed", "late")},
    }


def cost(daemon, seconds):
    """Of a while: calls a target and tick, the sampler's share of a CPU, its µs a target and tick, share of ticks that
    were missed or came more than half a period late."""
    before = state(daemon)
    time.sleep(seconds)
    after = state(daemon)
    over = {key: after[key] - before[key] for key in before}
    looks = max(1, over["expected"] - over["missed"])
    return [f"{over['calls'] / looks:.3f}", f"{100 * over['cpu'] / over['time']:.2f} %", over["cpu"] / looks / 1000,
            f"{100 * (over['missed'] + over['late']) / max(1, over['expected']):.2f} %"]


def at_each_rate(daemon, what, seconds):
    for rate in RATES:
        daemon.ask("rate", rate_hz=rate)
        time.sleep(0.2)  # of the new rate, before it counts
        yield [f"{what}, {rate} Hz", *cost(daemon, seconds)]


def rows(room, counts, seconds):
    for count in counts:
        with watched(room, f"blocked{count}", count) as (fpm, daemon):
            yield from at_each_rate(daemon, f"{count} idle", seconds)
            with busy(room, fpm, daemon, count, "blocked"):
                yield from at_each_rate(daemon, f"{count} blocked", seconds)
        with watched(room, f"running{count}", count) as (fpm, daemon), busy(room, fpm, daemon, count, "running"):
            yield from at_each_rate(daemon, f"{count} running", seconds)


def memory(room, workers, samples):
    """RSS of a daemon whose workers serve the sample application."""
    with watched(room, "memory", workers) as (fpm, daemon):
        daemon.ask("rate", rate_hz=1000)
        rss = [proc.rss_bytes(daemon.pid)]

        def taken():
            accounting = daemon.metrics()["accounting"]
            return accounting["expected"] - accounting["missed"] - accounting["idle"]

        with load.requests(fpm, room / "app" / "public" / "index.php", connections=workers, **SHOP):
            for wanted in (samples // 4, samples):
                wait.until(lambda: taken() >= wanted, lambda: f"{wanted} samples: {taken()}", 120, poll=0.1)
                rss.append(proc.rss_bytes(daemon.pid))
    return table(["the daemon's resident memory, MiB", "no request yet", f"{samples // 4000}k samples",
                  f"{samples // 1000}k samples"],
                 [[f"{workers} workers, the sample application", *(f"{size / (1 << 20):.1f}" for size in rss)]])


def sections(room, quick):
    counts, seconds = ((1, 8), 0.6) if quick else ((1, 8, 64, 256), 1.5)
    yield table(["workers (php-fpm, 50 frames)", "calls a target and tick", "sampler's share of a CPU",
                 "µs a target and tick", "missed or late"], rows(room, counts, seconds))
    yield memory(room, 16 if quick else 64, 20_000 if quick else 200_000)
