<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * Integers out of JSON. The daemon's numbers are integers, but large ones arrive as floats ("1.7e+18").
 */
final class Number
{
    /**
     * @param mixed $value
     */
    public static function nullableInt($value): ?int
    {
        if (\is_int($value)) {
            return $value;
        }
        // ±2^63; NAN compares false.
        if (\is_float($value) && $value > -9.2e18 && $value < 9.2e18) {
            return (int) $value;
        }

        return null;
    }

    /**
     * @param mixed $value
     */
    public static function int($value): int
    {
        return self::nullableInt($value) ?? 0;
    }
}
