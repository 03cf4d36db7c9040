<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd\Tests;

use Cbox\Profd\Runtime;

/**
 * Which unit is open, what a handle stands for, and what the daemon is asked.
 */
final class UnitsTest extends ProfdTestCase
{
    public function testAHandleIsTheMonotonicTimeOfBegin(): void
    {
        $before = hrtime(true);
        $handle = $this->runtime()->begin([]);

        self::assertGreaterThanOrEqual($before, $handle);
        self::assertLessThanOrEqual(hrtime(true), $handle);
    }

    public function testHandlesRiseEvenWithinOneTickOfTheClock(): void
    {
        $runtime = $this->runtime();
        $last = 0;
        for ($i = 0; $i < 2000; $i++) {
            $handle = $runtime->begin([]);
            self::assertGreaterThan($last, $handle);
            $last = $handle;
        }
    }

    public function testFinishTakesTheGlobalAway(): void
    {
        $runtime = $this->runtime();
        $handle = $runtime->begin([]);
        self::assertArrayHasKey('__cbox_profd', $GLOBALS);
        $runtime->finish($handle);

        self::assertArrayNotHasKey('__cbox_profd', $GLOBALS);
    }

    public function testASecondBeginAbandonsTheFirstUnit(): void
    {
        $runtime = $this->runtime();
        $first = $runtime->begin(['trace_id' => self::TRACE_ID]);
        $second = $runtime->begin(['unit' => 'queue']);

        self::assertSame([], $runtime->finish($first));
        self::assertStringContainsString(";h=$second", $GLOBALS['__cbox_profd']);
        $result = $runtime->finish($second);
        self::assertSame('queue', $result['unit']);
        self::assertNull($result['trace_id'], "nothing of the first unit is left for the second");
        self::assertSame([], $runtime->finish($second));
    }

    public function testZeroFinishesWhicheverUnitIsOpen(): void
    {
        $runtime = $this->runtime();
        $runtime->begin(['unit' => 'schedule']);

        self::assertSame('schedule', $runtime->finish(0)['unit']);
        self::assertSame([], $runtime->finish(0));
    }

    /**
     * @dataProvider wrongHandles
     */
    public function testAWrongHandleGivesNothingAndLeavesTheUnitOpen(int $wrong): void
    {
        $runtime = $this->runtime();
        $handle = $runtime->begin([]);

        self::assertSame([], $runtime->finish($wrong));
        self::assertNotSame([], $runtime->finish($handle));
    }

    public function wrongHandles(): array
    {
        return [[1], [-1], [PHP_INT_MAX], [PHP_INT_MIN]];
    }

    public function testTheFirstBeginAdoptsTheAutomaticUnitAndLaterOnesDoNot(): void
    {
        $runtime = $this->runtime();
        $adopted = $runtime->finish($runtime->begin([]));
        self::assertTrue($adopted['automatic']);
        self::assertSame('command', $adopted['unit'], 'the default of an automatic unit under cli');

        $explicit = $runtime->finish($runtime->begin([]));
        self::assertFalse($explicit['automatic']);
        self::assertSame('other', $explicit['unit']);
    }

    public function testAnAutomaticUnitIsFinishedWithZero(): void
    {
        $daemon = new FakeDaemon();
        $result = self::runtimeAt($daemon)->finish(0, true);

        self::assertTrue($result['available']);
        self::assertSame(
            [['verb' => 'finish', 'id' => 1, 'handle' => 0, 'profile' => true, 'stacks' => false]],
            $daemon->requests()
        );
        self::assertSame([], self::runtimeAt($daemon)->finish(0));
        self::assertCount(1, $daemon->requests(), 'nothing is open: nobody is asked');
    }

    public function testAnAutomaticUnitThatTheDaemonDoesNotHaveIsNone(): void
    {
        $daemon = new FakeDaemon('refusing no_unit');

        self::assertSame([], self::runtimeAt($daemon)->finish(0));
    }

