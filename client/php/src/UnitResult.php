<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * What finish() returns: every key that consumers of the cbox_telemetry extension rely on, with its type, whether the
 * daemon answered or not. Keys the daemon adds are handed on.
 */
final class UnitResult
{
    private const UNIT_TYPES = ['http', 'queue', 'command', 'schedule', 'other'];
    private const COUNTERS = [
        'profiler.samples' => 0,
        'profiler.dropped' => 0,
        'profiler.deferred_samples' => 0,
        'profiler.deferred_events' => 0,
        'profiler.max_deferred' => 0,
        'profiler.timer_overruns' => 0,
        'profiler.period_ns' => 0,
        'gc.runs' => 0,
        'gc.collected' => 0,
        'ops.overflow' => 0,
        'breadcrumbs.written_total' => 0,
        'arena.peak_bytes_total' => 0,
        'profiler.frame_capacity_hits' => 0,
        'profiler.node_capacity_hits' => 0,
        'profiler.capped' => false,
        'profiler.frames' => 0,
        'profiler.nodes' => 0,
    ];

    /**
     * @param string $why one line for people
     * @return array<string, mixed>
     */
    public static function unavailable(Unit $unit, string $why): array
    {
        return [
            'duration_ns' => $unit->durationNs(),
            'unit' => $unit->type(),
            'trace_id' => $unit->traceId(),
            'span_id' => $unit->spanId(),
            'sampled' => $unit->isSampled(),
            'profiling' => false,
            'automatic' => $unit->automatic,
            'operations' => [],
            'waits' => [],
            'counters' => self::COUNTERS,
            'profile' => null,
            'available' => false,
            'error' => $why,
        ];
    }

    /**
     * @param array<array-key, mixed> $answer the daemon's
     * @return array<string, mixed>
     */
    public static function fromAnswer(Unit $unit, array $answer, bool $withProfile, ProfileShape $shape): array
    {
        $durationNs = Number::nullableInt($answer['duration_ns'] ?? null);
        $type = $answer['unit'] ?? null;
        if ($durationNs === null || !\in_array($type, self::UNIT_TYPES, true)) {
            throw new ClientException(ClientException::GARBLED, "the daemon's answer is not the result of a unit");
        }
        $profiling = ($answer['profiling'] ?? null) === true;
        $profile = $withProfile && $profiling ? $shape->profile($answer['profile'] ?? null) : null;

        return [
            'duration_ns' => $durationNs,
            'unit' => $type,
            'trace_id' => self::nonEmpty($answer['trace_id'] ?? null),
            'span_id' => self::nonEmpty($answer['span_id'] ?? null),
            'sampled' => ($answer['sampled'] ?? $unit->isSampled()) === true,
            'profiling' => $profiling,
            'automatic' => ($answer['automatic'] ?? $unit->automatic) === true,
            'operations' => self::operations($answer['operations'] ?? null),
            'waits' => \is_array($answer['waits'] ?? null) ? $answer['waits'] : [],
            'counters' => self::counters($answer['counters'] ?? null),
            'profile' => $profile,
            'available' => true,
            'error' => null,
        ] + $answer;
    }

    /**
     * @param mixed $value
     */
    private static function nonEmpty($value): ?string
    {
        return \is_string($value) && $value !== '' ? $value : null;
    }

    /**
     * @param mixed $given
     * @return array<string, array<string, mixed>>
     */
    private static function operations($given): array
    {
        $operations = [];
        foreach (\is_array($given) ? $given : [] as $name => $operation) {
            $count = \is_array($operation) ? Number::int($operation['count'] ?? null) : 0;
            if ($count > 0) {
                $operations[(string) $name] = [
                    'count' => $count,
                    'total_ns' => Number::int($operation['total_ns'] ?? null),
                    'max_ns' => Number::int($operation['max_ns'] ?? null),
                ] + $operation;
            }
        }

        return $operations;
    }

    /**
     * Integers and, for profiler.capped, a bool: consumers drop what is neither.
     *
     * @param mixed $given
     * @return array<string, int|bool>
     */
    private static function counters($given): array
    {
        $counters = self::COUNTERS;
        foreach (\is_array($given) ? $given : [] as $name => $value) {
            if ($name === 'profiler.capped') {
                $counters[$name] = $value === true;
            } else {
                $counters[(string) $name] = \is_bool($value) ? $value : Number::int($value);
            }
        }

        return $counters;
    }
}
