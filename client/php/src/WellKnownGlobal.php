<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * $GLOBALS['__cbox_profd'], the one string that the daemon reads in this process's memory to know what work is being
 * done. It is replaced whole and never edited, so that the daemon finds the old text or the new one and nothing between.
 */
final class WellKnownGlobal
{
    public const NAME = '__cbox_profd';

    public static function set(string $text): void
    {
        try {
            $GLOBALS[self::NAME] = $text;
        } catch (\Throwable $odd) {
            // The application put something there whose destructor throws, or a reference to a property of another
            // type. It goes.
            self::clear();
            $GLOBALS[self::NAME] = $text;
        }
    }

    public static function clear(): void
    {
        try {
            unset($GLOBALS[self::NAME]);
        } catch (\Throwable $fromDestructor) {
            // The variable is gone all the same.
        }
    }
}
