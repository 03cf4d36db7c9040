<?php
// SPDX-License-Identifier: MIT
// Recursion of any depth up to 18, nothing else.
function fib(int $n): int
{
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

for (;;) {
    fib(18);
}
