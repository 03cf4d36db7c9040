<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * A connected Unix socket, lines in and bytes out, each bounded by a deadline and a size. Knows nothing of what the
 * lines mean.
 *
 * The stream never blocks: a blocking PHP stream restarts its whole time-out after each signal, and feof() on a socket
 * waits for default_socket_timeout. Instead every wait is a stream_select() of at most WAIT_SLICE_US, after which a
 * read is tried whatever select said: it can't watch descriptors above 1023, which long-running servers have.
 */
final class Connection
{
    private const READ_BYTES = 65536;
    private const WAIT_SLICE_US = 2000;
    /** sizeof(sockaddr_un.sun_path) less the final 0; PHP would cut a longer path and connect to another socket. */
    private const MAX_PATH_BYTES = 107;

    /** @var resource|null */
    private $stream;
    /** @var string bytes received and not yet given out */
    private $received = '';
    /** @var int the process that connected: a child must not speak on its parent's connection */
    private $pid;

    /**
     * @param resource $stream
     */
    private function __construct($stream)
    {
        $this->stream = $stream;
        $this->pid = ProcessId::current();
    }

    public static function open(string $path, Deadline $deadline): self
    {
        if ($path === '' || \strlen($path) > self::MAX_PATH_BYTES || \strpos($path, "\0") !== false) {
            throw new ClientException(
                ClientException::UNREACHABLE,
                'the socket path is empty or longer than ' . self::MAX_PATH_BYTES . ' bytes; set CBOX_PROFD_SOCKET'
            );
        }
        $code = 0;
        $reason = '';
        // A context of its own: the application's default context may carry notification callbacks.
        $stream = \stream_socket_client(
            'unix://' . $path,
            $code,
            $reason,
            $deadline->remainingNs() / 1e9,
            \STREAM_CLIENT_CONNECT,
            \stream_context_create()
        );
        if ($stream === false) {
            throw new ClientException(
                ClientException::UNREACHABLE,
                "no daemon at $path: " . ($reason !== '' ? $reason : "error $code") . '; is cbox-profd running?'
            );
        }
        \stream_set_blocking($stream, false);
        \stream_set_read_buffer($stream, 0);

        return new self($stream);
    }

    /** Whether another request may go out on it: this process opened it, the daemon holds it, nothing is left over. */
    public function isUsable(): bool
    {
        if ($this->stream === null || $this->pid !== ProcessId::current() || $this->received !== '') {
            return false;
        }
        $unexpected = \fread($this->stream, 1);

        return ($unexpected === '' || $unexpected === false) && !$this->isAtEnd();
    }

    public function write(string $bytes, Deadline $deadline): void
    {
        while ($bytes !== '') {
            $sent = \fwrite($this->openStream(), $bytes);
            if ($sent === false) {
                throw new ClientException(ClientException::CLOSED, 'the daemon closed the connection');
            }
            $bytes = (string) \substr($bytes, $sent);
            if ($bytes !== '') {
                $this->insistOn($deadline);
                $this->wait(false, $deadline);
            }
        }
    }

    /** The next line, without its end. */
    public function readLine(int $maxBytes, Deadline $deadline): string
    {
        $searched = 0;
        while (($end = \strpos($this->received, "\n", $searched)) === false) {
            $searched = \strlen($this->received);
            if ($searched > $maxBytes) {
                throw new ClientException(
                    ClientException::TOO_LARGE,
                    "the daemon's answer has a line longer than the $maxBytes bytes this process can take"
                );
            }
            $this->receive($deadline);
        }
        $line = \substr($this->received, 0, $end);
        $this->received = (string) \substr($this->received, $end + 1);

        return $line;
    }

    public function close(): void
    {
        if ($this->stream !== null) {
            \fclose($this->stream);
            $this->stream = null;
        }
    }

    private function receive(Deadline $deadline): void
    {
        for (;;) {
            // Before each read, not only before a wait: a peer may never stop sending.
            $this->insistOn($deadline);
            $piece = \fread($this->openStream(), self::READ_BYTES);
            if ($piece !== '' && $piece !== false) {
                $this->received .= $piece;

                return;
            }
            if ($this->isAtEnd()) {
                throw new ClientException(ClientException::CLOSED, 'the daemon closed the connection');
            }
            $this->wait(true, $deadline);
        }
    }

    private function insistOn(Deadline $deadline): void
    {
        if ($deadline->hasPassed()) {
            throw new ClientException(ClientException::TIMED_OUT, 'the daemon did not answer in time');
        }
    }

    private function wait(bool $forReading, Deadline $deadline): void
    {
        $remainingUs = \intdiv($deadline->remainingNs(), 1000);
        $read = $forReading ? [$this->openStream()] : null;
        $write = $forReading ? null : [$this->openStream()];
        $except = null;
        \stream_select($read, $write, $except, 0, \min($remainingUs, self::WAIT_SLICE_US));
    }

    private function isAtEnd(): bool
    {
        return \stream_get_meta_data($this->openStream())['eof'];
    }

    /**
     * @return resource
     */
    private function openStream()
    {
        if ($this->stream === null) {
            throw new ClientException(ClientException::CLOSED, 'the connection is closed');
        }

        return $this->stream;
    }
}
