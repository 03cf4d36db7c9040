<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd;

/**
 * The way from this process to the daemon at one socket, and how much of the request's time it may still cost.
 *
 * A request has one allowance, the budget, for everything that goes wrong: each failed exchange takes its time from it,
 * the next may wait only for what is left, and when nothing is left nobody asks again. So a daemon that hangs costs a
 * request one budget, however often the request begins and finishes units. Where a "request" is the life of a process
 * (queue workers), the allowance is refilled now and then, and the connection is not kept: the daemon has a limited
 * number of places, and an idle worker would hold one for ever.
 */
final class DaemonLink
{
    private const REFILL_NS = 30000000000;
    /** SAPIs in which every request starts from nothing. */
    private const SAPIS_OF_SHORT_REQUESTS = ['fpm-fcgi', 'cgi-fcgi', 'apache2handler', 'cli-server', 'litespeed'];

    /** @var array<string, self> by socket: all Runtime objects of a process share them */
    private static $links = [];

    /** @var Client */
    private $client;
    /** @var bool */
    private $isLongLived;
    /** @var int time that failures have cost */
    private $spentNs = 0;
    /** @var int CLOCK_MONOTONIC, ns */
    private $lastFailureNs = 0;
    /** @var string */
    private $lastFailureName = '';
    /** @var string The exception itself isn't kept: its trace would keep the application's objects alive. */
    private $lastFailureMessage = '';

    private function __construct(string $socket)
    {
        $this->client = new Client(['socket' => $socket]);
        $this->isLongLived = !\in_array(\PHP_SAPI, self::SAPIS_OF_SHORT_REQUESTS, true);
    }

    public static function to(string $socket): self
    {
        return self::$links[$socket] ?? (self::$links[$socket] = new self($socket));
    }

    /**
     * @return array<string, mixed>
     */
    public function hello(int $budgetNs): array
    {
        return $this->spend($budgetNs, function (Deadline $deadline): array {
            return $this->client->hello($deadline);
        });
    }

    /**
     * @param array<string, mixed> $arguments
     * @return array<array-key, mixed>
     */
    public function ask(string $verb, array $arguments, int $budgetNs): array
    {
        return $this->spend($budgetNs, function (Deadline $deadline) use ($verb, $arguments): array {
            return $this->client->request($verb, $arguments, $deadline);
        });
    }

    /**
     * @return array<array-key, mixed>
     */
    private function spend(int $budgetNs, callable $exchange): array
    {
        $beganNs = \hrtime(true);
        if ($this->isLongLived && $this->spentNs > 0 && $beganNs - $this->lastFailureNs > self::REFILL_NS) {
            $this->spentNs = 0;
        }
        if ($this->spentNs >= $budgetNs) {
            throw new ClientException(
                $this->lastFailureName,
                $this->lastFailureMessage . '; not asked again, the time for that is used up'
            );
        }
        try {
            return $exchange(Deadline::after($budgetNs - $this->spentNs));
        } catch (ClientException $failure) {
            if (!$failure->isAnswer()) {
                $this->lastFailureNs = \hrtime(true);
                $this->spentNs += $this->lastFailureNs - $beganNs;
                $this->lastFailureName = $failure->name();
                $this->lastFailureMessage = $failure->getMessage();
            }

            throw $failure;
        } finally {
            if ($this->isLongLived) {
                $this->client->close();
            }
        }
    }
}
