<?php
// SPDX-License-Identifier: MIT
// Calls some 50 functions in any order, 4 to 10 deep, for ?ms= milliseconds: each sample finds a path of its own.
mt_srand(getmypid() + hrtime(true));

function at_the_end(): int
{
    for ($i = 0, $x = 1; $i < 300; $i++) {
        $x = ($x * 3 + 1) & 0xffff;
    }
    return $x;
}

for ($i = 0; $i < 50; $i++) {
    eval("function f$i(int \$more): int { return \$more > 0 ? ('f' . mt_rand(0, 49))(\$more - 1) : at_the_end(); }");
}

$end = hrtime(true) + (int)$_GET['ms'] * 1000000;
while (hrtime(true) < $end) {
    f0(mt_rand(3, 9));
}
