<?php
// SPDX-License-Identifier: MIT
// Generators: foreach over two levels of `yield from`, next() and send() by hand, generators that end and are made anew.
// Everything is done once in left functions and once in right ones, nearly. Legal stacks: tests/bench/truth/programs.py.
function left_inner(int $n)
{
    for ($i = 0; $i < 5; $i++) {
        yield left_leaf($n + $i);
    }
    return $n;
}

function left_middle(int $n)
{
    yield left_leaf($n);
    yield yield from left_inner($n + 1);
}

function left_outer(int $n)
{
    yield from left_middle($n);
    yield left_leaf($n);
}

function left_echo()
{
    for ($got = 0;;) {
        $got = yield left_leaf((int)$got);
    }
}

function left_leaf(int $n): int
{
    return $n * 3 & 0xffff;
}

function left_ask(Generator $shared): int
{
    $shared->next();
    return 1;
}

function left(int $n, Generator $shared): int
{
    $n ^= left_ask($shared);
    foreach (left_outer($n) as $x) {
        $n ^= $x;
    }
    $echo = left_echo();
    $n ^= $echo->current();
    $n ^= $echo->send($n);
    $echo->next();
    return $n;
}

function right_inner(int $n)
{
    for ($i = 0; $i < 5; $i++) {
        yield right_leaf($n + $i);
    }
    return $n;
}

function right_middle(int $n)
{
    yield right_leaf($n);
    yield yield from right_inner($n + 1);
}

function right_outer(int $n)
{
    yield from right_middle($n);
    yield right_leaf($n);
}

function right_echo()
{
    for ($got = 0;;) {
        $got = yield right_leaf((int)$got);
    }
}

function right_leaf(int $n): int
{
    return $n * 3 & 0xffff;
}

function right_asks(Generator $shared): int
{
    return right_ask($shared) + 1;
}

function right_ask(Generator $shared): int
{
    $shared->next();
    return 1;
}

function right(int $n, Generator $shared): int
{
    $n ^= right_asks($shared);
    foreach (right_outer($n) as $x) {
        $n ^= $x;
    }
    $echo = right_echo();
    $n ^= $echo->current();
    $n ^= $echo->send($n);
    $echo->next();
    return $n;
}

function shared()
{
    for ($n = 0;; $n++) {
        yield $n;
    }
}

$shared = shared();
for ($n = 0;;) {
    $n = left($n & 0xffff, $shared);
    $n = right($n & 0xffff, $shared);
}
