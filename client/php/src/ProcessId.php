<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * The current process's id: how objects copied by pcntl_fork() notice that they are in another process.
 */
final class ProcessId
{
    /** 0 where getmypid() is disabled: forks go unnoticed there. */
    public static function current(): int
    {
        return \function_exists('getmypid') ? (int) \getmypid() : 0;
    }
}
