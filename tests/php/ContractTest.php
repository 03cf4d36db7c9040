<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd\Tests;

use Cbox\Profd\ProfileShape;
use Cbox\Profd\Runtime;

/**
 * Every key that consumers of the cbox_telemetry extension rely on, and its type, with a daemon and without.
 */
final class ContractTest extends ProfdTestCase
{
    private const RESULT = [
        'duration_ns' => 'int', 'unit' => 'string', 'trace_id' => 'string|null', 'span_id' => 'string|null',
        'sampled' => 'bool', 'profiling' => 'bool', 'automatic' => 'bool', 'operations' => 'array', 'waits' => 'array',
        'counters' => 'array', 'profile' => 'array|null', 'available' => 'bool', 'error' => 'string|null',
    ];
    private const COUNTERS = [
        'profiler.samples' => 'int', 'profiler.dropped' => 'int', 'profiler.deferred_samples' => 'int',
        'profiler.deferred_events' => 'int', 'profiler.max_deferred' => 'int', 'profiler.timer_overruns' => 'int',
        'profiler.period_ns' => 'int', 'gc.runs' => 'int', 'gc.collected' => 'int', 'ops.overflow' => 'int',
        'breadcrumbs.written_total' => 'int', 'arena.peak_bytes_total' => 'int',
        'profiler.frame_capacity_hits' => 'int', 'profiler.node_capacity_hits' => 'int', 'profiler.capped' => 'bool',
        'profiler.frames' => 'int', 'profiler.nodes' => 'int',
    ];
    private const PROFILE = [
        'sample_count' => 'int', 'period_ns' => 'int', 'clock' => 'string', 'dropped' => 'int',
        'deferred_samples' => 'int', 'deferred_events' => 'int', 'max_deferred' => 'int', 'timer_overruns' => 'int',
        'frames' => 'array', 'top_functions' => 'array', 'stacks' => 'array|null',
    ];
    private const STATUS = [
        'version' => 'string', 'php_api' => 'int', 'enabled' => 'bool', 'thread_safe' => 'bool', 'debug' => 'bool',
        'profiler_enabled' => 'bool', 'profiler_running' => 'bool', 'profiler_status' => 'string',
        'timer_backend' => 'string', 'timer_cpu_time' => 'bool', 'timer_signal' => 'int', 'hooks' => 'string',
        'hooks_armed' => 'bool', 'crash_recorder' => 'string', 'crash_path' => 'string|null', 'auto' => 'bool',
        'unit_handle' => 'int', 'unit_automatic' => 'bool', 'profiler_samples' => 'int', 'profiler_dropped' => 'int',
        'arena_peak_bytes' => 'int', 'breadcrumbs_written' => 'int', 'limits' => 'array', 'hook_detail' => 'array',
        'hooks_installed' => 'array', 'available' => 'bool', 'daemon' => 'array',
    ];
    private const LIMITS = [
        'period_us' => 'int', 'max_depth' => 'int', 'max_frames' => 'int', 'max_nodes' => 'int', 'breadcrumbs' => 'int',
        'auto_max_ms' => 'int',
    ];
    private const HOOK_GROUP = ['requested' => 'bool', 'installed' => 'int', 'unavailable' => 'int', 'active' => 'bool'];

    public function testAResultWithoutADaemonHasEveryKey(): void
    {
        $runtime = new Runtime(['socket' => self::NOBODY_LISTENS]);
        $handle = $runtime->begin([
            'trace_id' => self::TRACE_ID, 'span_id' => self::SPAN_ID, 'unit' => 'queue', 'sampled' => false,
        ]);
        usleep(2000);
        $result = $runtime->finish($handle, true, true);

        self::assertShape(self::RESULT, $result);
        self::assertShape(self::COUNTERS, $result['counters']);
        self::assertSame([0 => 0, 1 => false], array_values(array_unique($result['counters'], SORT_REGULAR)) + [1 => false]);
        self::assertGreaterThan(2e6, $result['duration_ns']);
        self::assertSame('queue', $result['unit']);
        self::assertSame(self::TRACE_ID, $result['trace_id']);
        self::assertSame(self::SPAN_ID, $result['span_id']);
        self::assertFalse($result['sampled']);
        self::assertFalse($result['profiling']);
        self::assertSame([], $result['operations']);
        self::assertSame([], $result['waits']);
        self::assertNull($result['profile']);
        self::assertFalse($result['available']);
        self::assertSame(
            'no daemon at /nonexistent/profd.sock: No such file or directory; is cbox-profd running?',
            $result['error']
        );
    }

