# SPDX-License-Identifier: MIT
"""sampling.placement: from which CPU a process is read, whose stack changes faster than it can be read from another."""
from support import balance, wait


def looks(daemon, pid, count=300):
    """What became of the next so many looks."""
    before = daemon.target(pid)["accounting"]

    def gained():
        now = balance.of(daemon.target(pid)["accounting"])
        return {key: now[key] - before[key] for key in ("taken", "torn_retried", "torn_lost")}

    wait.until(lambda: gained()["taken"] + gained()["torn_lost"] >= count, f"{count} looks", 30)
    return gained()


def under(placement, daemon, pid):
    """What becomes of looks after a reload with this placement."""
    daemon.configure(sampling={"rate": 1000, "placement": placement, "cpu_budget": "none"})
    daemon.ask("reload")
    looks(daemon, pid, 5)  # those under way
    return looks(daemon, pid)


def test_under_auto_and_always_next_to_none_is_lost(churning, make_daemon):
    pid = churning.pid
    daemon = make_daemon(pools=[{"executable": "/none"}])
    daemon.ask("attach", pid=pid)
    daemon.until_attached([pid])
    # Where the kernel lets the sampler share the process's CPU nothing tears under "never" either.
    under("never", daemon, pid)
    # On a busy machine it can happen that the process is moved to another CPU in the middle of a read.
    assert under("auto", daemon, pid)["torn_lost"] <= 3
    always = under("always", daemon, pid)
    assert always["torn_lost"] <= 3 and always["torn_retried"] <= 10
