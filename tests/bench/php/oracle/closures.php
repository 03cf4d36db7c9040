<?php
// SPDX-License-Identifier: MIT
// Closures made anew in every round (their memory is used again and again), bound ones, first-class callables, __invoke.
// Three kinds of the same work. Legal stacks: tests/bench/truth/programs.py.
class Holder
{
    private int $seed = 3;

    public function __invoke(int $n): int
    {
        return gamma_leaf($n) + $this->seed;
    }
}

function alpha_leaf(int $n): int
{
    for ($i = 0; $i < 8; $i++) {
        $n = $n * 3 & 0xffff;
    }
    return $n;
}

function beta_leaf(int $n): int
{
    for ($i = 0; $i < 8; $i++) {
        $n = $n * 3 & 0xffff;
    }
    return $n;
}

function gamma_leaf(int $n): int
{
    for ($i = 0; $i < 8; $i++) {
        $n = $n * 3 & 0xffff;
    }
    return $n;
}

function alpha(int $n): int
{
    $outer = function (int $n) { // alpha outer
        $inner = fn(int $m) => alpha_leaf($m + $n); // alpha inner
        return $inner($n);
    };
    return $outer($n);
}

function beta(int $n): int
{
    $bound = Closure::bind(function (int $n): int { // beta
        return beta_leaf($n) + $this->seed;
    }, new Holder(), Holder::class);
    return $bound($n);
}

function gamma(int $n): int
{
    $holder = new Holder();
    $callable = gamma_leaf(...);
    return $holder($n) + $callable($n);
}

for ($n = 0;;) {
    $n ^= alpha($n);
    $n ^= beta($n);
    $n ^= gamma($n);
}
