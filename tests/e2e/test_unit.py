# SPDX-License-Identifier: MIT
"""A unit of known work: its time is found where it went, and none of it is lost (Must show 2)."""
import json
import math
import urllib.parse

import pytest

from support import balance, proc, wait

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
MS = 1_000_000


class Tree:
    """A unit's `profile` as a consumer reads it: node id = position + 1, node 0 is the root and never emitted."""

    def __init__(self, profile):
        self.frames, self.stacks = profile["frames"], profile["stacks"]

    def name(self, frame_id):
        return self.frames[frame_id]["function"]

    def path(self, node):
        names = []
        while node:
            parent, frame_id = self.stacks[node - 1][:2]
            assert parent < node, "a parent comes before its children"
            names.append(self.name(frame_id))
            node = parent
        return names[::-1]

    def total(self, function):
        """(samples, wall_ns, cpu_ns) of all nodes at or below the function."""
        inside = [row for node, row in enumerate(self.stacks, 1) if function in self.path(node)]
        return tuple(sum(row[column] for row in inside) for column in (2, 3, 4))

    def sum(self):
        return tuple(sum(row[column] for row in self.stacks) for column in (2, 3, 4))


def unit(fpm, scripts, daemon, context=None, **query):
    context = {"trace_id": TRACE, "span_id": SPAN, **(context or {})}
    query = {"context": json.dumps(context), **query}
    told = fpm.request(scripts / "unit.php", urllib.parse.urlencode(query), **daemon.to_be_found()).json()
    assert told["warnings"] == []
    assert told["available"] is True
    return told


def assert_is_consistent(result):
    """What holds for every unit with a profile, whatever it did."""
    profile = result["profile"]
    tree = Tree(profile)
    samples, wall_ns, cpu_ns = tree.sum()
    assert profile["sample_count"] == sum(top["samples"] for top in profile["top_functions"]) == samples
    assert [top["samples"] for top in profile["top_functions"]] == sorted(
        (top["samples"] for top in profile["top_functions"]), reverse=True)
    assert abs(wall_ns - result["duration_ns"]) <= profile["period_ns"]
    if "cpu_ns" in result:
        assert cpu_ns == result["cpu_ns"]
    balance.of(result["accounting"])
    return tree


def scatter_ns(result, cpu_ns):
    """How far off the CPU time of a function that used so much of it may be: a period and a half where it begins and ends, and three
    standard errors of how many of the samples of a worker that queues find it on a CPU."""
    period_ns = result["profile"]["period_ns"]
    queued = result["queue_ns"] / (result["queue_ns"] + result["cpu_ns"])
    return 1.5 * period_ns + 3 * math.sqrt(cpu_ns * period_ns * queued)


@pytest.mark.parametrize("rate", [100, 1000])
def test_time_is_found_where_it_went_and_sums_to_the_whole(rate, build, mode, fpm, scripts, make_daemon):
    daemon = make_daemon(fpm, rate=rate)
    cpu_before = {pid: proc.cpu_ns(pid) for pid in fpm.workers()}
    told = unit(fpm, scripts, daemon, hot=300, wait=200)
    process_cpu_ns = proc.cpu_ns(told["pid"]) - cpu_before[told["pid"]]
    result, profile = told["result"], told["result"]["profile"]
    period_ns = profile["period_ns"]
    assert period_ns == 1_000_000_000 // rate
    tree = assert_is_consistent(result)

    assert result["trace_id"] == TRACE and result["span_id"] == SPAN
    assert result["unit"] == "http" and result["sampled"] is True and result["profiling"] is True
    _, _, hot_cpu_ns = tree.total("hot")
    assert hot_cpu_ns == pytest.approx(300 * MS, rel=0.10)
    _, wait_wall_ns, wait_cpu_ns = tree.total("wait")
    # it may queue once it is awake
    assert wait_wall_ns == pytest.approx(200 * MS, abs=max(2 * period_ns, 10 * MS) + result["queue_ns"])
    assert wait_cpu_ns <= max(period_ns, 5 * MS)  # a tick may fall between the two

    assert result["duration_ns"] >= told["begin_wall_ns"] - period_ns
    _, _, cpu_ns = tree.sum()
    # the script's own clock starts after its compilation; the process's runs on to the end of the answer
    assert told["start_cpu_ns"] - period_ns <= cpu_ns <= process_cpu_ns
    assert told["second_finish"] == []


