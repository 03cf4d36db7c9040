<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * What begin() is told about a unit, checked, and its form in the well-known global:
 *
 *     00-<32 hex trace>-<16 hex span>-<2 hex flags>[;u=http][;h=<handle>][;p=0|1][;r=<period_us>][;d=<max_depth>][;n=<name>]
 *
 * Values of an odd type count as absent and are never converted: converting is what emits warnings (arrays, NAN) and
 * runs the application's code (__toString).
 */
final class TraceContext
{
    private const UNIT_TYPES = ['http', 'queue', 'command', 'schedule'];
    private const NO_TRACE_ID = '00000000000000000000000000000000';
    private const NO_SPAN_ID = '0000000000000000';
    private const HEX_DIGITS = '0123456789abcdefABCDEF';
    private const MIN_PERIOD_US = 100;
    private const MAX_PERIOD_US = 100000;
    /** The daemon's own highest limit; what it is configured to may be less, and then that holds. */
    private const MAX_DEPTH = 1024;
    /** TRACE_CONTEXT_MAX_NAME_BYTES in reader/trace_context.h */
    private const MAX_NAME_BYTES = 128;

    /** @var string|null */
    public $traceId;
    /** @var string|null */
    public $spanId;
    /** @var string|null null: not given */
    public $unitType;
    /** @var bool */
    public $sampled;
    /** @var bool */
    public $profile;
    /** @var int|null */
    public $periodUs;
    /** @var int|null */
    public $maxDepth;
    /** @var string|null the route, the job, the command: no ids in it, please */
    public $name;

    private function __construct()
    {
    }

    /**
     * @param array<array-key, mixed> $context
     */
    public static function fromArray(array $context): self
    {
        $self = new self();
        $self->traceId = self::hex($context['trace_id'] ?? null, 32);
        $self->spanId = self::hex($context['span_id'] ?? null, 16);
        $self->unitType = self::unitType($context['unit'] ?? null);
        $self->sampled = self::truth($context['sampled'] ?? null);
        $self->profile = self::truth($context['profile'] ?? null);
        $self->periodUs = self::clamp($context['period_us'] ?? null, self::MIN_PERIOD_US, self::MAX_PERIOD_US);
        $self->maxDepth = self::clamp($context['max_depth'] ?? null, 1, self::MAX_DEPTH);
        $self->name = self::name($context['name'] ?? null);

        return $self;
    }

    public function encode(int $handle): string
    {
        $text = '00-' . ($this->traceId ?? self::NO_TRACE_ID) . '-' . ($this->spanId ?? self::NO_SPAN_ID)
            . ($this->sampled ? '-01' : '-00');
        if ($this->unitType !== null) {
            $text .= ';u=' . $this->unitType;
        }
        $text .= ';h=' . $handle;
        if (!$this->profile) {
            $text .= ';p=0';
        }
        if ($this->periodUs !== null) {
            $text .= ';r=' . $this->periodUs;
        }
        if ($this->maxDepth !== null) {
            $text .= ';d=' . $this->maxDepth;
        }
        if ($this->name !== null) {
            $text .= ';n=' . $this->name;
        }

        return $text;
    }

    /**
     * @param mixed $value
     */
    private static function hex($value, int $digits): ?string
    {
        if (!\is_string($value) || \strlen($value) !== $digits || \strspn($value, self::HEX_DIGITS) !== $digits) {
            return null;
        }

        return \trim($value, '0') === '' ? null : \strtolower($value);
    }

    /**
     * @param mixed $value
     */
    private static function unitType($value): ?string
    {
        if (!\is_string($value)) {
            return null;
        }

        return \in_array($value, self::UNIT_TYPES, true) ? $value : 'other';
    }

    /**
     * The extension's notion: integers and strings have PHP's truth, anything else but a bool is absent, so true.
     *
     * @param mixed $value
     */
    private static function truth($value): bool
    {
        return \is_bool($value) || \is_int($value) || \is_string($value) ? (bool) $value : true;
    }

    /**
     * @param mixed $value
     */
    private static function clamp($value, int $min, int $max): ?int
    {
        return \is_int($value) ? \max($min, \min($max, $value)) : null;
    }

    /**
     * UTF-8 without control characters and without the field separator; what is not becomes '?'.
     *
     * @param mixed $value
     */
    private static function name($value): ?string
    {
        if (!\is_string($value) || $value === '') {
            return null;
        }
        if (\strlen($value) > self::MAX_NAME_BYTES) {
            // Not inside a character: its first byte is at most three back.
            $bytes = self::MAX_NAME_BYTES;
            while ($bytes > self::MAX_NAME_BYTES - 3 && (\ord($value[$bytes]) & 0xc0) === 0x80) {
                $bytes--;
            }
            $value = \substr($value, 0, $bytes);
        }

        // PCRE warns once where its JIT may not allocate memory.
        return Silence::during(static function () use ($value): ?string {
            if (\preg_match('//u', $value) !== 1) {
                $value = (string) \preg_replace('/[\x80-\xff]/', '?', $value);
            }

            return \preg_replace('/[;\p{Cc}]/u', '?', $value);
        });
    }
}
