# SPDX-License-Identifier: MIT
"""Each request's samples belong to that request's trace, however it says which that is (Must show 3)."""
import threading
import urllib.parse
from contextlib import contextmanager

import pytest

from support import balance, cli, php_builds, wait
from test_unit import MS, SPAN, TRACE, assert_is_consistent, scatter_ns, unit

REQUESTS = 2000
VALID = f"00-{TRACE}-{SPAN}-01"


# -- adoption --------------------------------------------------------------------------------------------------------

def test_a_unit_covers_what_ran_before_begin(build, fpm, scripts, make_daemon):
    told = unit(fpm, scripts, make_daemon(fpm), early=150, hot=100)
    result = told["result"]
    tree = assert_is_consistent(result)
    assert result["automatic"] is True
    assert tree.total("early")[2] == pytest.approx(150 * MS, abs=scatter_ns(result, 150 * MS))
    assert tree.total("hot")[2] == pytest.approx(100 * MS, abs=scatter_ns(result, 100 * MS))
    assert result["duration_ns"] >= told["start_wall_ns"] - 10 * MS


def test_a_request_that_never_says_begin_is_a_unit_of_its_own(fpm, scripts, daemon):
    worker = fpm.request(scripts / "deep.php", "d=3&seconds=0.2").json()["pid"]
    newest = wait.until(lambda: daemon.ask("units", pid=worker, limit=1)["units"], "the unit to be kept")[0]
    result = daemon.ask("unit", unit_id=newest["unit_id"], profile=True, stacks=True)
    assert result["path"] == "/deep.php"
    assert result["automatic"] is True and result["unit"] == "http"
    tree = assert_is_consistent(result)
    assert tree.total("Deep::bottom")[1] == pytest.approx(200 * MS, rel=0.2)


# -- two thousand in a row -------------------------------------------------------------------------------------------