    public function testABegunUnitThatTheDaemonDoesNotHaveStillHasAResult(): void
    {
        $daemon = new FakeDaemon('refusing no_unit');
        $runtime = self::runtimeAt($daemon);
        $result = $runtime->finish($runtime->begin(['unit' => 'http']));

        self::assertFalse($result['available']);
        self::assertSame('http', $result['unit']);
    }

    public function testAnAutomaticUnitWithoutADaemonLastsSinceTheRequestBegan(): void
    {
        $_SERVER['REQUEST_TIME_FLOAT'] = microtime(true) - 3;
        $result = $this->runtime()->finish(0);

        self::assertEqualsWithDelta(3e9, $result['duration_ns'], 1e9);
    }

    /**
     * @dataProvider oddTimes
     * @param mixed $time
     */
    public function testAnOddRequestTimeIsNoTime($time): void
    {
        $_SERVER['REQUEST_TIME_FLOAT'] = $time;

        self::assertSame(0, $this->runtime()->finish(0)['duration_ns']);
    }

    public function oddTimes(): array
    {
        return ['absent' => [null], 'text' => ['yesterday'], 'NAN' => [NAN], 'ahead' => [4e9], 'before time' => [-1.0]];
    }

    public function testTheUnitOfStatusIsTheOneThatBeginAdopts(): void
    {
        $daemon = new FakeDaemon();
        $runtime = self::runtimeAt($daemon);
        $status = $runtime->status();
        self::assertGreaterThan(0, $status['unit_handle']);
        self::assertTrue($status['unit_automatic']);

        self::assertSame($status['unit_handle'], $runtime->begin([]));
        self::assertSame($status['unit_handle'], $runtime->status()['unit_handle']);
        $runtime->finish(0);
        self::assertSame(0, $runtime->status()['unit_handle']);
        self::assertFalse($runtime->status()['unit_automatic']);
    }

    public function testAnAutomaticUnitMayBeFinishedByTheHandleOfStatus(): void
    {
        $daemon = new FakeDaemon();
        $runtime = self::runtimeAt($daemon);

        self::assertNotSame([], $runtime->finish($runtime->status()['unit_handle']));
        self::assertSame(0, $daemon->requests()[1]['handle'], 'for the daemon it has no handle');
    }

    public function testAllRuntimeObjectsOfAProcessShareTheUnit(): void
    {
        $handle = $this->runtime()->begin([]);

        self::assertNotSame([], $this->runtime()->finish($handle));
        self::assertSame([], $this->runtime()->finish($handle));
    }

    public function testFinishSendsTheHandleAndTheContext(): void
    {
        $daemon = new FakeDaemon();
        $runtime = self::runtimeAt($daemon);
        $handle = $runtime->begin(['trace_id' => self::TRACE_ID, 'unit' => 'http']);
        $runtime->finish($handle, true, true);

        self::assertSame([[
            'verb' => 'finish', 'id' => 1, 'handle' => $handle, 'profile' => true, 'stacks' => true,
            'context' => "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01;u=http;h=$handle",
        ]], $daemon->requests());
    }

    public function testAHandleThatJsonNumbersCanNotHoldIsSentAsAString(): void
    {
        $daemon = new FakeDaemon();
        $runtime = self::runtimeAt($daemon);
        $runtime->begin([]);
        $units = \Closure::bind(static function () {
            return Runtime::$units;
        }, null, Runtime::class)();
        $units->open()->handle = 9007199254740993;
        $runtime->finish(9007199254740993);

        self::assertSame('9007199254740993', $daemon->requests()[0]['handle']);
    }

    public function testStacksAreNotAskedForWithoutAProfile(): void
    {
        $daemon = new FakeDaemon();
        $runtime = self::runtimeAt($daemon);
        $result = $runtime->finish($runtime->begin([]), false, true);

        self::assertNull($result['profile']);
        self::assertFalse($daemon->requests()[0]['stacks']);
    }

    public function testBeginTalksToNobody(): void
    {
        $daemon = new FakeDaemon();
        $runtime = self::runtimeAt($daemon);
        $runtime->begin([]);
        $runtime->begin([]);

        self::assertSame(0, $daemon->connectionCount());
    }

