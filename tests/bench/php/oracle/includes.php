<?php
// SPDX-License-Identifier: MIT
// Files included in a loop (without opcache compiled each time, at addresses used before), and code that is eval()'d.
// Legal stacks: tests/bench/truth/programs.py.
function take(string $file, int $n): int
{
    return include $file;
}

function evaluate(string $code, int $n): int
{
    return eval($code);
}

function leaf(int $n): int
{
    for ($i = 0; $i < 20; $i++) {
        $n = $n * 3 & 0xffff;
    }
    return $n;
}

for ($n = 0;;) {
    $n ^= take(__DIR__ . '/part_red.php', $n);
    $n ^= take(__DIR__ . '/part_blue.php', $n);
    $n ^= evaluate('return leaf($n + 1);', $n);
}
