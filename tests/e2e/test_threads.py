# SPDX-License-Identifier: MIT
"""Several sampler threads: each worker belongs to one of them, and nobody can tell from the answers to which."""
import signal
import threading

import pytest

from support import balance, cli, load, php_builds, proc, wait
from support.fpm import Pool
from test_unit import assert_is_consistent, unit

THREADS, WORKERS = 2, 16
pytestmark = pytest.mark.parametrize("threads", [THREADS], indirect=True)


@pytest.fixture
def pool(make_fpm):
    return make_fpm(php_builds.DEBIAN, [Pool(workers=WORKERS)])


def shares(daemon):
    """How many workers each thread has."""
    return [sampler["targets"] for sampler in daemon.metrics()["samplers"]]


def of_each_worker(fpm, question):
    """question() asked by requests at once, until every worker has answered one: {worker: answer}"""
    told = {}

    def drive(ended):
        while not ended.is_set():
            answer = question()
            told[answer["pid"]] = answer

    ended = threading.Event()
    drivers = [threading.Thread(target=drive, args=(ended,)) for _ in range(WORKERS)]
    for driver in drivers:
        driver.start()
    try:
        wait.until(lambda: set(fpm.workers()) <= told.keys(), lambda: f"an answer of each worker; there are {sorted(told)}", 30)
    finally:
        ended.set()
        for driver in drivers:
            driver.join(30)
    return told


def test_each_thread_has_its_share_and_every_worker_is_sampled(pool, make_daemon, scripts):
    daemon = make_daemon(pool, rate=1000)
    names = proc.threads(daemon.pid).values()
    assert sorted(name for name in names if name.startswith("sampler")) == ["sampler/0", "sampler/1"]
    with load.requests(pool, scripts / "quick.php", "trace=4bf92f3577b34da6a3ce929d0e0e4736&us=2000", WORKERS):
        wait.until(lambda: all(balance.looked(target["accounting"]) > 100 for target in daemon.targets()),
                   lambda: f"a hundred samples of each: {daemon.targets()}", 30)
        metrics = daemon.metrics()
    for target in daemon.targets():
        balance.of(target["accounting"])
    samplers = metrics["samplers"]
    assert sum(sampler["targets"] for sampler in samplers) == metrics["targets"] == WORKERS
    assert min(sampler["targets"] for sampler in samplers) >= 1
    for key, whole in (("expected", metrics["accounting"]["expected"]), ("missed", metrics["accounting"]["missed"]),
                       ("ticks_total", metrics["ticks_total"]), ("cpu_ns", metrics["sampler_cpu_ns"])):
        assert sum(sampler[key] for sampler in samplers) == whole
    balance.of(metrics["accounting"])
    assert metrics["realtime"] is True
    told = cli.run("status", "--socket", daemon.socket).stdout
    assert f"threads   {THREADS}; none has more than {max(shares(daemon))} targets" in told
    assert "samples with 2 threads" in cli.run("doctor", "--socket", daemon.socket).stdout


def test_finish_gives_every_worker_its_own_result(pool, make_daemon, scripts):
    daemon = make_daemon(pool, rate=1000, socket={"requests_per_second_per_uid": 100000})
    told = of_each_worker(pool, lambda: unit(pool, scripts, daemon, hot=20, wait=10))
    for worker, answer in told.items():
        assert answer["result"]["pid"] == worker
        assert_is_consistent(answer["result"])
    identities = {answer["result"]["unit_id"] for answer in told.values()}
    assert len(identities) == len(told), "two threads gave the same number"
    kept = daemon.ask("units", limit=1000)["units"]
    assert len({result["unit_id"] for result in kept}) == len(kept)
    ended = [result["start_realtime_ns"] + result["duration_ns"] for result in kept]
    assert all(earlier <= later + 1_000_000 for later, earlier in zip(ended, ended[1:])), "newest first"
    assert len(daemon.ask("units", limit=3)["units"]) == 3
    for answer in told.values():
        identity = answer["result"]["unit_id"]
        assert daemon.ask("unit", unit_id=identity)["unit_id"] == identity


def test_a_function_that_both_threads_have_seen_is_one_function(pool, make_daemon, scripts):
    daemon = make_daemon(pool, rate=1000)
    of_each_worker(pool, lambda: unit(pool, scripts, daemon, hot=30))
    profile = daemon.ask("profile")
    hot = [frame for frame in profile["frames"] if frame["function"] == "hot"]
    assert len(hot) == 1
    balance.of(profile["accounting"])
    rows = daemon.ask("top", n=1000)["functions"]
    assert [row["function"] for row in rows].count("hot") == 1
    # Every worker spent 30 ms in it.
    (row,) = [row for row in rows if row["function"] == "hot"]
    assert row["total"]["cpu_ns"] >= WORKERS * 15_000_000


def test_what_is_ordered_holds_on_all_threads_and_for_who_comes_later(pool, make_daemon):
    daemon = make_daemon(pool, rate=100)
    assert daemon.ask("rate", period_us=2000)["affected"] == WORKERS
    assert {target["period_ns"] for target in daemon.targets()} == {2_000_000}
    assert daemon.ask("suspend", pool="m1")["affected"] == WORKERS
    assert all(target["suspended"] for target in daemon.targets())
    for killed in pool.workers():  # others take their places, on either thread
        pool.kill_worker(killed)
    wait.until(lambda: {target["pid"] for target in daemon.targets()} == set(pool.workers()), "the killed to be let go")
    assert min(shares(daemon)) >= 1
    assert all(target["suspended"] and target["period_ns"] == 2_000_000 for target in daemon.targets())
    assert daemon.ask("resume")["affected"] == WORKERS
    assert daemon.ask("reset")["affected"] == WORKERS
    daemon.until_attached(pool.workers())
    daemon.configure(sampling={"rate": 250, "threads": THREADS})
    daemon.ask("reload")
    wait.until(lambda: {target["period_ns"] for target in daemon.targets()} == {4_000_000}, "the reload on all threads")


def test_another_number_of_threads_waits_for_the_next_start(pool, make_daemon):
    daemon = make_daemon(pool)
    daemon.configure(sampling={"threads": THREADS + 1})
    daemon.ask("reload")
    assert "sampling.threads has changed" in daemon.log
    assert len(daemon.metrics()["samplers"]) == THREADS
    daemon.stop()
    daemon.start()
    daemon.until_attached(pool.workers())
    assert len(daemon.metrics()["samplers"]) == THREADS + 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_in_the_middle_of_everything(number, pool, make_daemon, scripts):
    daemon = make_daemon(pool, rate=1000)
    with load.requests(pool, scripts / "quick.php", "trace=4bf92f3577b34da6a3ce929d0e0e4736&us=2000", WORKERS):
        with daemon.connect() as connection:
            for verb in ("targets", "profile", "units", "metrics", "top") * 10:
                connection.send(verb=verb)
            connection.read_answer()
            daemon.signal(number)
            assert daemon.process.wait(5) == 0
