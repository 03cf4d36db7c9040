<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * The profile inside a unit's result. One that is not of its shape is refused whole, as garbled: consumers index frames
 * by ids and nodes by position, and half a profile would be a wrong one.
 *
 * Two shapes of `stacks`. The extension's rows are [parent_node, frame_id, self_samples], and its consumers drop rows of
 * any other length. The daemon knows time as well: [parent_node, frame_id, self_samples, wall_ns, cpu_ns]. As triples,
 * the two times stand beside the rows, under `stack_times`.
 */
final class ProfileShape
{
    public const TIMES = 'times';
    public const TRIPLES = 'triples';

    private const ROW_INTEGERS = 5;
    private const NUMBERS = [
        'sample_count', 'period_ns', 'dropped', 'deferred_samples', 'deferred_events', 'max_deferred', 'timer_overruns',
    ];

    /** @var bool */
    private $withStacks;
    /** @var bool */
    private $triples;

    /**
     * @param mixed $rows TIMES or TRIPLES; anything else is TIMES
     */
    public function __construct(bool $withStacks, $rows)
    {
        $this->withStacks = $withStacks;
        $this->triples = $rows === self::TRIPLES;
    }

    /**
     * @param mixed $given
     * @return array<string, mixed>|null null: no profile, or one without samples
     */
    public function profile($given): ?array
    {
        if ($given === null) {
            return null;
        }
        if (!\is_array($given) || !self::isListOfArrays($given['frames'] ?? null)
            || !self::isListOfArrays($given['top_functions'] ?? null)) {
            throw self::garbled();
        }
        $profile = [];
        foreach (self::NUMBERS as $key) {
            $profile[$key] = Number::int($given[$key] ?? null);
        }
        if ($profile['sample_count'] <= 0) {
            return null;
        }
        $profile['clock'] = ($given['clock'] ?? null) === 'cpu' ? 'cpu' : 'wall';
        $profile['frames'] = self::frames($given['frames']);
        $profile['top_functions'] = self::topFunctions($given['top_functions'], \count($profile['frames']));
        $profile['stacks'] = null;
        if ($this->withStacks) {
            $profile['stacks'] = self::rows($given['stacks'] ?? null, \count($profile['frames']));
            if ($this->triples) {
                $profile = self::asTriples($profile);
            }
        }

        return $profile + $given;
    }

    /**
     * @param array<int, array<array-key, mixed>> $given
     * @return array<int, array<string, mixed>>
     */
    private static function frames(array $given): array
    {
        $frames = [];
        foreach ($given as $frame) {
            if (!\is_string($frame['function'] ?? null)) {
                throw self::garbled();
            }
            $file = $frame['file'] ?? null;
            $frames[] = [
                'function' => $frame['function'],
                'file' => \is_string($file) && $file !== '' ? $file : null,
                'line' => Number::int($frame['line'] ?? null),
            ] + $frame;
        }

        return $frames;
    }

    /**
     * @param array<int, array<array-key, mixed>> $given
     * @return array<int, array<string, mixed>>
     */
    private static function topFunctions(array $given, int $frameCount): array
    {
        foreach ($given as $function) {
            $frame = $function['frame_id'] ?? null;
            if (!\is_int($frame) || $frame < 0 || $frame >= $frameCount || !\is_int($function['samples'] ?? null)) {
                throw self::garbled();
            }
        }

        return $given;
    }

    /**
     * Parents come before their children, so that no reader of the rows can run in a circle.
     *
     * @param mixed $rows
     * @return array<int, array<int, int>>
     */
    private static function rows($rows, int $frameCount): array
    {
        if (!self::isListOfArrays($rows)) {
            throw self::garbled();
        }
        foreach ($rows as $position => $row) {
            for ($i = 0; $i < self::ROW_INTEGERS; $i++) {
                $number = Number::nullableInt($row[$i] ?? null);
                if ($number === null) {
                    throw self::garbled();
                }
                if ($number !== $row[$i]) {
                    $rows[$position][$i] = $number;
                }
            }
            if ($row[0] < 0 || $row[0] > $position || $row[1] < 0 || $row[1] >= $frameCount) {
                throw self::garbled();
            }
        }

        return $rows;
    }

    /**
     * @param array<string, mixed> $profile
     * @return array<string, mixed>
     */
    private static function asTriples(array $profile): array
    {
        $profile['stack_times'] = [];
        foreach ($profile['stacks'] as $position => $row) {
            $profile['stacks'][$position] = [$row[0], $row[1], $row[2]];
            $profile['stack_times'][] = [$row[3], $row[4]];
        }

        return $profile;
    }

    /**
     * @param mixed $value
     */
    private static function isListOfArrays($value): bool
    {
        if (!\is_array($value)) {
            return false;
        }
        $next = 0;
        foreach ($value as $key => $element) {
            if ($key !== $next++ || !\is_array($element)) {
                return false;
            }
        }

        return true;
    }

    private static function garbled(): ClientException
    {
        return new ClientException(ClientException::GARBLED, "the profile in the daemon's answer is not of its shape");
    }
}
