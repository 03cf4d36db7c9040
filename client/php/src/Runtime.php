<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * What an application calls: begin a unit of work, finish it, see what it did.
 *
 * Nothing here throws, warns or waits longer than the budget. No daemon, a full or forbidden socket, a daemon that hangs
 * or talks nonsense: finish() gives a result of the same shape with `available` false and the reason under `error`.
 * (An exception that the application's own signal handler throws while one of these methods runs is the
 * application's, and passes through.)
 *
 * A process has one open unit, whichever Runtime object it was begun with; objects only carry options. To bind it to an
 * interface of yours, which it satisfies: `final class Profiler extends Runtime implements YourInterface {}`.
 */
class Runtime
{
    public const VERSION = '0.1.0';
    /** The time one request may lose to a daemon that does not answer, or one exchange with a daemon that does. */
    public const DEFAULT_BUDGET_MS = 20;

    /** JSON's numbers are exact up to here for every reader. */
    private const MAX_JSON_INTEGER = 9007199254740992;

    /** @var bool */
    private static $disabled = false;
    /** @var UnitRegister|null */
    private static $units;

    /** @var bool */
    private $isOff;
    /** @var string */
    private $socket;
    /** @var int */
    private $budgetNs;
    /** @var mixed */
    private $stackRows;

    /**
     * @param array{socket?: string, budget_ms?: int|float, stacks?: string} $options socket: the daemon's; budget_ms:
     *     see DEFAULT_BUDGET_MS; stacks: ProfileShape::TIMES (default) or ProfileShape::TRIPLES, the form of a profile's
     *     call tree. Without them CBOX_PROFD_SOCKET and CBOX_PROFD_BUDGET_MS hold.
     */
    public function __construct(array $options = [])
    {
        // Handles are 64-bit integers.
        $this->isOff = \PHP_INT_SIZE < 8 || Settings::isOff();
        $this->socket = Settings::socket($options);
        $this->budgetNs = Settings::budgetNs($options, Settings::budgetMsFromEnvironment(self::DEFAULT_BUDGET_MS));
        $this->stackRows = $options['stacks'] ?? null;
        self::units();
    }

    /** Switches all Runtime objects of this process off: begin() gives 0, finish() []. An open unit is dropped. */
    public static function disable(bool $disabled = true): void
    {
        self::$disabled = $disabled;
        if ($disabled) {
            self::units()->finish(0);
        }
    }

    /** Whether a daemon is there that this client can talk to. Asks it, once a request. */
    public function available(): bool
    {
        if ($this->isSwitchedOff()) {
            return false;
        }
        try {
            DaemonLink::to($this->socket)->hello($this->budgetNs);

            return true;
        } catch (ClientException $failure) {
            return false;
        }
    }

    /** This client's version; null when there is no daemon. The daemon's own is in status()['daemon']. */
    public function version(): ?string
    {
        return $this->available() ? self::VERSION : null;
    }

    /**
     * For a diagnostics page: what runs, what doesn't, and why (`profiler_status`).
     *
     * @return array<string, mixed>
     */
    public function status(): array
    {
        $answer = null;
        $why = 'switched off in this process (CBOX_PROFD=off or Runtime::disable())';
        if (!$this->isSwitchedOff()) {
            try {
                $answer = DaemonLink::to($this->socket)->ask('status', [], $this->budgetNs);
            } catch (ClientException $failure) {
                $why = $failure->getMessage();
            }
        }

        return StatusReport::build(self::units(), $this->socket, $this->isSwitchedOff(), $answer, $why);
    }

    /**
     * Begins a unit of work, or adopts the one that began with the request. Sets one variable and talks to nobody.
     *
     * @param array<array-key, mixed> $context trace_id (32 hex), span_id (16 hex), unit (http, queue, command,
     *     schedule), sampled, profile (bool), period_us, max_depth (int), name (of the route or job)
     * @return int the handle for finish(); 0 only when switched off
     */
    public function begin(array $context = []): int
    {
        return $this->isSwitchedOff() ? 0 : self::units()->begin(TraceContext::fromArray($context))->handle;
    }

    /**
     * Ends the unit and returns what it did; [] when $handle is not the open unit's. 0 stands for whichever is open,
     * the automatic one too.
     *
     * @return array<string, mixed>
     */
    public function finish(int $handle, bool $includeProfile = false, bool $includeStacks = false): array
    {
        if ($this->isSwitchedOff()) {
            return [];
        }
        $unit = self::units()->finish($handle);
        if ($unit === null) {
            return [];
        }
        try {
            $answer = DaemonLink::to($this->socket)->ask('finish', [
                'handle' => self::handleForJson($unit),
                'profile' => $includeProfile,
                'stacks' => $includeProfile && $includeStacks,
            ] + ($unit->text === null ? [] : ['context' => $unit->text]), $this->budgetNs);

            return UnitResult::fromAnswer(
                $unit,
                $answer,
                $includeProfile,
                new ProfileShape($includeStacks, $this->stackRows)
            );
        } catch (ClientException $failure) {
            // Nobody began a unit, and the daemon says that none began by itself.
            if ($unit->context === null && $failure->name() === 'no_unit') {
                return [];
            }

            return UnitResult::unavailable($unit, $failure->getMessage());
        }
    }

    /**
     * Crash records, each handed over once. The daemon has none yet.
     *
     * @return array<int, array<string, mixed>>
     */
    public function drainCrashes(int $max = 32): array
    {
        return [];
    }

    private function isSwitchedOff(): bool
    {
        return $this->isOff || self::$disabled;
    }

    /**
     * @return int|string
     */
    private static function handleForJson(Unit $unit)
    {
        if ($unit->context === null) {
            return 0;
        }

        return $unit->handle > self::MAX_JSON_INTEGER ? (string) $unit->handle : $unit->handle;
    }

    private static function units(): UnitRegister
    {
        return self::$units ?? (self::$units = new UnitRegister());
    }
}
