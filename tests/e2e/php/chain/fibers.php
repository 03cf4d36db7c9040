<?php
// SPDX-License-Identifier: MIT
// PHP 8.1 and newer: a fiber in a fiber, the inner one suspended once and resumed.
$outer = new Fiber(function () use ($job) {
    $inner = new Fiber(function (int $n) use ($job) {
        Fiber::suspend($n);
        return App\Chain\recursive($job, 3);
    });
    $inner->start(1);
    $inner->resume();
});
$outer->start();
return 0;
