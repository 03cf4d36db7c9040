# SPDX-License-Identifier: MIT
"""sampling.cpu_budget: the sampler keeps to its share of a CPU by sampling more seldom, and says so everywhere."""
import time

import pytest

from support import balance, cli, load, proc, wait
from test_unit import unit

PPM = 1_000_000
BUDGET = 0.01  # of a CPU: four running workers at 1 kHz take several times as much


def share(daemon, seconds):
    """Of a CPU that the sampler's thread takes, as the kernel counts it."""
    sampler = next(tid for tid, name in proc.threads(daemon.pid).items() if name.startswith("sampler"))

    def used():
        return int(proc.read(daemon.pid, f"task/{sampler}/schedstat").split()[0])

    before, started = used(), time.monotonic_ns()
    wait.until(lambda: time.monotonic_ns() - started > seconds * 1e9, "the time to pass", seconds + 5, poll=0.05)
    return (used() - before) / (time.monotonic_ns() - started)


def until_stretched(daemon, seconds=5):
    wait.until(lambda: daemon.metrics()["stretch_ppm"] > 1.5 * PPM, lambda: f"periods to be stretched: {daemon.metrics()}",
               seconds, poll=0.1)


@pytest.fixture
def busy(fpm, scripts):
    with load.requests(fpm, scripts / "deep.php", "d=50&seconds=0.05", connections=4):
        yield


def test_the_sampler_takes_no_more_than_its_budget(fpm, make_daemon, busy):
    daemon = make_daemon(fpm, sampling={"rate": 1000, "cpu_budget": f"{BUDGET:.0%}"})
    until_stretched(daemon)
    share(daemon, 1)  # it settles within a second
    # measuring it asks nothing of the daemon, so the thread does nothing but sample
    assert share(daemon, 3) == pytest.approx(BUDGET, rel=0.15)


def test_without_a_limit_it_takes_what_it_takes(fpm, make_daemon, busy):
    daemon = make_daemon(fpm, sampling={"rate": 1000, "cpu_budget": "none"})
    share(daemon, 1)
    assert share(daemon, 1) > 1.5 * BUDGET
    metrics = daemon.metrics()
    assert metrics["stretch_ppm"] == PPM and metrics["cpu_budget_ppm"] == 0
    assert metrics["cpu_demand_ppm"] > 1.5 * BUDGET * PPM


def test_what_was_asked_for_and_what_is_in_force_is_told_everywhere(fpm, scripts, make_daemon):
    daemon = make_daemon(fpm, sampling={"rate": 1000, "cpu_budget": f"{BUDGET:.0%}"})
    with load.requests(fpm, scripts / "deep.php", "d=50&seconds=0.05", connections=3):
        until_stretched(daemon)
        metrics, status = daemon.metrics(), daemon.ask("status")
        result = unit(fpm, scripts, daemon, hot=300, wait=1)["result"]
        for target in daemon.targets():
            assert target["asked_period_ns"] == 1_000_000 and target["period_ns"] > 1_300_000
        people = cli.ok("status", "--socket", daemon.socket).stdout
        wait.until(lambda: "more seldom than was asked for" in daemon.log, "a line in the log", 10, poll=0.2)
    assert metrics["cpu_budget_ppm"] == BUDGET * PPM
    assert metrics["cpu_demand_ppm"] / metrics["cpu_budget_ppm"] == pytest.approx(metrics["stretch_ppm"] / PPM, rel=0.01)
    assert status["sampling"]["asked_period_ns"] == 1_000_000
    assert status["sampling"]["period_ns"] == pytest.approx(status["sampling"]["stretch_ppm"], rel=0.01)
    assert status["metrics"]["cpu_budget_ppm"] == BUDGET * PPM
    assert result["asked_period_ns"] == 1_000_000
    assert result["profile"]["period_ns"] > 1_300_000
    # so few ticks there were, and none of them is missing from the books
    assert balance.of(result["accounting"])["expected"] < 0.75 * result["duration_ns"] / 1_000_000
    assert "STRETCHED from 1 ms" in people and "sampling.cpu_budget" in people
    assert daemon.log.count("more seldom than was asked for") == 1  # a minute has not passed


def test_it_relaxes_when_the_load_falls_and_when_the_limit_is_lifted(fpm, scripts, make_daemon):
    daemon = make_daemon(fpm, sampling={"rate": 1000, "cpu_budget": f"{BUDGET:.0%}"})
    with load.requests(fpm, scripts / "deep.php", "d=50&seconds=0.05", connections=4):
        until_stretched(daemon)
        daemon.configure(sampling={"rate": 1000, "cpu_budget": "50%"})
        daemon.ask("reload")
        wait.until(lambda: daemon.metrics()["stretch_ppm"] == PPM, "periods as they were asked for", 3, poll=0.1)
        daemon.configure(sampling={"rate": 1000, "cpu_budget": f"{BUDGET:.0%}"})
        daemon.ask("reload")
        until_stretched(daemon)
    daemon.ask("rate", rate_hz=50)
    wait.until(lambda: daemon.metrics()["stretch_ppm"] == PPM, "periods as they were asked for", 5, poll=0.1)
