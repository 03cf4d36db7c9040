<?php
// SPDX-License-Identifier: MIT
// Exceptions through frames: thrown some calls deep, passed by `finally`, caught further out; and destructors on the way.
// Once in left functions and once in right ones. Legal stacks: tests/bench/truth/programs.py.
class left_guard
{
    public function __destruct()
    {
        left_leaf(1);
    }
}

function left(int $n): int
{
    try {
        return left_down(4, $n);
    } catch (RuntimeException $e) {
        return left_leaf($e->getCode());
    }
}

function left_down(int $depth, int $n): int
{
    $guard = new left_guard();
    try {
        return $depth > 0 ? left_down($depth - 1, $n + 1) : left_throw($n);
    } finally {
        left_leaf($n);
    }
}

function left_throw(int $n): int
{
    throw new RuntimeException('left', $n);
}

function left_leaf(int $n): int
{
    return $n * 3 & 0xffff;
}

class right_guard
{
    public function __destruct()
    {
        right_leaf(1);
    }
}

function right(int $n): int
{
    try {
        return right_down(4, $n);
    } catch (RuntimeException $e) {
        return right_leaf($e->getCode());
    }
}

function right_down(int $depth, int $n): int
{
    $guard = new right_guard();
    try {
        return $depth > 0 ? right_down($depth - 1, $n + 1) : right_throw($n);
    } finally {
        right_leaf($n);
    }
}

function right_throw(int $n): int
{
    throw new RuntimeException('right', $n);
}

function right_leaf(int $n): int
{
    return $n * 3 & 0xffff;
}

for ($n = 0;;) {
    $n = left($n);
    $n = right($n);
}
