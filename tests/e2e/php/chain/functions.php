<?php
// SPDX-License-Identifier: MIT
namespace App\Chain;

function evaluated(Job $job)
{
    return eval('
        return (function () use ($job) {
            return \App\Chain\required($job);
        })();
    ');
}

function required(Job $job)
{
    if ($job->gate === '') {
        return iterated($job);
    }
    return require_once __DIR__ . '/required.php';
}

function iterated(Job $job)
{
    foreach ((new Kernel)->generate($job) as $value) {
        $last = $value;
    }
    return $last;
}

function inner(Job $job)
{
    yield 3;
    yield from [31, 32];
    $by_hand = by_hand($job);
    $by_hand->current();
}

function by_hand(Job $job)
{
    $numbers = [2, 1];
    usort($numbers, function ($a, $b) use ($job) {
        return $job->fibers ? fibers($job) : recursive($job, 3);
    });
    yield $numbers;
}

function fibers(Job $job)
{
    return require __DIR__ . '/fibers.php';
}

function recursive(Job $job, int $n)
{
    if ($n > 0) {
        return recursive($job, $n - 1);
    }
    leaf($job);
    return 0;
}

function leaf(Job $job)
{
    if ($job->gate === '') {
        return;
    }
    $trace = \debug_backtrace(\DEBUG_BACKTRACE_IGNORE_ARGS);
    \file_put_contents($job->out, \json_encode(['pid' => \getmypid(), 'file' => __FILE__, 'line' => __LINE__ + 3, 'trace' => $trace]));
    $socket = \stream_socket_client('unix://' . $job->gate);
    \fwrite($socket, '!');
    \fread($socket, 1);
}
