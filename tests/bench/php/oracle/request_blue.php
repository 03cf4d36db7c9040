<?php
// SPDX-License-Identifier: MIT
// A short request (a millisecond or so), by turns with the other of its kind: same shape, same lengths, other names, so
// that without opcache one's functions take the places in memory that were the other's a moment ago.
function blue_one(int $n): int
{
    return blue_two($n) + 1;
}

function blue_two(int $n): int
{
    return blue_end($n) + 1;
}

function blue_end(int $n): int
{
    for ($i = 0; $i < 50; $i++) {
        $n = $n * 3 & 0xffff;
    }
    return $n;
}

for ($n = $j = 0; $j < 1000; $j++) {
    $n = blue_one($n);
}
