# SPDX-License-Identifier: MIT
"""The accounting's promise: no tick is lost, in any output."""

PARTS = ("taken", "unchanged", "torn_lost", "unreadable", "idle", "missed")


def of(accounting):
    """Asserts expected = taken + unchanged + torn_lost + unreadable + idle + missed; returns the accounting."""
    total = sum(accounting[part] for part in PARTS)
    assert accounting["expected"] == total, f"expected {accounting['expected']} is not the sum {total} of {accounting}"
    return accounting


def looked(accounting):
    """Ticks at which the target's stack was known: read, or proved not to have moved."""
    return accounting["taken"] + accounting["unchanged"]