def test_an_explicit_unit_has_a_period_of_its_own_and_an_adopted_one_keeps_its(fpm, scripts, daemon):
    adopted = unit(fpm, scripts, daemon, {"period_us": 2000}, hot=200)["result"]
    assert adopted["automatic"] is True and adopted["profile"]["period_ns"] == 10 * MS
    explicit = unit(fpm, scripts, daemon, {"period_us": 2000}, hot=200, abandon=1)["result"]
    assert explicit["automatic"] is False and explicit["profile"]["period_ns"] == 2 * MS
    due = explicit["duration_ns"] / (2 * MS)
    assert explicit["profile"]["sample_count"] == pytest.approx(due, rel=0.25)


def test_a_second_begin_abandons_the_first_unit(build, fpm, scripts, make_daemon):
    told = unit(fpm, scripts, make_daemon(fpm), early=100, hot=100, abandon=1)
    tree = assert_is_consistent(told["result"])
    assert told["result"]["automatic"] is False
    assert told["result"]["duration_ns"] == pytest.approx(told["begin_wall_ns"], abs=20 * MS, rel=0.1)
    assert tree.total("early") == (0, 0, 0)
    assert tree.total("hot")[2] == pytest.approx(100 * MS, abs=scatter_ns(told["result"], 100 * MS))


def test_a_unit_without_a_profile_has_its_duration_all_the_same(fpm, scripts, daemon):
    result = unit(fpm, scripts, daemon, {"unit": "queue"}, hot=50, profile=0)["result"]
    assert result["profile"] is None
    assert result["unit"] == "queue"
    assert result["duration_ns"] >= 50 * MS
    assert result["counters"]["profiler.samples"] > 0


def test_a_unit_that_is_not_to_be_profiled_collects_nothing(fpm, scripts, daemon):
    result = unit(fpm, scripts, daemon, {"profile": False}, early=50, hot=50)["result"]
    assert result["profile"] is None and result["profiling"] is False


def test_frames_are_functions_with_the_file_and_line_they_are_declared_at(build, fpm, scripts, make_daemon):
    result = unit(fpm, scripts, make_daemon(fpm, rate=1000), hot=60, wait=20)["result"]
    frames = {frame["function"]: frame for frame in result["profile"]["frames"]}
    source = (scripts / "unit.php").read_text().splitlines()
    declared = 1 + next(number for number, line in enumerate(source) if line.startswith("function hot("))
    assert (frames["hot"]["file"], frames["hot"]["line"]) == (str(scripts / "unit.php"), declared)
    assert not frames["usleep"]["file"]
    assert "{main}" in frames
    tree = Tree(result["profile"])
    assert ["{main}", "wait", "usleep"] in [tree.path(node) for node in range(1, len(tree.stacks) + 1)]


def test_the_protocol_by_hand_gives_the_same_result(build, fpm, scripts, daemon):
    query = urllib.parse.urlencode({"socket": daemon.socket, "trace": TRACE, "ms": 150})
    told = fpm.request(scripts / "raw_unit.php", query).json()
    assert told["hello"]["hello"] == "cbox-profd" and told["hello"]["protocols"] == [1]
    wrong, finished, again, status = told["answers"]
    assert (wrong["id"], wrong["ok"], wrong["error"]) == ("wrong", False, "no_unit")
    assert (finished["id"], finished["ok"]) == (7, True)
    assert (again["id"], again["ok"], again["error"]) == (8, False, "no_unit")
    assert status["ok"] and status["result"]["worker"]["pid"] == told["pid"]
    result = finished["result"]
    assert_is_consistent(result)
    assert result["trace_id"] == TRACE and result["unit"] == "queue"
    assert Tree(result["profile"]).total("work")[1] == pytest.approx(150 * MS, abs=25 * MS)


def test_a_result_larger_than_a_line_comes_in_chunks_that_are_one_answer(fpm, scripts, place, make_daemon):
    """Thousands of distinct functions on the stacks: more than 256 KiB of JSON."""
    script = place / "many.php"
    functions = "".join(f"function a_function_with_a_rather_long_name_{n}() {{ usleep(100); }}\n" for n in range(4000))
    calls = "for ($i = 0; $i < 4000; $i++) { ('a_function_with_a_rather_long_name_' . $i)(); }\n"
    script.write_text("<?php\n" + functions + calls + "echo json_encode(getmypid());")
    daemon = make_daemon(fpm, rate=5000, sampling={"max_rate": 10000})
    pid = fpm.request(script).json()
    with daemon.connect() as connection:
        newest = wait.until(lambda: connection.ask("units", pid=pid, limit=1)["units"], "the unit to be kept")[0]
        result = connection.ask("unit", unit_id=newest["unit_id"], profile=True, stacks=True)
        assert connection.chunks > 0, "this result was to be larger than a chunk"
    assert_is_consistent(result)
    assert len(json.dumps(result, separators=(",", ":"))) > 256 * 1024
