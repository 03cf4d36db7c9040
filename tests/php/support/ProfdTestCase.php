<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd\Tests;

use Cbox\Profd\DaemonLink;
use Cbox\Profd\Runtime;
use PHPUnit\Framework\TestCase;

/**
 * Each test stands for one request: the process's state starts from nothing, every PHP diagnostic out of the client is
 * a failure, and none may be left behind in error_get_last().
 */
abstract class ProfdTestCase extends TestCase
{
    protected const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
    protected const SPAN_ID = '00f067aa0ba902b7';
    protected const NOBODY_LISTENS = '/nonexistent/profd.sock';

    /** @var int */
    private $reportingBefore = 0;

    protected function setUp(): void
    {
        self::beginRequest();
        $this->reportingBefore = error_reporting(E_ALL);
        error_clear_last();
        $ours = dirname(__DIR__, 3);
        set_error_handler(static function (int $level, string $message, string $file, int $line) use ($ours): bool {
            // PHPUnit's own sources are older than the newest PHP.
            if (strncmp($file, $ours, strlen($ours)) === 0) {
                throw new \ErrorException("$message ($file:$line)", 0, $level, $file, $line);
            }

            return true;
        });
    }

    protected function tearDown(): void
    {
        restore_error_handler();
        error_reporting($this->reportingBefore);
        self::assertNull(error_get_last(), 'the client left a PHP error behind');
        unset($GLOBALS['__cbox_profd']);
        Runtime::disable(false);
    }

    /** Forgets what the process knows, as PHP does between two requests. */
    protected static function beginRequest(): void
    {
        unset($GLOBALS['__cbox_profd']);
        \Closure::bind(static function (): void {
            Runtime::$units = null;
            Runtime::$disabled = false;
        }, null, Runtime::class)();
        \Closure::bind(static function (): void {
            DaemonLink::$links = [];
        }, null, DaemonLink::class)();
    }

    /** Lets the link to $socket behave as under FPM, where it may keep its connection for the rest of the request. */
    protected static function asUnderFpm(string $socket): void
    {
        $link = DaemonLink::to($socket);
        \Closure::bind(static function () use ($link): void {
            $link->isLongLived = false;
        }, null, DaemonLink::class)();
    }

    protected static function runtimeAt(FakeDaemon $daemon, array $options = []): Runtime
    {
        // Generous: whether the budget holds is BudgetTest's question, and this machine may be busy.
        return new Runtime($options + ['socket' => $daemon->socket, 'budget_ms' => 5000]);
    }

    protected static function milliseconds(callable $work): float
    {
        $began = hrtime(true);
        $work();

        return (hrtime(true) - $began) / 1e6;
    }

    /**
     * Runs PHP code in a process of its own, with this PHP and its configuration.
     *
     * @param array<string, string> $ini
     * @param array<string, string> $environment
     * @return string what it wrote, diagnostics included
     */
    protected static function php(string $code, array $ini = [], array $environment = []): string
    {
        $command = [PHP_BINARY];
        if (php_ini_loaded_file() !== false) {
            array_push($command, '-c', php_ini_loaded_file());
        }
        foreach (['display_errors' => '1', 'error_reporting' => '-1', 'log_errors' => '0'] + $ini as $key => $value) {
            array_push($command, '-d', "$key=$value");
        }
        $client = dirname(__DIR__, 3) . '/client/php';
        array_push($command, '-r', "require '$client/autoload.php'; use Cbox\\Profd\\Runtime; $code");
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes, null, $environment + getenv());
        $output = (string) stream_get_contents($pipes[1]);
        fclose($pipes[1]);
        $status = proc_close($process);

        return $output . ($status === 0 ? '' : "[exit status $status]");
    }
}
