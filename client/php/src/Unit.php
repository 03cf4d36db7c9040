<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * One piece of work as the client knows it: what it was told, and when it began. The daemon knows the rest.
 */
final class Unit
{
    /** @var int CLOCK_MONOTONIC, ns: tells the daemon when begin() was called, and is unique in the process; 0: none yet */
    public $handle;
    /** @var int CLOCK_MONOTONIC, ns: when this object was made */
    private $begunNs;
    /** @var bool began with the request, whether begin() has adopted it or not */
    public $automatic;
    /** @var TraceContext|null null: automatic and not adopted */
    public $context;
    /** @var string|null what the well-known global was set to */
    public $text;

    public function __construct(int $handle, bool $automatic, ?TraceContext $context)
    {
        $this->handle = $handle;
        $this->begunNs = \hrtime(true);
        $this->automatic = $automatic;
        $this->context = $context;
        $this->text = $context === null ? null : $context->encode($handle);
    }

    public function type(): string
    {
        if ($this->context !== null && $this->context->unitType !== null) {
            return $this->context->unitType;
        }
        if (!$this->automatic) {
            return 'other';
        }

        return \PHP_SAPI === 'cli' || \PHP_SAPI === 'phpdbg' ? 'command' : 'http';
    }

    public function isSampled(): bool
    {
        return $this->context === null || $this->context->sampled;
    }

    public function traceId(): ?string
    {
        return $this->context === null ? null : $this->context->traceId;
    }

    public function spanId(): ?string
    {
        return $this->context === null ? null : $this->context->spanId;
    }

    /** Since begin(); for a unit that nobody began, since PHP took the request up. */
    public function durationNs(): int
    {
        if ($this->context !== null) {
            return \max(0, \hrtime(true) - $this->begunNs);
        }
        $started = $_SERVER['REQUEST_TIME_FLOAT'] ?? null;
        if (!\is_float($started) || !($started > 0)) {
            return 0;
        }
        $seconds = \microtime(true) - $started;

        // The wall clock may have been set meanwhile.
        return $seconds > 0 && $seconds < 1e9 ? (int) ($seconds * 1e9) : 0;
    }
}
