<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd\Tests;

use Cbox\Profd\Runtime;

/**
 * What begin() makes of its context, read where the daemon reads it: in the well-known global.
 */
final class ContextTest extends ProfdTestCase
{
    private const NONE = '00-00000000000000000000000000000000-0000000000000000-01';

    public function testAWholeContextIsWrittenAsTheGrammarSays(): void
    {
        $handle = $this->begin([
            'trace_id' => self::TRACE_ID, 'span_id' => self::SPAN_ID, 'unit' => 'queue', 'sampled' => true,
            'profile' => false, 'period_us' => 2500, 'max_depth' => 200, 'name' => 'orders.show',
        ]);

        self::assertSame(
            '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01;u=queue;h=' . $handle
            . ';p=0;r=2500;d=200;n=orders.show',
            $GLOBALS['__cbox_profd']
        );
    }

    public function testWithoutAContextTheIdsAreZerosAndTheUnitIsSampled(): void
    {
        $handle = $this->begin([]);

        self::assertSame(self::NONE . ";h=$handle", $GLOBALS['__cbox_profd']);
    }

    /**
     * @dataProvider oddValues
     * @param mixed $value
     */
    public function testAnOddValueCountsAsAbsent(string $key, $value): void
    {
        $handle = $this->begin([$key => $value]);

        self::assertSame(self::NONE . ";h=$handle", $GLOBALS['__cbox_profd']);
    }

    public function oddValues(): iterable
    {
        $odd = [
            'null' => null, 'a float' => 1.5, 'NAN' => NAN, 'INF' => INF, 'an array' => [], 'a nested array' => [['x']],
            'an object' => new \stdClass(), 'a closure' => static function (): void {
            }, 'a resource' => STDERR, 'a Stringable that throws' => new class () {
                public function __toString(): string
                {
                    throw new \LogicException('nobody may convert me');
                }
            },
        ];
        $forKey = [
            'trace_id' => [
                'too short' => 'abc', 'too long' => self::TRACE_ID . '0', 'not hex' => str_repeat('g', 32),
                'all zeros' => str_repeat('0', 32), 'empty' => '', 'true' => true, 'an int' => 12,
                'a line end behind' => substr(self::TRACE_ID, 1) . "\n", '8 KiB' => str_repeat('a', 8192),
            ],
            'span_id' => [
                'too short' => '0', 'not hex' => str_repeat('x', 16), 'all zeros' => str_repeat('0', 16),
                'an int' => 1234567890123456, 'false' => false,
            ],
            'unit' => ['true' => true, 'an int' => 0],
            'sampled' => [],
            'profile' => [],
            'period_us' => ['a numeric string' => '1000', 'true' => true, 'a whole float' => 1000.0],
            'max_depth' => ['a numeric string' => '64', 'false' => false],
            'name' => ['empty' => '', 'an int' => 7],
            'an unknown key' => ['a string' => 'x'],
        ];
        foreach ($forKey as $key => $more) {
            foreach ($odd + $more as $what => $value) {
                yield "$key: $what" => [$key, $value];
            }
        }
    }

    public function testReferencesAreLookedThrough(): void
    {
        $trace = self::TRACE_ID;
        $sampled = false;
        $period = 700;
        $context = ['trace_id' => &$trace, 'sampled' => &$sampled, 'period_us' => &$period];
        $handle = $this->begin($context);
        $trace = 'changed afterwards';

        self::assertSame(
            '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-00;h=' . $handle . ';r=700',
            $GLOBALS['__cbox_profd']
        );
    }

    public function testHexIsLowered(): void
    {
        $this->begin(['trace_id' => strtoupper(self::TRACE_ID), 'span_id' => strtoupper(self::SPAN_ID)]);

        self::assertStringStartsWith(
            '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
            $GLOBALS['__cbox_profd']
        );
    }

    /**
     * @dataProvider clampedNumbers
     */
    public function testNumbersAreClamped(string $key, int $given, string $written): void
    {
        $this->begin([$key => $given]);

        self::assertStringEndsWith($written, $GLOBALS['__cbox_profd']);
    }

