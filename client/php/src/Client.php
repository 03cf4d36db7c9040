<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * The daemon's protocol, version 1: a hello, then one JSON object a line and one answer a request (docs/PROTOCOL.md).
 *
 * Good for every verb: `(new Client())->request('top', ['n' => 10])`. Runtime uses it for a worker's own verbs. What it
 * throws is ClientException, never a PHP warning; an exception that the application's own signal handler throws
 * meanwhile passes through.
 *
 * It connects at the first request and keeps the connection for later ones. After a failed exchange it closes: a late
 * answer must not be taken for the answer to the next request.
 */
final class Client
{
    public const PROTOCOL = 1;
    public const DEFAULT_BUDGET_MS = 1000;
    /** An answer, all its chunks together. */
    public const MAX_ANSWER_BYTES = 16777216;

    /** A chunk is at most 256 KiB of JSON text, which as a JSON string can grow sixfold. */
    private const MAX_LINE_BYTES = 2097152;
    private const MAX_HELLO_BYTES = 65536;
    private const MAX_JSON_DEPTH = 64;
    /**
     * Room a byte of JSON may take as PHP values, read buffers included. A row of a call tree, "[12,3,1,10000000,0],",
     * is 20 bytes and becomes an array of 376 (PHP 7.4).
     */
    private const MEMORY_FACTOR = 24;

    /** @var string */
    private $socket;
    /** @var int */
    private $budgetNs;
    /** @var Connection|null */
    private $connection;
    /** @var array<string, mixed> */
    private $hello = [];
    /** @var int */
    private $lastId = 0;

    /**
     * @param array{socket?: string, budget_ms?: int|float} $options socket: default CBOX_PROFD_SOCKET, or the daemon's
     *     usual place; budget_ms: the time a request may take in all, connecting included
     */
    public function __construct(array $options = [])
    {
        $this->socket = Settings::socket($options);
        $this->budgetNs = Settings::budgetNs($options, self::DEFAULT_BUDGET_MS);
    }

    /**
     * The daemon's greeting: `version`, `protocols`, `features`. Connects if needed.
     *
     * @return array<string, mixed>
     */
    public function hello(?Deadline $deadline = null): array
    {
        return $this->guard(function () use ($deadline): array {
            $this->connect($deadline ?? Deadline::after($this->budgetNs));

            return $this->hello;
        });
    }

    /**
     * Asks one thing and returns the answer's `result`.
     *
     * @param array<string, mixed> $arguments
     * @return array<array-key, mixed>
     */
    public function request(string $verb, array $arguments = [], ?Deadline $deadline = null): array
    {
        return $this->guard(function () use ($verb, $arguments, $deadline): array {
            $deadline = $deadline ?? Deadline::after($this->budgetNs);
            $id = ++$this->lastId;
            $line = self::encode(['verb' => $verb, 'id' => $id] + $arguments);
            $connection = $this->connect($deadline);
            $connection->write($line, $deadline);

            return $this->readResult($connection, $id, $deadline);
        });
    }

    public function close(): void
    {
        if ($this->connection !== null) {
            $this->connection->close();
            $this->connection = null;
        }
    }

    /** The open connection if it can be used, else a new one that has been greeted. */
    private function connect(Deadline $deadline): Connection
    {
        if ($this->connection !== null && $this->connection->isUsable()) {
            return $this->connection;
        }
        $this->close();
        $this->connection = Connection::open($this->socket, $deadline);
        $hello = self::decode($this->connection->readLine(self::MAX_HELLO_BYTES, $deadline));
        if (($hello['ok'] ?? null) === false) {
            throw self::refusal($hello);
        }
        if (($hello['hello'] ?? null) !== 'cbox-profd' || !\is_array($hello['protocols'] ?? null)) {
            throw new ClientException(
                ClientException::GARBLED,
                "what listens at {$this->socket} did not greet as cbox-profd does"
            );
        }
        if (!\in_array(self::PROTOCOL, $hello['protocols'], true)) {
            throw new ClientException(
                ClientException::UNSUPPORTED,
                'the daemon does not speak protocol ' . self::PROTOCOL . '; update cbox/profd-client or cbox-profd'
            );
        }
        $this->hello = $hello;

        return $this->connection;
    }

