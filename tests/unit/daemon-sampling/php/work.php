<?php
// SPDX-License-Identifier: MIT
// Works for 4 ms and sleeps for 6, for two minutes: a test that is killed leaves nothing behind for long.

function hot(): void
{
    $until = hrtime(true) + 4000000;
    while (hrtime(true) < $until) {
    }
}

function nap(): void
{
    usleep(6000);
}

echo "READY\n";
$end = time() + 120;
while (time() < $end) {
    hot();
    nap();
}
