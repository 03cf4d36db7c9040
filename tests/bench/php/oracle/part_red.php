<?php
// SPDX-License-Identifier: MIT
// Included by includes.php.
$red = function (int $n): int { // red
    return leaf($n + 1);
};
return $red($n) ^ leaf($n);
