# SPDX-License-Identifier: MIT
"""How far something is from what it is compared with, over rounds in which both took turns.

A round's ratio is free of what slowly changes on a machine; the median over rounds is free of a round that something
else fell into. How sure it is, is told by the 95 % interval of that median when rounds are drawn anew (bootstrap).
"""
import random
import statistics

DRAWS = 2000


def median_with_interval(values):
    """(median, lower, upper)"""
    source = random.Random(1)  # the same figures give the same interval
    drawn = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(DRAWS))
    return statistics.median(values), drawn[DRAWS * 25 // 1000], drawn[DRAWS * 975 // 1000 - 1]


def change(values, base):
    """'-4.1 % [-5.0, -3.2]': `values` against those of `base` in the same rounds."""
    shares = [100 * (value / other - 1) for value, other in zip(values, base, strict=True)]
    return "{:+.1f} % [{:+.1f}, {:+.1f}]".format(*median_with_interval(shares))
