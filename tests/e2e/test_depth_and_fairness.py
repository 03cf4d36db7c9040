# SPDX-License-Identifier: MIT
"""Deep stacks come whole or are marked, and every worker is looked at alike (Must show 4)."""
import time

import pytest

from support import balance, cli, load, php_builds, wait
from support.fpm import Pool
from test_unit import assert_is_consistent


def dump_at(fpm, scripts, gate, depth):
    with fpm.connect() as connection:
        connection.send(scripts / "deep.php", f"d={depth}&gate={gate.path}")
        gate.until_reached()
        worker = fpm.worker_at_a_gate()
        dump = cli.run_json("dump", worker, "--json")
        gate.open()
        connection.read().json()
    return [frame["function"] for frame in dump["frames"]], dump["omitted"]


@pytest.mark.parametrize("depth", [200, 500])
def test_a_deep_method_stack_comes_whole(depth, build, fpm, scripts, gate):
    frames, omitted = dump_at(fpm, scripts, gate, depth)
    assert omitted == 0
    assert frames == ["fread", "Deep::bottom"] + ["Deep::descend"] * (depth - 2) + ["{main}"]


def test_a_stack_5000_deep_keeps_both_ends_and_says_how_many_it_left_out(build, fpm, scripts, gate):
    frames, omitted = dump_at(fpm, scripts, gate, 5000)
    frames = [frame for frame in frames if frame != "<truncated>"]
    assert omitted > 0
    assert len(frames) + omitted == 5001  # and fread
    assert frames[:2] == ["fread", "Deep::bottom"]
    assert frames[-1] == "{main}"
    assert set(frames[2:-1]) == {"Deep::descend"}


@pytest.mark.parametrize("depth", [200, 500, 5000])
def test_a_profile_of_a_deep_stack_is_one_chain(depth, build, fpm, scripts, make_daemon):
    daemon = make_daemon(fpm, sampling={"rate": 200, "max_depth": 512})
    worker = fpm.request(scripts / "deep.php", f"d={depth}&seconds=1").json()["pid"]
    newest = wait.until(lambda: daemon.ask("units", pid=worker, limit=1)["units"], "the unit to be kept")[0]
    result = daemon.ask("unit", unit_id=newest["unit_id"], profile=True, stacks=True)
    tree = assert_is_consistent(result)
    sampled = [node for node, row in enumerate(tree.stacks, 1) if row[2] > 0]
    at_the_bottom = [node for node in sampled if tree.path(node)[-1] == "Deep::bottom"]
    share = sum(tree.stacks[node - 1][2] for node in at_the_bottom) / result["profile"]["sample_count"]
    assert share >= 0.9
    assert len(at_the_bottom) == 1, "one legal stack, one node"
    path = tree.path(at_the_bottom[0])
    truncated = [name for name in path if name == "<truncated>"]
    if depth <= 500:
        assert truncated == [] and result["accounting"]["truncated"] == 0
        assert path == ["{main}"] + ["Deep::descend"] * (depth - 2) + ["Deep::bottom"]
    else:
        assert truncated == ["<truncated>"] and result["accounting"]["truncated"] > 0
        assert path[0] == "{main}" and 400 <= len(path) <= 513


def test_twenty_workers_under_load_are_sampled_alike(make_fpm, make_daemon, scripts, place, room):
    app = room / "app"
    if not (app / "var" / "app.db").exists():
        load.seed(app)
    fpm = make_fpm(php_builds.DEBIAN, [Pool(workers=20)], extensions=("mbstring", "pdo", "pdo_sqlite"))
    daemon = make_daemon(fpm, rate=100)
    with load.Nginx(fpm, place / "nginx", app / "public" / "index.php") as nginx, nginx.under_wrk(60, 30):
        wait.until(lambda: all(target["requests_seen"] for target in daemon.targets()), "all workers at work", 20)
        daemon.ask("reset")
        before = {target["pid"]: balance.of(target["accounting"]) for target in daemon.targets()}
        started = time.monotonic()
        wait.until(lambda: time.monotonic() - started > 4, "four seconds of load", 6, poll=0.1)
        after = {target["pid"]: balance.of(target["accounting"]) for target in daemon.targets()}
    assert len(after) == 20 and before.keys() == after.keys()
    shares = [balance.looked(after[pid]) - balance.looked(before[pid]) for pid in after]
    due = [after[pid]["expected"] - before[pid]["expected"] for pid in after]
    assert min(due) > 300 and max(due) / min(due) <= 1.02, f"ticks due: {sorted(due)}"
    assert max(shares) / min(shares) <= 1.2, f"looked at: {sorted(shares)}"