    public function testAResultFromTheDaemonHasEveryKey(): void
    {
        $result = $this->finish(new FakeDaemon(), true, true);

        self::assertShape(self::RESULT, $result);
        self::assertShape(self::COUNTERS, $result['counters']);
        self::assertShape(self::PROFILE, $result['profile']);
        self::assertTrue($result['available']);
        self::assertNull($result['error']);
        self::assertSame(512345678, $result['duration_ns']);
        self::assertTrue($result['profiling']);
        self::assertSame(51, $result['counters']['profiler.samples']);
        self::assertSame(3, $result['counters']['profiler.torn'], 'what the daemon adds is handed on');
        self::assertSame(0, $result['counters']['ops.overflow'], 'what it leaves out is 0');
        self::assertSame(['mysql 127.0.0.1:3306' => ['samples' => 4, 'wall_ns' => 40000000]], $result['waits']);
    }

    public function testOnlyOperationsThatHappenedAreListed(): void
    {
        self::assertSame(
            ['pdo.connect' => ['count' => 2, 'total_ns' => 3000000, 'max_ns' => 2000000, 'source' => 'sampled']],
            $this->finish(new FakeDaemon())['operations']
        );
    }

    public function testAProfileIsThereOnlyWhenAskedForAndStacksLikewise(): void
    {
        self::assertNull($this->finish(new FakeDaemon())['profile']);
        $profile = $this->finish(new FakeDaemon(), true)['profile'];
        self::assertNull($profile['stacks']);
        self::assertSame(50, $profile['sample_count']);
        self::assertSame(50, array_sum(array_column($profile['top_functions'], 'samples')));
        self::assertSame(
            ['function' => 'App\Report::hot', 'file' => '/srv/app/src/Report.php', 'line' => 12],
            $profile['frames'][$profile['top_functions'][0]['frame_id']]
        );
        self::assertNull($profile['frames'][2]['file'], 'an internal function is in no file');
    }

    public function testRowsOfStacksCarryTheirTimes(): void
    {
        self::assertSame(
            [[0, 0, 0, 12345678, 900000], [1, 1, 30, 300000000, 299000000], [1, 2, 20, 200000000, 40000]],
            $this->finish(new FakeDaemon(), true, true)['profile']['stacks']
        );
    }

    public function testAsTriplesTheTimesStandBesideTheRows(): void
    {
        $profile = $this->finish(new FakeDaemon(), true, true, ['stacks' => ProfileShape::TRIPLES])['profile'];

        self::assertSame([[0, 0, 0], [1, 1, 30], [1, 2, 20]], $profile['stacks']);
        self::assertSame([[12345678, 900000], [300000000, 299000000], [200000000, 40000]], $profile['stack_times']);
    }

    public function testAUnitThatIsNotProfiledHasNoProfile(): void
    {
        $answer = ['duration_ns' => 1, 'unit' => 'http', 'profiling' => false, 'profile' => null];

        self::assertNull($this->finish(new FakeDaemon('right', ['finish' => $answer]), true)['profile']);
    }

    public function testAProfileWithoutSamplesIsNone(): void
    {
        $answer = ['duration_ns' => 1, 'unit' => 'http', 'profiling' => true];
        $answer['profile'] = ['sample_count' => 0, 'frames' => [], 'top_functions' => [], 'stacks' => null];

        self::assertNull($this->finish(new FakeDaemon('right', ['finish' => $answer]), true)['profile']);
    }

    public function testNumbersAndIdsAreOfTheContractsTypesWhateverJsonMadeOfThem(): void
    {
        $answer = [
            'duration_ns' => 2.5e17, 'unit' => 'queue', 'trace_id' => '', 'span_id' => '',
            'counters' => ['profiler.samples' => 1e3, 'gc.runs' => 'many', 'profiler.capped' => 1, 'big' => 1e300],
        ];
        $result = $this->finish(new FakeDaemon('right', ['finish' => $answer]));

        self::assertShape(self::RESULT, $result);
        self::assertShape(self::COUNTERS, $result['counters']);
        self::assertSame(250000000000000000, $result['duration_ns']);
        self::assertNull($result['trace_id']);
        self::assertSame(1000, $result['counters']['profiler.samples']);
        self::assertSame(0, $result['counters']['gc.runs']);
    }

