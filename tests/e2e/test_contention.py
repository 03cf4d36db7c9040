# SPDX-License-Identifier: MIT
"""Whose CPU time it is where there are more processes than CPUs: those who are woken up often queue often, and do not work meanwhile."""
import json
import math

import pytest

from support import balance, cli, load, php_builds

# 2 ms of work; then twice 0.5 ms of work after a sleep, at whose end it queues. The truth is the process's own, by getrusage().
PROGRAM = """
function used_us(): int
{
    $used = getrusage();
    return ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) * 1000000 + $used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec'];
}

function work(): void
{
    for ($i = 0, $x = 1; $i < 120000; $i++) {
        $x = ($x * 3 + 1) & 0xffff;
    }
}

function woken(): void
{
    for ($turn = 0; $turn < 2; $turn++) {
        usleep(300);
        for ($i = 0, $x = 1; $i < 30000; $i++) {
            $x = ($x * 3 + 1) & 0xffff;
        }
    }
}

$used_us = ['work' => 0, 'woken' => 0];
$end = hrtime(true) + SECONDS * 1000000000;
while (hrtime(true) < $end) {
    foreach (array_keys($used_us) as $function) {
        $before_us = used_us();
        $function();
        $used_us[$function] += used_us() - $before_us;
    }
}
file_put_contents('TRUTH', json_encode($used_us));
"""


def below(profile, function, column):
    """The sum of a column over the nodes at or below a function. Parents come before their children."""
    inside = []
    for parent, frame, *_ in profile["nodes"]:
        inside.append(profile["frames"][frame]["function"] == function or (len(inside) > 0 and inside[parent]))
    return sum(node[column] for node, counts in zip(profile["nodes"], inside) if counts)


def scatter_points(share, profile):
    """Three standard errors of a share of the CPU in percent, by the samples that found the process on one, or the turns of some
    3 ms that it had, if these were fewer; and twelve points for what a sampler on the same CPU does not see of
    each sleep, and of who was driven off by the last tick (docs/DECISIONS.md, 15): at 1 kHz up to 15 were seen."""
    looks = min(profile["total"]["cpu_ns"] / profile["period_ns"], profile["total"]["cpu_ns"] / 3_000_000)
    return 12 + 300 * math.sqrt(share / 100 * (1 - share / 100) / looks)


# It gets a quarter of a CPU here, if nobody else wants it: 200 samples find it on one at 100 Hz, and 2,000 at 1 kHz some 700 turns of
# it. That makes 22 points and 17. If all samples that find it ready counted, 80 % of the CPU would be woken()'s at either rate.
@pytest.mark.parametrize("rate", [100, 1000])
def test_cpu_time_is_of_who_was_on_a_cpu_and_not_of_who_queued(rate, place):
    truth, seconds = place / "truth", 8
    code = PROGRAM.replace("SECONDS", str(seconds)).replace("TRUTH", str(truth))
    with load.hogs(6), load.php_cli(php_builds.DEBIAN, place, code) as process:
        profile = json.loads(cli.ok("attach", process.pid, "--rate", rate, "--format", "json", seconds=60).stdout)
    used_us = json.loads(truth.read_text())
    share = 100 * used_us["woken"] / sum(used_us.values())
    assert 20 < share < 60
    cpu_ns = {function: below(profile, function, 5) for function in used_us}
    assert 100 * cpu_ns["woken"] / sum(cpu_ns.values()) == pytest.approx(share, abs=scatter_points(share, profile))
    assert profile["total"]["queue_ns"] > profile["total"]["cpu_ns"], "there was to be a crowd"
    balance.of(profile["accounting"])