    /**
     * @return array<array-key, mixed>
     */
    private function readResult(Connection $connection, int $id, Deadline $deadline): array
    {
        $room = self::answerRoom();
        $answer = self::decode($connection->readLine(\min($room, self::MAX_LINE_BYTES), $deadline));
        $text = '';
        while (isset($answer['chunk'])) {
            if (!\is_string($answer['chunk']) || !\is_bool($answer['more'] ?? null) || ($answer['id'] ?? null) !== $id) {
                throw new ClientException(ClientException::GARBLED, 'a part of the answer is not of the protocol');
            }
            $text .= $answer['chunk'];
            if (\strlen($text) > $room) {
                throw new ClientException(
                    ClientException::TOO_LARGE,
                    "the daemon's answer is larger than the $room bytes this process can take"
                );
            }
            if ($answer['more']) {
                $answer = self::decode($connection->readLine(\min($room, self::MAX_LINE_BYTES), $deadline));
            } else {
                $answer = self::decode($text) + ['id' => $id];
                unset($answer['chunk']);
            }
        }
        // A refusal may come without an id: the daemon could not read it, or it is about to close.
        if (($answer['ok'] ?? null) === false) {
            throw self::refusal($answer);
        }
        if (($answer['ok'] ?? null) !== true || ($answer['id'] ?? null) !== $id || !\is_array($answer['result'] ?? null)) {
            throw new ClientException(ClientException::GARBLED, 'the answer is not of the protocol');
        }

        return $answer['result'];
    }

    /**
     * Runs an exchange silently; whatever goes wrong, no half-read connection stays.
     *
     * @return array<array-key, mixed>
     */
    private function guard(callable $exchange): array
    {
        return Silence::during(function () use ($exchange): array {
            $keep = false;
            try {
                $result = $exchange();
                $keep = true;

                return $result;
            } catch (ClientException $failure) {
                $keep = $failure->isAnswer();

                throw $failure;
            } catch (\Error $error) {
                throw new ClientException(
                    ClientException::NOT_POSSIBLE,
                    'this PHP can not talk to the daemon: ' . $error->getMessage(),
                    $error
                );
            } finally {
                if (!$keep) {
                    $this->close();
                }
            }
        });
    }

    /**
     * @param array<array-key, mixed> $request
     */
    private static function encode(array $request): string
    {
        try {
            $flags = \JSON_UNESCAPED_SLASHES | \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_THROW_ON_ERROR;

            return \json_encode($request, $flags, self::MAX_JSON_DEPTH) . "\n";
        } catch (\Exception $reason) {
            throw new ClientException(
                ClientException::NOT_POSSIBLE,
                'the arguments can not be written as JSON: ' . $reason->getMessage(),
                $reason
            );
        }
    }

    /**
     * @return array<array-key, mixed>
     */
    private static function decode(string $json): array
    {
        $value = \json_decode($json, true, self::MAX_JSON_DEPTH);
        if (!\is_array($value)) {
            throw new ClientException(ClientException::GARBLED, 'the daemon sent something that is not a JSON object');
        }

        return $value;
    }

    /**
     * @param array<array-key, mixed> $answer
     */
    private static function refusal(array $answer): ClientException
    {
        $name = $answer['error'] ?? null;
        if (!\is_string($name) || $name === '' || \strpos($name, '.') !== false) {
            return new ClientException(ClientException::GARBLED, 'the daemon refused without a reason');
        }
        $message = $answer['message'] ?? null;

        return new ClientException($name, \is_string($message) && $message !== '' ? $message : "the daemon refused: $name");
    }

    /** How large an answer may be so that its decoding does not end the request at memory_limit. */
    private static function answerRoom(): int
    {
        $limit = Settings::memoryLimitBytes();
        if ($limit === null) {
            return self::MAX_ANSWER_BYTES;
        }

        return \max(0, \min(self::MAX_ANSWER_BYTES, \intdiv($limit - \memory_get_usage(), self::MEMORY_FACTOR)));
    }
}
