<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * Where the daemon is, how long to wait for it, and whether to bother at all: options given in code first, then the
 * environment (FPM: `env[CBOX_PROFD_SOCKET] = …` in the pool), then the defaults. A value that makes no sense counts as
 * not given.
 */
final class Settings
{
    public const DEFAULT_SOCKET = '/run/cbox-profd/profd.sock';
    public const MAX_BUDGET_MS = 60000;

    /**
     * @param array<array-key, mixed> $options
     */
    public static function socket(array $options): string
    {
        $given = $options['socket'] ?? null;
        if (!\is_string($given) || $given === '') {
            $given = \getenv('CBOX_PROFD_SOCKET');
        }

        return \is_string($given) && $given !== '' ? $given : self::DEFAULT_SOCKET;
    }

    /**
     * @param array<array-key, mixed> $options
     */
    public static function budgetNs(array $options, int $defaultMs): int
    {
        foreach ([$options['budget_ms'] ?? null, $defaultMs] as $ms) {
            if ((\is_int($ms) || \is_float($ms)) && $ms > 0 && $ms <= self::MAX_BUDGET_MS) {
                return (int) ($ms * 1e6);
            }
        }

        return 0;
    }

    /** CBOX_PROFD_BUDGET_MS, or the default. */
    public static function budgetMsFromEnvironment(int $defaultMs): int
    {
        $given = \getenv('CBOX_PROFD_BUDGET_MS');
        if (!\is_string($given) || $given === '' || \strspn($given, '0123456789') !== \strlen($given)) {
            return $defaultMs;
        }

        return (int) $given > 0 && (int) $given <= self::MAX_BUDGET_MS ? (int) $given : $defaultMs;
    }

    /** CBOX_PROFD=off switches the client off for good, whatever the code asks. */
    public static function isOff(): bool
    {
        $given = \getenv('CBOX_PROFD');

        return \is_string($given) && \in_array(\strtolower($given), ['off', '0', 'false', 'no'], true);
    }

    /** Null: no limit. */
    public static function memoryLimitBytes(): ?int
    {
        $limit = (string) \ini_get('memory_limit');
        $units = ['K' => 1024, 'M' => 1048576, 'G' => 1073741824];
        $bytes = (int) $limit * ($units[\strtoupper(\substr($limit, -1))] ?? 1);

        return $bytes > 0 ? $bytes : null;
    }
}
