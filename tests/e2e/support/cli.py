# SPDX-License-Identifier: MIT
"""Runs the program's verbs."""
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_NO_PERMISSION, EXIT_NO_TARGET, EXIT_UNSUPPORTED, EXIT_NO_DAEMON = range(7)


def binary():
    """$BUILD as make has it: relative to the project's root."""
    return ROOT / os.environ.get("BUILD", "build") / "cbox-profd"


def command(*arguments):
    return [str(binary()), *map(str, arguments)]


def run(*arguments, seconds=30.0, prefix=(), environment=None, **popen):
    """The finished process; its output as text."""
    return subprocess.run([*map(str, prefix), *command(*arguments)], capture_output=True, text=True, timeout=seconds,
                          stdin=subprocess.DEVNULL, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(environment or {})},
                          check=False, **popen)


def ok(*arguments, **more):
    done = run(*arguments, **more)
    assert done.returncode == EXIT_OK, f"{' '.join(map(str, arguments))}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


def run_json(*arguments, **more):
    """A verb's --json: exactly one line."""
    text = ok(*arguments, **more).stdout
    assert text.count("\n") == 1 and text.endswith("\n"), f"--json is one line: {text[:500]!r}"
    return json.loads(text)