    /**
     * @dataProvider misshapenAnswers
     */
    public function testAMisshapenAnswerIsNone(array $answer): void
    {
        $result = $this->finish(new FakeDaemon('right', ['finish' => $answer]), true, true);

        self::assertShape(self::RESULT, $result);
        self::assertFalse($result['available']);
        self::assertNull($result['profile']);
    }

    public function misshapenAnswers(): iterable
    {
        yield 'no duration' => [['unit' => 'http']];
        yield 'a duration in words' => [['duration_ns' => 'long', 'unit' => 'http']];
        yield 'an unknown unit' => [['duration_ns' => 1, 'unit' => 'dance']];
        yield 'no unit' => [['duration_ns' => 1]];
        yield 'a list' => [[1, 2, 3]];
        $frame = ['function' => 'f', 'file' => '/f.php', 'line' => 1];
        $good = [
            'sample_count' => 1, 'frames' => [$frame], 'top_functions' => [['frame_id' => 0, 'samples' => 1]],
            'stacks' => [[0, 0, 1, 5, 5]],
        ];
        $wrong = [
            'a profile in words' => 'flat',
            'frames missing' => array_diff_key($good, ['frames' => 0]),
            'frames as a map' => ['frames' => ['a' => $frame]] + $good,
            'a frame in words' => ['frames' => ['f']] + $good,
            'a frame without a function' => ['frames' => [['file' => '/f.php']]] + $good,
            'top functions missing' => array_diff_key($good, ['top_functions' => 0]),
            'a frame id past the end' => ['top_functions' => [['frame_id' => 1, 'samples' => 1]]] + $good,
            'a negative frame id' => ['top_functions' => [['frame_id' => -1, 'samples' => 1]]] + $good,
            'samples in words' => ['top_functions' => [['frame_id' => 0, 'samples' => 'one']]] + $good,
            'stacks missing' => array_diff_key($good, ['stacks' => 0]),
            'a row too short' => ['stacks' => [[0, 0, 1]]] + $good,
            'a row in words' => ['stacks' => [['a', 'b', 'c', 'd', 'e']]] + $good,
            'a row of another frame' => ['stacks' => [[0, 7, 1, 5, 5]]] + $good,
            'a node that is its own parent' => ['stacks' => [[1, 0, 1, 5, 5]]] + $good,
            'a parent that comes later' => ['stacks' => [[2, 0, 1, 5, 5], [0, 0, 1, 5, 5]]] + $good,
        ];
        foreach ($wrong as $what => $profile) {
            yield $what => [['duration_ns' => 1, 'unit' => 'http', 'profiling' => true, 'profile' => $profile]];
        }
    }

    public function testAStatusWithoutADaemonHasEveryKey(): void
    {
        $status = (new Runtime(['socket' => self::NOBODY_LISTENS]))->status();

        self::assertStatusShape($status);
        self::assertFalse($status['available']);
        self::assertFalse($status['profiler_enabled'], 'nobody profiles: a consumer may use another profiler');
        self::assertTrue($status['enabled']);
        self::assertSame(0, $status['unit_handle']);
        self::assertSame(
            'no daemon at /nonexistent/profd.sock: No such file or directory; is cbox-profd running?',
            $status['profiler_status']
        );
        self::assertSame(
            ['version' => null, 'protocol' => null, 'socket' => '/nonexistent/profd.sock'],
            $status['daemon']
        );
    }

    public function testAStatusFromTheDaemonHasEveryKey(): void
    {
        $daemon = new FakeDaemon();
        $runtime = self::runtimeAt($daemon);
        $runtime->begin([]);
        $status = $runtime->status();

        self::assertStatusShape($status);
        self::assertTrue($status['available']);
        self::assertTrue($status['profiler_enabled']);
        self::assertTrue($status['profiler_running']);
        self::assertSame('ready', $status['profiler_status']);
        self::assertSame(110, $status['profiler_samples']);
        self::assertSame(4, $status['profiler_dropped']);
        self::assertSame(
            [
                'period_us' => 5000, 'max_depth' => 512, 'max_frames' => 65536, 'max_nodes' => 32768,
                'breadcrumbs' => 0, 'auto_max_ms' => 60000,
            ],
            $status['limits']
        );
        self::assertSame(
            ['version' => '0.9.7', 'protocol' => 1, 'socket' => $daemon->socket],
            $status['daemon']
        );
    }

