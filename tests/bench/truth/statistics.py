# SPDX-License-Identifier: MIT
"""How sure one can be: intervals of 95 %."""
import math
import random
from collections import Counter

Z = 1.959964
RESAMPLES = 400


def wilson(found, of):
    """(low, high) of a share that was found so many times."""
    if of == 0:
        return 0.0, 1.0
    share = found / of
    centre = share + Z * Z / (2 * of)
    spread = Z * math.sqrt(share * (1 - share) / of + Z * Z / (4 * of * of))
    return max(0.0, (centre - spread) / (1 + Z * Z / of)), min(1.0, (centre + spread) / (1 + Z * Z / of))


def shares(counts):
    total = sum(counts.values())
    return {key: count / total for key, count in counts.items()} if total else {}


def total_variation(one, other):
    """Of two distributions: the share of time that one puts elsewhere than the other."""
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in set(one) | set(other)) / 2


def summed(batches):
    total = Counter()
    for batch in batches:
        total.update(batch)
    return total


def bootstrap(batches, statistic, seed=1):
    """(value, low, high) of a statistic of counts, from batches drawn again and again: neighbouring samples are alike where
    a machine is busy, batches are not."""
    source = random.Random(seed)
    values = sorted(statistic(summed(source.choices(batches, k=len(batches)))) for _ in range(RESAMPLES))
    return statistic(summed(batches)), values[int(0.025 * RESAMPLES)], values[int(0.975 * RESAMPLES)]


def distance(one, other, seed=1):
    """(total variation of two lots of batches, what chance alone would make of it in 19 of 20 cases: the same batches
    dealt out at random)."""
    source = random.Random(seed)
    sizes = sum(sum(batch.values()) for batch in one), sum(sum(batch.values()) for batch in other)
    # Batches of both sides weigh the same among those that are dealt out.
    scaled = [[Counter({key: count / size for key, count in batch.items()}) for batch in batches]
              for batches, size in zip((one, other), sizes)]
    pool = scaled[0] + scaled[1]
    dealt = []
    for _ in range(RESAMPLES // 4):
        source.shuffle(pool)
        dealt.append(total_variation(shares(summed(pool[:len(one)])), shares(summed(pool[len(one):]))))
    return total_variation(shares(summed(one)), shares(summed(other))), sorted(dealt)[int(0.95 * len(dealt))]
