# SPDX-License-Identifier: MIT
"""The machine: what it is, and how busy it is with other things while figures are taken."""
import os
import platform
import time
from pathlib import Path


def describe():
    cpu = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":", 1)[1].strip() for line in cpu.splitlines() if line.startswith("model name")), "?")
    virtual = "virtual machine, " if "hypervisor" in cpu else ""
    gibibytes = int(Path("/proc/meminfo").read_text().split()[1]) >> 20
    return f"{virtual}{os.cpu_count()} CPUs ({model}), {gibibytes} GiB, Linux {platform.release()}"


def _ticks():
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    idle = fields[3] + fields[4]
    return sum(fields) - idle, sum(fields), fields[7]


def busy_share(seconds=1.0):
    """The share of all CPUs that is in use right now, with nothing of ours running."""
    busy, total, _ = _ticks()
    time.sleep(seconds)
    busier, later, _ = _ticks()
    return (busier - busy) / max(1, later - total)


class StolenTime:
    """What the hypervisor gave to others, from construction to share()."""

    def __init__(self):
        _, self._total, self._stolen = _ticks()

    def share(self):
        _, total, stolen = _ticks()
        return (stolen - self._stolen) / max(1, total - self._total)
