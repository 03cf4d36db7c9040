# SPDX-License-Identifier: MIT
"""The samples are right: the oracle in small (`make oracle`, docs/ORACLE.md), so that every change is held against it.

Stacks are judged by tables that were made from the programs by hand. What is asserted holds on a busy machine, too: that no
impossible stack is accepted, and that shares are as near as chance allows.
"""
import sys

import pytest

from support import cli

sys.path.insert(0, str(cli.ROOT / "tests" / "bench"))

from measure import driver  # noqa: E402
from measure.place import place  # noqa: E402
from truth import app, programs, shares, stacks, targets  # noqa: E402

LOOKS = 4000
SHARE_SAMPLES = 3000


@pytest.fixture(scope="module")
def bench():
    assert driver.path().exists(), f"{driver.path()} is not built: run `make {driver.path().relative_to(cli.ROOT)}`"
    with place() as room:
        yield room


def look(room, program, reader, sapi, mode, looks=LOOKS):
    found = stacks.observe(room, [program], looks / stacks.PART[reader], [mode], [reader], [sapi])
    return next(iter(found.values()))


def assert_true(program, seen, most_torn=1.0):
    assert seen.impossible(program.grammar) == {}
    assert seen.impossible_proofs(program.grammar) == {}
    assert seen.refuted == 0, "a process that was said not to have run showed another stack"
    assert seen.outcomes["torn"] <= most_torn * seen.looks, dict(seen.outcomes)
    assert seen.looks >= LOOKS / 4


@pytest.mark.parametrize("program", programs.ALL, ids=lambda program: program.name)
def test_no_impossible_stack_is_accepted_and_next_to_none_is_lost(program, bench):
    """From wherever the reader likes, which is the target's own CPU where snapshots tear."""
    assert_true(program, look(bench, program, "auto", program.sapis[0], "opcache"), most_torn=0.02)


@pytest.mark.parametrize("program", programs.ALL, ids=lambda program: program.name)
def test_next_to_no_impossible_stack_is_accepted_from_another_cpu(program, bench):
    """Where a stack that changes all the time is torn in nearly every snapshot, and one that calls and returns in some
    nanoseconds may look alike at all moments at which it is read (docs/ORACLE.md): next to none, then."""
    seen = look(bench, program, "never", program.sapis[0], "off")
    assert sum(seen.impossible(program.grammar).values()) <= 5 + 0.001 * seen.accepted


@pytest.mark.parametrize("php_mode", targets.MODES)
def test_the_sample_applications_stacks_are_those_of_its_call_graph(php_mode, bench):
    application = app.SampleApplication(bench)
    assert_true(application, look(bench, application, "auto", programs.FPM, php_mode), most_torn=0.02)


def test_a_frame_by_frame_reader_is_found_out(bench):
    """The oracle can see what it is there to see."""
    program = next(program for program in programs.ALL if program.name == "chain 50/20")
    seen = look(bench, program, "naive", programs.CLI, "off", looks=300)
    assert sum(seen.impossible(program.grammar).values()) > 0.05 * seen.accepted


@pytest.mark.parametrize("kind", shares.KINDS)
def test_known_shares_are_found(kind, bench):
    found = shares.observe(bench, SHARE_SAMPLES, ["opcache"], [kind])
    for (_, sapi, _), measured in found.items():
        for clock in shares.KINDS[kind]:
            name, error = measured.error(clock)
            assert abs(error) <= 1.5 + measured.interval(clock, name), (sapi, clock, measured.found, measured.truth)
