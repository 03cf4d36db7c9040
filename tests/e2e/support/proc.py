# SPDX-License-Identifier: MIT
"""What /proc says of a process: the suite's own, independent eye on the workers and on the daemon."""
import os
import signal
import subprocess
import time

from . import wait

# x86-64 system calls a PHP process waits in.
WAITING_CALLS = {
    0: "read", 7: "poll", 23: "select", 35: "nanosleep", 43: "accept", 45: "recvfrom", 230: "clock_nanosleep",
    232: "epoll_wait", 271: "ppoll", 281: "epoll_pwait", 288: "accept4",
}


def read(pid, name):
    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
        return file.read()


def is_alive(pid):
    """Runs or can run: a zombie is not alive."""
    try:
        return read(pid, "stat").rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_stopped(pid):
    """By a signal, and all of its threads: those that run somewhere go on for a moment after kill() has returned."""
    return all(read(pid, f"task/{tid}/stat").rsplit(")", 1)[1].split()[0] == "T" for tid in threads(pid))


def children(pid):
    try:
        return [int(child) for child in read(pid, f"task/{pid}/children").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def status_field(pid, field):
    for line in read(pid, "status").splitlines():
        if line.startswith(field + ":"):
            return line.split(":", 1)[1].strip()
    raise KeyError(field)


def rss_bytes(pid):
    return int(status_field(pid, "VmRSS").split()[0]) * 1024


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    """{tid: name}"""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            found[int(tid)] = read(pid, f"task/{tid}/comm").strip()
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def cpu_ns(pid):
    """CPU time of a process, also of its threads that have ended; exact while all of them are off the CPU."""
    process_clock = ~pid << 3 | 2  # as clock_getcpuclockid() makes it
    try:
        return time.clock_gettime_ns(process_clock)
    except OSError:
        return 0  # it has ended


def waits_in_a_call(pid):
    """The system call it is blocked in; None when it runs, or is gone."""
    try:
        number = read(pid, "syscall").split()[0]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return WAITING_CALLS.get(int(number)) if number.isdigit() else None


def until_blocked(pid, seconds=10.0):
    return wait.until(lambda: waits_in_a_call(pid), f"process {pid} to be blocked in a system call", seconds)


def start(command, **popen):
    """subprocess.Popen of something of ours: nothing to read for it, and it does not outlive us."""
    popen = {"stdin": subprocess.DEVNULL, "preexec_fn": die_with_parent} | popen
    return subprocess.Popen([str(part) for part in command], **popen)


def end(process, first=signal.SIGTERM, seconds=5.0):
    """Ends a subprocess.Popen of ours and returns its exit status: asked first, killed when it does not go."""
    if process.poll() is None:
        process.send_signal(first)
        try:
            process.wait(seconds)
        except Exception:  # noqa: BLE001 - whatever it was, it must go
            process.kill()
            process.wait(5)
    return process.returncode


def die_with_parent():
    """For preexec_fn: a test run that is killed leaves nobody behind (PR_SET_PDEATHSIG)."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