def test_two_thousand_requests_back_to_back_each_get_their_own_result(build, shared_master, scripts, make_daemon):
    """On four kept connections, the next request always under way before the answer to the last one was read."""
    fpm = shared_master(build, php_builds.ON)
    daemon = make_daemon(fpm, rate=1000, socket={"requests_per_second_per_uid": 100000})
    workers = len(fpm.workers())
    answers, failures = {}, []

    def traces(worker):
        return [f"{worker:04x}{number:028x}" for number in range(1, REQUESTS // workers + 1)]

    def drive(worker):
        try:
            with fpm.connect() as connection:
                mine = traces(worker)
                for number, trace in enumerate(mine):
                    query = f"trace={trace}&us={(number % 5) * 200}"
                    connection.send(scripts / "quick.php", query, **daemon.to_be_found())
                    if number:
                        answers[mine[number - 1]] = connection.read().json()
                answers[mine[-1]] = connection.read().json()
        except Exception as error:  # noqa: BLE001 - told by the test
            failures.append(f"connection {worker}: {error!r}")

    threads = [threading.Thread(target=drive, args=(worker,)) for worker in range(1, workers + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert len(answers) == REQUESTS
    assert all(told["warnings"] == [] for told in answers.values())
    lost = {trace: told["result"] for trace, told in answers.items() if told["result"].get("available") is False}
    assert not lost, f"{len(lost)} without a result, such as {next(iter(lost.values()))}"
    swapped = {trace for trace, told in answers.items() if told["result"]["trace_id"] != trace}
    assert not swapped, f"{len(swapped)} of {REQUESTS} have another request's trace"
    identities = {told["result"].get("unit_id") for told in answers.values()}
    assert len(identities) == REQUESTS, "two requests were merged into one unit"
    spent = sorted(told["finish_wall_ns"] for told in answers.values())
    assert spent[REQUESTS // 2] <= 20 * MS, "half of the results came later than the client's own budget has room for"
    for trace, told in answers.items():
        balance.of(told["result"]["accounting"])
        assert told["result"]["duration_ns"] < 1_000_000_000, f"{trace} has swallowed its neighbours"


# -- where the context stands ----------------------------------------------------------------------------------------

@contextmanager
def waiting_request(fpm, scripts, gate, form, value="", **parameters):
    """A request of context.php before the gate: yields its worker's pid."""
    query = urllib.parse.urlencode({"form": form, "value": value, "gate": gate.path})
    with fpm.connect() as connection:
        connection.send(scripts / "context.php", query, **parameters)
        gate.until_reached()
        worker = fpm.worker_at_a_gate()
        yield worker
        gate.open()
        assert connection.read().json()["pid"] == worker


def request_of(pid):
    return cli.run_json("dump", pid, "--json")["request"]


@pytest.mark.parametrize("form", ["top-level variable", "$GLOBALS", "global statement", "reference", "variable variable"])
def test_the_trace_is_found_wherever_php_puts_the_global(form, build, fpm, scripts, gate):
    with waiting_request(fpm, scripts, gate, form, VALID) as worker:
        request = request_of(worker)
    assert (request["context"], request["trace_id"], request["span_id"]) == ("valid", TRACE, SPAN)


MALFORMED = {
    "empty": "",
    "no grammar at all": "hello",
    "a letter that is no hex digit": VALID.replace("4bf9", "4bg9"),
    "a digit short": VALID.replace("4bf9", "4bf"),
    "upper-case hex": VALID.upper(),
    "another version": "ff" + VALID[2:],
    "an unknown field": VALID + ";zz=1",
    "a handle that is no number": VALID + ";h=12x",
    "a field twice": VALID + ";h=1;h=2",
    "too long": VALID + ";n=" + "x" * 512,
}


@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_context_is_told_from_an_absent_one(value, fpm, scripts, gate):
    with waiting_request(fpm, scripts, gate, "$GLOBALS", value) as worker:
        request = request_of(worker)
    assert request["context"] == "invalid" and not request["trace_id"]


@pytest.mark.parametrize("form", ["8 KiB", "array", "integer", "object"])
def test_a_global_that_is_no_context_is_counted_and_ignored(form, build, fpm, scripts, gate, make_daemon):
    daemon = make_daemon(fpm)
    with waiting_request(fpm, scripts, gate, form, VALID) as worker:
        assert request_of(worker)["context"] == "invalid"
        wait.until(lambda: daemon.target(worker)["accounting"]["context_invalid"] > 0, "it to be counted")
        assert not daemon.target(worker)["trace_id"]


def test_no_global_is_absent_and_not_counted(build, fpm, scripts, gate, make_daemon):
    daemon = make_daemon(fpm)
    with waiting_request(fpm, scripts, gate, "none") as worker:
        assert request_of(worker)["context"] == "absent"
        wait.until(lambda: balance.looked(daemon.target(worker)["accounting"]) > 5, "a few samples")
        assert daemon.target(worker)["accounting"]["context_invalid"] == 0


def test_an_incoming_traceparent_header_is_enough(build, fpm, scripts, gate, make_daemon):
    daemon = make_daemon(fpm, trace={"traceparent": True})
    with waiting_request(fpm, scripts, gate, "none", HTTP_TRACEPARENT=VALID) as worker:
        wait.until(lambda: daemon.target(worker)["trace_id"] == TRACE, "the header's trace")


def test_an_incoming_traceparent_header_is_not_believed_where_that_is_switched_off(fpm, scripts, gate, make_daemon):
    daemon = make_daemon(fpm, trace={"traceparent": False})
    with waiting_request(fpm, scripts, gate, "none", HTTP_TRACEPARENT=VALID) as worker:
        wait.until(lambda: balance.looked(daemon.target(worker)["accounting"]) > 5, "a few samples")
        assert not daemon.target(worker)["trace_id"]


def test_a_unit_can_be_asked_for_by_its_trace_after_the_request(fpm, scripts, daemon):
    unit(fpm, scripts, daemon, {"trace_id": "0af7651916cd43dd8448eb211c80319c"}, hot=30)
    result = daemon.ask("unit", trace_id="0af7651916cd43dd8448eb211c80319c", profile=True, stacks=True)
    assert result["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert assert_is_consistent(result).total("hot")[2] > 0
