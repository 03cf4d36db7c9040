# SPDX-License-Identifier: MIT
"""Waiting for a state, with a deadline. The suite has no other way to wait: a sleep is either too short or too long."""
import time

POLL_SECONDS = 0.005


def until(question, what, seconds=10.0, poll=POLL_SECONDS):
    """The first true answer of question(); AssertionError naming `what` when none came in time.

    `what` may be a callable: it is asked only when the deadline has passed, so that it can tell the last state.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > deadline:
            told = what() if callable(what) else what
            raise AssertionError(f"waited {seconds:g} s in vain for: {told}")
        time.sleep(poll)
