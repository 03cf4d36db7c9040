<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * Keeps PHP's warnings about a socket out of the application.
 *
 * The @ operator is not enough: it only lowers error_reporting(), the application's error handler is called all the
 * same, and many turn whatever they get into an exception. A handler of our own, put above theirs for as long as the
 * socket is touched, is seen by nobody and leaves error_get_last() as it was.
 */
final class Silence
{
    /**
     * @return mixed what $work returns
     */
    public static function during(callable $work)
    {
        \set_error_handler(static function (): bool {
            return true;
        });
        try {
            return $work();
        } finally {
            \restore_error_handler();
        }
    }
}
