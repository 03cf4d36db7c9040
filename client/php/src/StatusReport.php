<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * What status() returns: the extension's keys, with what they mean for a sampler that sits outside of PHP. What it has
 * no counterpart for (hooks, a timer signal, breadcrumbs) is there and says so.
 */
final class StatusReport
{
    private const HOOK_GROUPS = ['pdo', 'redis', 'curl', 'streams'];
    /** PHP_API_VERSION in main/php.h, which PHP code can't ask for. */
    private const PHP_API = [
        704 => 20190902, 800 => 20200930, 801 => 20210902, 802 => 20220829, 803 => 20230831, 804 => 20240924,
        805 => 20250925,
    ];

    /**
     * @param array<array-key, mixed>|null $answer the daemon's; null when there is none
     * @param string $why one line for people, used when there is no answer
     * @return array<string, mixed>
     */
    public static function build(UnitRegister $units, string $socket, bool $isOff, ?array $answer, string $why): array
    {
        $worker = self::map($answer['worker'] ?? null);
        $sampling = self::map($answer['sampling'] ?? null);
        $isTarget = $worker !== [];
        $suspended = ($worker['suspended'] ?? $sampling['suspended'] ?? null) === true;
        $accounting = self::map($worker['accounting'] ?? null);
        $unit = $isOff ? null : $units->open();
        // The automatic unit is the daemon's: where it doesn't sample this process, none is open.
        $isOpen = $unit !== null && ($unit->context !== null || $isTarget);

        return [
            'version' => Runtime::VERSION,
            'php_api' => self::PHP_API[\PHP_MAJOR_VERSION * 100 + \PHP_MINOR_VERSION] ?? 0,
            'enabled' => !$isOff,
            'thread_safe' => (bool) \PHP_ZTS,
            'debug' => (bool) \PHP_DEBUG,
            'profiler_enabled' => $isTarget,
            'profiler_running' => $isTarget && $isOpen && !$suspended,
            'profiler_status' => self::sentence($answer, $isTarget, $suspended, $why),
            'timer_backend' => $answer === null ? 'none' : 'cbox-profd (timerfd of another process)',
            'timer_cpu_time' => false,
            'timer_signal' => 0,
            'hooks' => 'none',
            'hooks_armed' => false,
            'crash_recorder' => 'off: this version of cbox-profd records no crashes',
            'crash_path' => null,
            'auto' => $isTarget,
            'unit_handle' => $isOpen ? $units->openHandle() : 0,
            'unit_automatic' => $isOpen && $unit->automatic,
            'profiler_samples' => Number::int($accounting['taken'] ?? null) + Number::int($accounting['unchanged'] ?? null),
            'profiler_dropped' => Number::int($accounting['unreadable'] ?? null),
            'arena_peak_bytes' => Number::int($worker['tree_peak_bytes'] ?? null),
            'breadcrumbs_written' => 0,
            'limits' => self::limits($worker, $sampling, self::map($answer['limits'] ?? null)),
            'hook_detail' => \array_fill_keys(
                self::HOOK_GROUPS,
                ['requested' => false, 'installed' => 0, 'unavailable' => 0, 'active' => false]
            ),
            'hooks_installed' => [],
            'available' => $answer !== null,
            'daemon' => [
                'version' => self::text($answer['version'] ?? null),
                'protocol' => $answer === null ? null : Client::PROTOCOL,
                'socket' => $socket,
            ],
        ];
    }

    /**
     * @param array<array-key, mixed>|null $answer
     */
    private static function sentence(?array $answer, bool $isTarget, bool $suspended, string $why): string
    {
        if ($answer === null) {
            return $why;
        }
        if ($suspended) {
            return 'sampling is suspended; `cbox-profd ctl resume` goes on';
        }
        if ($isTarget) {
            return 'ready';
        }
        $pid = ProcessId::current();
        foreach (self::map($answer['refusals'] ?? null) as $refusal) {
            if (\is_array($refusal) && ($refusal['pid'] ?? null) === $pid && \is_string($refusal['why'] ?? null)) {
                return $refusal['why'];
            }
        }

        return "the daemon does not sample this process ($pid): no pool of its configuration matches it, or it has not"
            . ' found it yet; see `cbox-profd doctor ' . $pid . '`';
    }

    /**
     * @param array<array-key, mixed> $worker
     * @param array<array-key, mixed> $sampling
     * @param array<array-key, mixed> $limits
     * @return array<string, int>
     */
    private static function limits(array $worker, array $sampling, array $limits): array
    {
        return [
            'period_us' => \intdiv(Number::int($worker['period_ns'] ?? $sampling['period_ns'] ?? null), 1000),
            'max_depth' => Number::int($sampling['max_depth'] ?? null),
            'max_frames' => Number::int($limits['max_frames'] ?? null),
            'max_nodes' => Number::int($limits['max_nodes'] ?? null),
            'breadcrumbs' => 0,
            'auto_max_ms' => \intdiv(Number::int($limits['auto_max_ns'] ?? null), 1000000),
        ];
    }

    /**
     * @param mixed $value
     * @return array<array-key, mixed>
     */
    private static function map($value): array
    {
        return \is_array($value) ? $value : [];
    }

    /**
     * @param mixed $value
     */
    private static function text($value): ?string
    {
        return \is_string($value) ? $value : null;
    }
}
