<?php
// SPDX-License-Identifier: MIT
// Internal functions called in a loop, and internal functions that call back: array_map, usort, preg_replace_callback.
// Everything is done once in left() and once in right(), which are alike. Legal stacks: tests/bench/truth/programs.py.
function left(array $list, string $text): int
{
    $a = array_map(function ($x) { // left map
        return abs($x) + 1;
    }, $list);
    usort($a, fn($x, $y) => $x <=> $y); // left order
    $s = preg_replace_callback('/\d+/', fn($m) => left_digits($m[0]), $text); // left match
    return crc32(strrev($s)) ^ array_sum($a);
}

function left_digits(string $digits): string
{
    return dechex((int)$digits);
}

function right(array $list, string $text): int
{
    $a = array_map(function ($x) { // right map
        return abs($x) + 1;
    }, $list);
    usort($a, fn($x, $y) => $x <=> $y); // right order
    $s = preg_replace_callback('/\d+/', fn($m) => right_digits($m[0]), $text); // right match
    return crc32(strrev($s)) ^ array_sum($a);
}

function right_digits(string $digits): string
{
    return dechex((int)$digits);
}

$list = [5, 3, 8, 1, 9, 2];
$text = 'a 1 b 22 c 333 d 4444';
for ($n = 0;;) {
    $n ^= left($list, $text);
    $n ^= right($list, $text);
}