    public function testSwitchedOffInCodeNothingHappens(): void
    {
        $daemon = new FakeDaemon();
        $runtime = self::runtimeAt($daemon);
        $handle = $runtime->begin([]);
        Runtime::disable();

        self::assertArrayNotHasKey('__cbox_profd', $GLOBALS);
        self::assertSame(0, $runtime->begin([]));
        self::assertSame([], $runtime->finish($handle));
        self::assertSame([], $runtime->finish(0));
        self::assertFalse($runtime->available());
        self::assertNull($runtime->version());
        self::assertFalse($runtime->status()['enabled']);
        self::assertArrayNotHasKey('__cbox_profd', $GLOBALS);
        self::assertSame(0, $daemon->connectionCount());

        Runtime::disable(false);
        self::assertGreaterThan(0, $runtime->begin([]));
    }

    /**
     * @dataProvider offSwitches
     */
    public function testSwitchedOffByTheEnvironment(string $value, string $handleIs): void
    {
        $code = '$r = new Runtime(); $h = $r->begin([]); echo $h === 0 ? "zero" : "some", count($r->finish($h));';

        self::assertStringStartsWith($handleIs, self::php($code, [], ['CBOX_PROFD' => $value]));
    }

    public function offSwitches(): array
    {
        return [['off', 'zero0'], ['OFF', 'zero0'], ['0', 'zero0'], ['on', 'some'], ['', 'some']];
    }

    /**
     * @requires extension pcntl
     */
    public function testAForkedChildHasNoOpenUnit(): void
    {
        $runtime = $this->runtime();
        $handle = $runtime->begin(['unit' => 'queue']);
        $child = $this->inChild(static function () use ($runtime, $handle): array {
            $mine = $runtime->finish($handle);
            $open = $runtime->finish(0);
            $global = isset($GLOBALS['__cbox_profd']);
            $own = $runtime->begin([]);

            return [$mine, $open, $global, $own > $handle, $runtime->finish($own)['automatic']];
        });

        self::assertSame([[], [], false, true, false], $child);
        self::assertSame('queue', $runtime->finish($handle)['unit'], "the parent's unit is untouched");
    }

    /**
     * @requires extension pcntl
     */
    public function testAForkedChildInheritsNoAutomaticUnit(): void
    {
        $runtime = $this->runtime();
        $child = $this->inChild(static function () use ($runtime): array {
            return [$runtime->finish(0), $runtime->status()['unit_handle']];
        });

        self::assertSame([[], 0], $child);
        self::assertNotSame([], $runtime->finish(0));
    }

    /**
     * @requires extension pcntl
     */
    public function testAForkedChildDoesNotSpeakOnItsParentsConnection(): void
    {
        $daemon = new FakeDaemon();
        self::asUnderFpm($daemon->socket);
        $runtime = self::runtimeAt($daemon);
        self::assertTrue($runtime->available());
        $this->inChild(static function () use ($runtime): bool {
            return $runtime->finish($runtime->begin([]))['available'];
        });

        self::assertSame(2, $daemon->connectionCount());
        self::assertTrue($runtime->finish($runtime->begin([]))['available'], "the parent's connection still works");
        self::assertSame(2, $daemon->connectionCount());
    }

    /**
     * @return mixed what $work returned in a forked child
     */
    private function inChild(callable $work)
    {
        $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $pid = pcntl_fork();
        if ($pid === 0) {
            try {
                $answer = $work();
            } catch (\Throwable $failure) {
                $answer = $failure->getMessage();
            }
            fwrite($pair[1], serialize($answer));
            // Not exit(): PHPUnit's shutdown functions and the fake daemon's destructor belong to the parent.
            endAtOnce();
        }
        fclose($pair[1]);
        $answer = stream_get_contents($pair[0]);
        pcntl_waitpid($pid, $status);

        return unserialize((string) $answer);
    }

    private function runtime(): Runtime
    {
        return new Runtime(['socket' => self::NOBODY_LISTENS]);
    }
}

/** Ends this process without running anything more of it. By the shell's kill, since not every PHP has ext-posix. */
function endAtOnce(): void
{
    exec('kill -9 ' . getmypid());
    while (true) {
        usleep(1000);
    }
}
