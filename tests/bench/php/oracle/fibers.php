<?php
// SPDX-License-Identifier: MIT
// Fibers: two that live for ever and take turns, and short ones that are started, suspended at depth and ended.
// Legal stacks: tests/bench/truth/programs.py.
function left(int $n): int
{
    for (;;) {
        $n = left_work(3, $n);
    }
}

function left_work(int $depth, int $n): int
{
    return $depth > 0 ? left_work($depth - 1, $n + 1) : left_pause($n);
}

function left_pause(int $n): int
{
    for ($i = 0; $i < 10; $i++) {
        $n = $n * 3 & 0xffff;
    }
    return Fiber::suspend($n);
}

function right(int $n): int
{
    for (;;) {
        $n = right_work(3, $n);
    }
}

function right_work(int $depth, int $n): int
{
    return $depth > 0 ? right_work($depth - 1, $n + 1) : right_pause($n);
}

function right_pause(int $n): int
{
    for ($i = 0; $i < 10; $i++) {
        $n = $n * 3 & 0xffff;
    }
    return Fiber::suspend($n);
}

function brief(int $n): int
{
    $fiber = new Fiber(function (int $n): int { // brief
        return $n + brief_pause($n);
    });
    $n ^= $fiber->start($n);
    $fiber->resume(1);
    return $n + $fiber->getReturn();
}

function brief_pause(int $n): int
{
    return Fiber::suspend($n);
}

$left = new Fiber('left');
$right = new Fiber('right');
$n = $left->start(1) ^ $right->start(1);
for (;;) {
    for ($i = 0; $i < 20; $i++) {
        $n ^= $left->resume($n);
        $n ^= $right->resume($n);
    }
    $n ^= brief($n & 0xff);
}
