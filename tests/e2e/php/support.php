<?php
// SPDX-License-Identifier: MIT
// What the test scripts share. Every PHP warning is written down: the client must never cause one.
$warnings = [];
set_error_handler(function (int $level, string $message, string $file, int $line) use (&$warnings): bool {
    $warnings[] = "$message in $file:$line";
    return true;
});

require __DIR__ . '/../client/autoload.php';

/** CPU time of this process so far, exact: the kernel brings it up to date when a process asks for its own. */
function cpu_ns(): int
{
    $usage = getrusage();
    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1000000000
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) * 1000;
}

/** Answers the request with what the script found out. */
function answer(array $found): void
{
    global $warnings;
    echo json_encode($found + ['pid' => getmypid(), 'warnings' => $warnings], JSON_PARTIAL_OUTPUT_ON_ERROR);
}
