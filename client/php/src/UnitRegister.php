<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * Which unit is open in this process. One at a time: units don't nest.
 *
 * The daemon opens an automatic unit when a request begins, before any PHP code runs; so a new register holds one. The
 * first begin() adopts it, later ones begin units of their own, and a finish leaves nothing open. In a child made by
 * pcntl_fork() nothing is open: the parent's unit is the parent's.
 */
final class UnitRegister
{
    /** @var int */
    private $pid;
    /** @var Unit|null */
    private $open;
    /** @var int */
    private $lastHandle = 0;

    public function __construct()
    {
        $this->pid = ProcessId::current();
        $this->open = new Unit(0, true, null);
    }

    public function open(): ?Unit
    {
        $this->noticeFork();

        return $this->open;
    }

    /** The open unit's handle, 0 if none is. An automatic unit gets its handle when first asked, and keeps it. */
    public function openHandle(): int
    {
        $unit = $this->open();
        if ($unit === null) {
            return 0;
        }
        if ($unit->handle === 0) {
            $unit->handle = $this->nextHandle();
        }

        return $unit->handle;
    }

    /** Adopts the automatic unit, or abandons what is open and opens a new one. */
    public function begin(TraceContext $context): Unit
    {
        $this->noticeFork();
        $adopts = $this->open !== null && $this->open->context === null;
        if (!$adopts && $context->unitType === null) {
            // Said aloud, since the daemon's own default is the automatic unit's.
            $context->unitType = 'other';
        }
        $handle = $adopts ? $this->openHandle() : $this->nextHandle();
        $this->open = new Unit($handle, $adopts, $context);
        WellKnownGlobal::set((string) $this->open->text);

        return $this->open;
    }

    /** Takes the open unit out: $handle's, or with 0 whichever it is. Null: it isn't open. */
    public function finish(int $handle): ?Unit
    {
        $this->noticeFork();
        $unit = $this->open;
        if ($unit === null || ($handle !== 0 && $handle !== $unit->handle)) {
            return null;
        }
        $this->open = null;
        WellKnownGlobal::clear();

        return $unit;
    }

    private function noticeFork(): void
    {
        $pid = ProcessId::current();
        if ($pid === $this->pid) {
            return;
        }
        $this->pid = $pid;
        if ($this->open !== null) {
            $this->open = null;
            WellKnownGlobal::clear();
        }
    }

    private function nextHandle(): int
    {
        $this->lastHandle = \max(\hrtime(true), $this->lastHandle + 1);

        return $this->lastHandle;
    }
}
