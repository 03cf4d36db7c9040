# SPDX-License-Identifier: MIT
"""The configuration as an operator meets it: checked before it is used, and told when it can't be."""
import pytest

from support import cli, wait

SHIPPED = cli.ROOT / "config" / "cbox-profd.yaml"


def check(path):
    return cli.run("daemon", "--check", "--config", path)


def test_the_shipped_file_is_right():
    done = check(SHIPPED)
    assert (done.returncode, done.stdout, done.stderr) == (cli.EXIT_OK, "ok\n", "")


@pytest.mark.parametrize("text, complaint", [
    ("sampling:\n  rate: fast\n", "2:9: sampling.rate: found \"fast\"; allowed: a whole number of Hz from 1 to 10000"),
    ("sampling:\n\trate: 1\n", "2:1: a tab; indentation is spaces only"),
    ("smapling: {}\n", "1:1: unknown key \"smapling\"; allowed: sampling, limits, discovery, socket, trace, pools"),
], ids=["wrong type", "tab", "unknown key"])
@pytest.mark.parametrize("only_check", [True, False], ids=["check", "start"])
def test_a_wrong_file_is_refused_in_one_line_with_its_place(only_check, text, complaint, place):
    path = place / "wrong.yaml"
    path.write_text(text)
    done = check(path) if only_check else cli.run("daemon", "--config", path)
    assert (done.returncode, done.stdout) == (cli.EXIT_FAILED, "")
    assert done.stderr == f"cbox-profd: {path}:{complaint}\n"


def test_a_file_that_is_not_there_is_named(place):
    done = check(place / "none.yaml")
    assert done.returncode == cli.EXIT_FAILED
    assert done.stderr == f"cbox-profd: {place}/none.yaml: can't be opened: No such file or directory; " \
                          "make one (an empty file means all defaults), or name another with --config\n"


def test_a_group_that_is_not_there_is_named(place):
    path = place / "group.yaml"
    path.write_text("socket:\n  admin_group: no-such-group\n")
    done = check(path)
    assert done.returncode == cli.EXIT_FAILED
    assert done.stderr == f"cbox-profd: {path}: socket.admin_group: no group is called \"no-such-group\"; " \
                          "make it with groupadd, or name another\n"


def test_what_a_reload_can_not_change_is_told(make_daemon):
    daemon = make_daemon(pools=[{"fpm_pool": "no-such-pool"}])
    daemon.configure(sampling={"rate": 200}, limits={"max_nodes": 100})
    daemon.ask("reload")
    wait.until(lambda: "limits.max_nodes has changed; it is taken at the next start" in daemon.log, "the word in the log")
    assert "sampling.rate" not in daemon.log
    assert daemon.ask("status")["sampling"]["period_ns"] == 5_000_000


def test_help_has_examples():
    done = cli.ok("daemon", "--help")
    assert "--check" in done.stdout and "--config" in done.stdout and "examples:" in done.stdout