    public function testAStatusSaysWhyAProcessIsNotSampled(): void
    {
        $not = ['version' => '0.9.7', 'worker' => null, 'refusals' => []];
        $daemon = new FakeDaemon('right', ['status' => $not]);
        $status = self::runtimeAt($daemon)->status();
        self::assertStatusShape($status);
        self::assertFalse($status['profiler_enabled']);
        self::assertStringContainsString('does not sample this process (' . getmypid() . ')', $status['profiler_status']);

        $why = 'worker ' . getmypid() . ': PHP 8.9.0 is newer than this build knows (7.4 to 8.6)';
        $not['refusals'] = [['pid' => 1, 'why' => 'no'], ['pid' => getmypid(), 'why' => $why]];
        $daemon = new FakeDaemon('right', ['status' => $not]);
        $status = self::runtimeAt($daemon)->status();
        self::assertSame($why, $status['profiler_status']);
    }

    public function testASuspendedProcessIsNotRunning(): void
    {
        $answer = ['worker' => ['suspended' => true, 'pid' => 1]];
        $daemon = new FakeDaemon('right', ['status' => $answer]);
        $status = self::runtimeAt($daemon)->status();

        self::assertFalse($status['profiler_running']);
        self::assertStringContainsString('suspended', $status['profiler_status']);
    }

    /**
     * @dataProvider misshapenStatuses
     */
    public function testAMisshapenStatusKeepsTheShape(array $answer): void
    {
        $daemon = new FakeDaemon('right', ['status' => $answer]);
        $status = self::runtimeAt($daemon)->status();

        self::assertStatusShape($status);
        self::assertTrue($status['available']);
    }

    public function misshapenStatuses(): array
    {
        return [
            [['nothing' => 'known']],
            [['worker' => 'me', 'sampling' => 5, 'limits' => 'none', 'refusals' => 'no', 'version' => 3]],
            [['worker' => ['accounting' => 'x', 'period_ns' => 'x'], 'limits' => ['max_frames' => []]]],
            [['refusals' => [1, ['pid' => getmypid(), 'why' => 5]]]],
        ];
    }

    public function testThereAreNoCrashRecordsYet(): void
    {
        foreach ([PHP_INT_MIN, -1, 0, 1, 32, PHP_INT_MAX] as $max) {
            self::assertSame([], (new Runtime())->drainCrashes($max));
        }
    }

    public function testRuntimeSatisfiesAConsumersInterface(): void
    {
        $code = 'interface Theirs {'
            . ' public function available(): bool;'
            . ' public function version(): ?string;'
            . ' public function status(): array;'
            . ' public function begin(array $context): int;'
            . ' public function finish(int $handle, bool $includeProfile = false, bool $includeStacks = false): array;'
            . ' public function drainCrashes(int $max = 32): array; }'
            . ' final class Ours extends Runtime implements Theirs {}'
            . ' echo (new Ours(["socket" => "/nonexistent"]))->begin([]) > 0 ? "yes" : "no";';

        self::assertSame('yes', self::php($code));
    }

    private function finish(FakeDaemon $daemon, bool $profile = false, bool $stacks = false, array $options = []): array
    {
        self::beginRequest();
        $runtime = self::runtimeAt($daemon, $options);

        return $runtime->finish($runtime->begin([]), $profile, $stacks);
    }

    private static function assertStatusShape(array $status): void
    {
        self::assertShape(self::STATUS, $status);
        self::assertShape(self::LIMITS, $status['limits']);
        self::assertSame(['pdo', 'redis', 'curl', 'streams'], array_keys($status['hook_detail']));
        foreach ($status['hook_detail'] as $group) {
            self::assertShape(self::HOOK_GROUP, $group);
        }
        self::assertSame(['version', 'protocol', 'socket'], array_keys($status['daemon']));
    }

    /**
     * @param array<string, string> $shape key => type, or two with | between
     */
    private static function assertShape(array $shape, array $actual): void
    {
        foreach ($shape as $key => $types) {
            self::assertArrayHasKey($key, $actual);
            $type = ['integer' => 'int', 'boolean' => 'bool', 'NULL' => 'null'][gettype($actual[$key])]
                ?? gettype($actual[$key]);
            self::assertContains($type, explode('|', $types), "$key is of type $type");
        }
    }
}
