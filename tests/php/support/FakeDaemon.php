<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd\Tests;

/**
 * fake_daemon.py in a process of its own, for as long as this object lives.
 */
final class FakeDaemon
{
    /** @var string */
    public $socket;
    /** @var string */
    private $directory;
    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private $pipes = [];

    /**
     * @param array<string, mixed> $canned verb => result
     */
    public function __construct(string $behaviour = 'right', array $canned = [])
    {
        $this->directory = sys_get_temp_dir() . '/profd-' . getmypid() . '-' . bin2hex(random_bytes(4));
        mkdir($this->directory);
        $this->socket = $this->directory . '/profd.sock';
        $command = ['/usr/bin/python3', __DIR__ . '/fake_daemon.py', $this->socket, $behaviour, $this->directory . '/log'];
        if ($canned !== []) {
            file_put_contents($this->directory . '/canned.json', json_encode($canned));
            $command[] = $this->directory . '/canned.json';
        }
        touch($this->directory . '/log');
        // Without LD_LIBRARY_PATH: that is for the PHP build under test.
        $environment = ['PATH' => '/usr/bin:/bin', 'LC_ALL' => 'C.UTF-8'];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w']], $this->pipes, null, $environment);
        if (!is_resource($process) || fgets($this->pipes[1]) !== "ready\n") {
            throw new \RuntimeException('fake_daemon.py did not start');
        }
        $this->process = $process;
    }

    public function __destruct()
    {
        $this->stop();
        foreach (glob($this->directory . '/*') ?: [] as $file) {
            unlink($file);
        }
        rmdir($this->directory);
    }

    public function stop(): void
    {
        foreach ($this->pipes as $pipe) {
            fclose($pipe);
        }
        $this->pipes = [];
        if (is_resource($this->process)) {
            proc_close($this->process);
        }
    }

    public function connectionCount(): int
    {
        return count(array_keys($this->log(), 'connected', true));
    }

    /**
     * @return array<int, array<string, mixed>>
     */
    public function requests(): array
    {
        $requests = [];
        foreach ($this->log() as $line) {
            if ($line !== 'connected') {
                $requests[] = json_decode($line, true);
            }
        }

        return $requests;
    }

    /**
     * @return array<int, string>
     */
    private function log(): array
    {
        return file($this->directory . '/log', FILE_IGNORE_NEW_LINES) ?: [];
    }
}
