# SPDX-License-Identifier: MIT
"""expected = taken + unchanged + torn_lost + unreadable + idle + missed: in every output, on a busy machine too (Must show 5)."""
import time

import pytest

from support import balance, cli, load, php_builds, wait
from test_unit import unit


def assert_all_outputs_balance(daemon, fpm, scripts):
    """Each verb that carries an accounting; returns the sum over the targets."""
    result = unit(fpm, scripts, daemon, hot=80, wait=40)["result"]
    accountings = [
        result["accounting"],
        daemon.ask("profile")["accounting"],
        daemon.ask("top")["accounting"],
        daemon.ask("status")["accounting"],
        daemon.metrics()["accounting"],
        *(found["accounting"] for found in daemon.ask("units")["units"]),
        *(target["accounting"] for target in daemon.targets()),
        cli.run_json("targets", "--json", "--socket", daemon.socket)["targets"][0]["accounting"],
        cli.run_json("top", "--once", "--json", "--socket", daemon.socket)["accounting"],
    ]
    for accounting in accountings:
        balance.of(accounting)
    whole = daemon.metrics()["accounting"]
    assert whole["expected"] > 0 and whole["taken"] > 0 and whole["unchanged"] > 0 and whole["idle"] > 0
    return whole


@pytest.mark.parametrize("rate", [100, 1000])
def test_every_output_balances(rate, fpm, scripts, make_daemon):
    daemon = make_daemon(fpm, rate=rate)
    with load.requests(fpm, scripts / "deep.php", "d=20&seconds=0.05", connections=2):
        assert_all_outputs_balance(daemon, fpm, scripts)


@pytest.mark.parametrize("realtime", [True, False])
def test_every_output_balances_on_a_busy_machine(realtime, fpm, scripts, make_daemon):
    daemon = make_daemon(fpm, sampling={"rate": 1000, "realtime": realtime})
    with load.hogs(2), load.requests(fpm, scripts / "deep.php", "d=20&seconds=0.05", connections=2):
        assert_all_outputs_balance(daemon, fpm, scripts)


def test_what_attach_writes_balances_on_a_busy_machine(fpm, scripts):
    with load.hogs(2), load.requests(fpm, scripts / "deep.php", "d=20&seconds=0.05", connections=2):
        told = cli.run_json("attach", fpm.pid, "--duration", "1s", "--rate", "500", "--format", "json")
    accounting = balance.of(told["accounting"])
    # four workers, a second at 500 Hz
    assert accounting["expected"] == pytest.approx(2000, rel=0.15)


def test_ticks_are_due_at_the_rate_that_was_asked_for(fpm, make_daemon):
    """Jitter moves a tick, it does not change how many there are; what was missed is counted and never made up."""
    daemon = make_daemon(fpm, rate=200)
    worker = fpm.workers()[0]
    first, started = daemon.target(worker)["accounting"]["expected"], time.monotonic()
    wait.until(lambda: time.monotonic() - started > 2, "two seconds", 3, poll=0.05)
    accounting, elapsed = daemon.target(worker)["accounting"], time.monotonic() - started
    assert accounting["expected"] - first == pytest.approx(200 * elapsed, rel=0.05)


def test_the_window_sums_to_the_time_its_targets_were_watched(shared_master, scripts, make_daemon):
    fpm = shared_master(php_builds.DEBIAN, php_builds.ON)
    daemon = make_daemon(fpm)
    daemon.ask("reset")
    with load.requests(fpm, scripts / "deep.php", "d=10&seconds=0.05", connections=4):
        started = time.monotonic()
        wait.until(lambda: time.monotonic() - started > 1.5, "a second and a half", 3, poll=0.05)
    profile = daemon.ask("profile")
    for column, name in enumerate(("samples", "wall_ns", "cpu_ns", "queue_ns"), 3):  # behind parent, frame and line
        assert sum(node[column] for node in profile["nodes"]) == profile["total"][name]
    assert profile["sample_count"] == profile["total"]["samples"]
    # four workers, always at work: four times the window
    assert profile["total"]["wall_ns"] == pytest.approx(4 * profile["duration_ns"], rel=0.1)
    assert profile["total"]["cpu_ns"] <= 2.1 * 1e9 * (time.monotonic() - started)
