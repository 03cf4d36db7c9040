<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * A moment on the monotonic clock after which nobody waits any longer.
 *
 * One deadline goes through connect, write and all reads of an exchange, so that their sum is bounded and not each of
 * them: a peer that sends a byte just before every time-out gains nothing.
 */
final class Deadline
{
    /** @var int */
    private $atNs;

    private function __construct(int $atNs)
    {
        $this->atNs = $atNs;
    }

    public static function after(int $ns): self
    {
        return new self(\hrtime(true) + $ns);
    }

    /** 0 once it has passed, never negative. */
    public function remainingNs(): int
    {
        return \max(0, $this->atNs - \hrtime(true));
    }

    public function hasPassed(): bool
    {
        return $this->remainingNs() === 0;
    }
}