    public function clampedNumbers(): array
    {
        return [
            ['period_us', PHP_INT_MIN, ';r=100'],
            ['period_us', 0, ';r=100'],
            ['period_us', 100, ';r=100'],
            ['period_us', 100001, ';r=100000'],
            ['period_us', PHP_INT_MAX, ';r=100000'],
            ['max_depth', -5, ';d=1'],
            ['max_depth', 0, ';d=1'],
            ['max_depth', 256, ';d=256'],
            ['max_depth', 500, ';d=500'],
            ['max_depth', PHP_INT_MAX, ';d=1024'],
        ];
    }

    /**
     * @dataProvider unitTypes
     */
    public function testAnUnknownUnitTypeIsOther(string $given, string $written): void
    {
        $this->begin(['unit' => $given]);

        self::assertStringContainsString(";u=$written;", $GLOBALS['__cbox_profd']);
    }

    public function unitTypes(): array
    {
        return [
            ['http', 'http'], ['queue', 'queue'], ['command', 'command'], ['schedule', 'schedule'],
            ['other', 'other'], ['HTTP', 'other'], ['', 'other'], ['http;h=1', 'other'],
        ];
    }

    /**
     * @dataProvider truths
     * @param mixed $given
     */
    public function testSampledAndProfileTakeIntegersAndStringsAsPhpDoes($given, bool $meant): void
    {
        $this->begin(['sampled' => $given]);
        self::assertSame($meant ? '-01;' : '-00;', substr($GLOBALS['__cbox_profd'], 52, 4));

        $this->begin(['profile' => $given]);
        self::assertSame(!$meant, strpos($GLOBALS['__cbox_profd'], ';p=0') !== false);
    }

    public function truths(): array
    {
        return [
            [true, true], [false, false], [1, true], [0, false], [-1, true], ['1', true], ['0', false], ['', false],
            ['false', true],
        ];
    }

    /**
     * @dataProvider names
     */
    public function testANameCanNotBreakTheGrammar(string $given, string $written): void
    {
        $this->begin(['name' => $given]);

        self::assertStringEndsWith(';n=' . $written, $GLOBALS['__cbox_profd']);
        self::assertLessThanOrEqual(512, strlen($GLOBALS['__cbox_profd']));
    }

    public function names(): array
    {
        return [
            'separators' => ['a;h=1;b', 'a?h=1?b'],
            'control characters' => ["a\0b\nc\x7fd\u{85}e", 'a?b?c?d?e'],
            'UTF-8' => ["/caf\u{e9}/\u{1f600}", "/caf\u{e9}/\u{1f600}"],
            'not UTF-8' => ["caf\xe9 \xff", 'caf? ?'],
            'too long' => [str_repeat('n', 8192), str_repeat('n', 128)],
            'cut inside a character' => [str_repeat('n', 127) . "\u{e9}", str_repeat('n', 127)],
            'nothing but continuation bytes' => [str_repeat("\x80", 200), str_repeat('?', 125)],
        ];
    }

    public function testAnArrayInItsPlaceIsReplaced(): void
    {
        $GLOBALS['__cbox_profd'] = [1, 2];
        $this->begin(['trace_id' => self::TRACE_ID]);

        self::assertStringStartsWith('00-4bf92f3577b34da6', $GLOBALS['__cbox_profd']);
    }

    public function testAnObjectWhoseDestructorThrowsIsReplaced(): void
    {
        $GLOBALS['__cbox_profd'] = new class () {
            public function __destruct()
            {
                throw new \LogicException('let me live');
            }
        };
        $this->begin(['trace_id' => self::TRACE_ID]);

        self::assertStringStartsWith('00-4bf92f3577b34da6', $GLOBALS['__cbox_profd']);
    }

    public function testAReferenceToATypedPropertyIsReplaced(): void
    {
        $holder = new class () {
            public int $number = 1;
        };
        $GLOBALS['__cbox_profd'] = &$holder->number;
        $this->begin([]);

        self::assertIsString($GLOBALS['__cbox_profd']);
        self::assertSame(1, $holder->number);
    }

    private function begin(array $context): int
    {
        return (new Runtime(['socket' => self::NOBODY_LISTENS]))->begin($context);
    }
}
