# SPDX-License-Identifier: MIT
"""Do the shares come out that a program has? Functions that take 10, 30 and 60 % of the CPU, or of the time, measured by the
program itself, against the real engine: `attach` for php-cli, a daemon and the result of finish() for php-fpm."""
import json
import math
import os
import shutil
import tempfile
from contextlib import ExitStack

from measure.table import table
from support import cli, proc, wait
from support.daemon import Daemon

from .programs import CLI, FPM
from .statistics import Z
from .targets import BUILD, MODES, Fpm

FUNCTIONS = ("ten", "thirty", "sixty")
# What of a kind is looked at: sleepers use next to no CPU.
KINDS = {"cpu": ("wall", "cpu"), "loops": ("wall", "cpu"), "wall": ("wall",), "mixed": ("wall", "cpu")}
RATE_HZ = 2000
PROFILE_COLUMNS = ("parent", "frame", "line", "samples", "wall_ns", "cpu_ns", "queue_ns")
STACK_COLUMNS = ("parent", "frame", "samples", "wall_ns", "cpu_ns")


class Measured:
    """The time in and below each of FUNCTIONS: by clock, truth and sampled."""

    def __init__(self, truth, frames, nodes):
        self.samples = 0
        self.truth = {clock: _shares({name: truth[name][clock] for name in FUNCTIONS}) for clock in ("wall", "cpu")}
        inside = {clock: dict.fromkeys(FUNCTIONS, 0) for clock in ("wall", "cpu")}
        owners = {0: None}
        for number, node in nodes:
            name = frames[node["frame"]]["function"]
            owner = owners[number] = owners.get(node["parent"]) or (name if name in FUNCTIONS else None)
            if owner:
                self.samples += node["samples"]
                for clock in inside:
                    inside[clock][owner] += node[f"{clock}_ns"]
        self.found = {clock: _shares(times) for clock, times in inside.items()}

    def error(self, clock):
        """(function, points too much): the worst."""
        errors = {name: 100 * (self.found[clock][name] - self.truth[clock][name]) for name in FUNCTIONS}
        return max(errors.items(), key=lambda item: abs(item[1]))

    def interval(self, clock, name):
        """How far off chance puts a share among so many samples, in points; 95 %."""
        share = self.truth[clock][name]
        return 100 * Z * math.sqrt(share * (1 - share) / max(1, self.samples))


def _last_line(text):
    return json.loads(text.splitlines()[-1])


def _shares(times):
    total = sum(times.values())
    return {name: time / total if total else 0.0 for name, time in times.items()}


def by_attach(room, kind, mode, samples):
    """php-cli under `attach --format json`, which begins before what is measured does and ends with the program."""
    seconds = samples / RATE_HZ
    command = [BUILD.cli, *BUILD.ini(MODES[mode]), room / "php" / "oracle" / "shares.php", kind, seconds]
    with tempfile.TemporaryFile("w+") as out:
        process = proc.start(list(map(str, command)), stdout=out)
        try:
            wait.until(lambda: os.fstat(out.fileno()).st_size > 0, "the program to begin")
            attached = cli.run("attach", process.pid, "--rate", RATE_HZ, "--format", "json", seconds=seconds + 30)
            process.wait(30)
        finally:
            proc.end(process)
        out.seek(0)
        truth = _last_line(out.read())["truth"]
    if attached.returncode != cli.EXIT_OK:
        raise RuntimeError(attached.stderr)
    told = json.loads(attached.stdout)
    nodes = [(number, dict(zip(PROFILE_COLUMNS, row))) for number, row in enumerate(told["nodes"])]
    return Measured(truth, told["frames"], nodes[1:])


def by_unit(fpm, daemon, room, kind, samples):
    """php-fpm: a unit that the program ends itself."""
    with fpm.master.connect(seconds=120) as connection:
        query = f"kind={kind}&seconds={samples / RATE_HZ}&client={room / 'client'}"
        answer = connection.request(room / "php" / "oracle" / "shares.php", query, **daemon.to_be_found())
    told = _last_line(answer.body.decode())
    profile = told["result"]["profile"]
    nodes = [(number, dict(zip(STACK_COLUMNS, row))) for number, row in enumerate(profile["stacks"], 1)]
    return Measured(told["truth"], profile["frames"], nodes)


def copy_client(room):
    shutil.copytree(cli.ROOT / "client" / "php", room / "client", ignore=shutil.ignore_patterns("vendor"), dirs_exist_ok=True)
    for path in (room / "client").rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    os.chmod(room / "client", 0o755)


def observe(room, samples, modes=tuple(MODES), kinds=tuple(KINDS), sapis=(CLI, FPM), tell=lambda text: None):
    """{(kind, sapi, mode): Measured}"""
    found = {}
    copy_client(room)
    for mode in modes:
        with ExitStack() as stack:
            if FPM in sapis:
                fpm = stack.enter_context(Fpm(room, mode))
                daemon = stack.enter_context(Daemon(
                    room / f"d-{mode}", sampling={"rate": RATE_HZ, "max_rate": 10000, "cpu_budget": "none"},
                    pools=[{"name": "oracle", "master_pid": fpm.master.pid}]))
                daemon.until_attached(fpm.master.workers())
            for kind in kinds:
                for sapi in sapis:
                    tell(f"shares: {kind}, {sapi}, {mode}")
                    found[kind, sapi, mode] = (by_attach(room, kind, mode, samples) if sapi == CLI
                                               else by_unit(fpm, daemon, room, kind, samples))
    return found


def _cell(measured, clock):
    name, error = measured.error(clock)
    return f"{name} {error:+.2f} ±{measured.interval(clock, name):.2f}"


def sections(room, samples, modes, tell):
    found = observe(room, samples, modes, tell=tell)
    rows = []
    for kind, sapi in dict.fromkeys((kind, sapi) for kind, sapi, _ in found):
        for clock in KINDS[kind]:
            truth = found[kind, sapi, modes[0]].truth[clock]
            rows.append([f"{kind}, {sapi}: {clock} time", " / ".join(f"{100 * truth[name]:.1f}" for name in FUNCTIONS),
                         *(_cell(found[kind, sapi, mode], clock) for mode in modes)])
    fewest = min(measured.samples for measured in found.values())
    yield table([f"known shares, at least {fewest} samples", f"truth, % ({modes[0]})",
                 *(f"{mode}: worst, points" for mode in modes)], rows)
