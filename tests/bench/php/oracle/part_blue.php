<?php
// SPDX-License-Identifier: MIT
// Included by includes.php.
$blue = function (int $n): int { // blue
    return leaf($n + 1);
};
return $blue($n) ^ leaf($n);
