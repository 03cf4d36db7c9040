<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * Why a request to the daemon has no result: a name to compare, and one line for people.
 *
 * Either the conversation failed (the constants below), or it worked and the daemon said no: then the name is the
 * protocol's own ("no_unit", "not_a_target", "forbidden", …; see docs/PROTOCOL.md).
 */
final class ClientException extends \RuntimeException
{
    /** No connection: no such socket, no permission, nobody listens, no room in the queue. */
    public const UNREACHABLE = 'client.unreachable';
    /** The time given for the whole exchange is over. */
    public const TIMED_OUT = 'client.timed_out';
    /** The daemon closed before it answered. */
    public const CLOSED = 'client.closed';
    /** What came is not of the protocol. */
    public const GARBLED = 'client.garbled';
    /** The daemon speaks other versions of the protocol only. */
    public const UNSUPPORTED = 'client.unsupported';
    /** The answer is larger than this process can take. */
    public const TOO_LARGE = 'client.too_large';
    /** This PHP lacks a function the client needs (disable_functions, no ext-json). */
    public const NOT_POSSIBLE = 'client.not_possible';

    /** @var string */
    private $name;

    public function __construct(string $name, string $message, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
        $this->name = $name;
    }

    public function name(): string
    {
        return $this->name;
    }

    /** True when the daemon itself refused; false when the conversation failed. */
    public function isAnswer(): bool
    {
        return \strncmp($this->name, 'client.', 7) !== 0;
    }
}
