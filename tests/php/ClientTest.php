<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd\Tests;

use Cbox\Profd\Client;
use Cbox\Profd\ClientException;

/**
 * The protocol, for all verbs.
 */
final class ClientTest extends ProfdTestCase
{
    public function testItGreets(): void
    {
        $daemon = new FakeDaemon();
        $hello = $this->client($daemon)->hello();

        self::assertSame('0.9.7', $hello['version']);
        self::assertSame([1], $hello['protocols']);
    }

    public function testItSendsTheArgumentsAndReturnsTheResult(): void
    {
        $daemon = new FakeDaemon();
        $result = $this->client($daemon)->request('echo', [
            'pool' => "caf\u{e9}/\"\\", 'n' => 10, 'verb' => 'reset', 'id' => 77, 'nested' => ['a' => [1, 2]],
        ]);

        self::assertSame(
            ['verb' => 'echo', 'id' => 1, 'pool' => "caf\u{e9}/\"\\", 'n' => 10, 'nested' => ['a' => [1, 2]]],
            $result
        );
    }

    public function testItKeepsItsConnection(): void
    {
        $daemon = new FakeDaemon();
        $client = $this->client($daemon);
        for ($id = 1; $id <= 3; $id++) {
            self::assertSame($id, $client->request('echo')['id']);
        }

        self::assertSame(1, $daemon->connectionCount());
    }

    public function testItConnectsAgainWhenTheDaemonHasClosed(): void
    {
        $daemon = new FakeDaemon('closing after each answer');
        $client = $this->client($daemon);
        $client->request('echo');
        // The daemon's end closes when it likes; until then the connection looks alive.
        $deadline = hrtime(true) + 5e9;
        do {
            usleep(1000);
            $closed = \Closure::bind(static function () use ($client): bool {
                return !$client->connection->isUsable();
            }, null, Client::class)();
        } while (!$closed && hrtime(true) < $deadline);

        self::assertSame(2, $client->request('echo')['id']);
        self::assertSame(2, $daemon->connectionCount());
    }

    public function testAnAnswerInPartsIsPutTogether(): void
    {
        $daemon = new FakeDaemon();
        $client = $this->client($daemon);
        $repeats = 200000;

        self::assertSame(str_repeat("a\u{e9}\u{20ac}\u{1f600}\"\\", $repeats), $client->request('big', ['repeats' => $repeats])['text']);
        self::assertSame(2, $client->request('echo')['id'], 'nothing of it is left over');
    }

    public function testARefusalHasItsNameAndMessageAndKeepsTheConnection(): void
    {
        $daemon = new FakeDaemon();
        $client = $this->client($daemon);
        $refusal = $this->failure($client, 'dance');

        self::assertSame('unknown_verb', $refusal->name());
        self::assertSame('there is no verb dance; see docs/PROTOCOL.md', $refusal->getMessage());
        self::assertTrue($refusal->isAnswer());
        $client->request('echo');
        self::assertSame(1, $daemon->connectionCount());
    }

    /**
     * @dataProvider failures
     */
    public function testAFailureIsNamed(string $behaviour, string $name): void
    {
        $daemon = new FakeDaemon($behaviour);
        $failure = $this->failure(new Client(['socket' => $daemon->socket, 'budget_ms' => 100]), 'echo');

        self::assertSame($name, $failure->name());
        self::assertNotSame('', $failure->getMessage());
        self::assertStringNotContainsString("\n", $failure->getMessage());
    }

    public function failures(): array
    {
        return [
            ['silent', ClientException::TIMED_OUT],
            ['mute', ClientException::TIMED_OUT],
            ['half hello', ClientException::TIMED_OUT],
            ['half answer', ClientException::TIMED_OUT],
            ['drip', ClientException::TIMED_OUT],
            ['slow chunks', ClientException::TIMED_OUT],
            ['closing', ClientException::CLOSED],
            ['closing on a request', ClientException::CLOSED],
            ['half answer, closing', ClientException::CLOSED],
            ['not profd', ClientException::GARBLED],
            ['garbage', ClientException::GARBLED],
            ['nested deep', ClientException::GARBLED],
            ['another id', ClientException::GARBLED],
            ['list', ClientException::GARBLED],
            ['refusing ', ClientException::GARBLED],
            ['refusing client.timed_out', ClientException::GARBLED],
            ['another version', ClientException::UNSUPPORTED],
            ['flood', ClientException::TOO_LARGE],
            ['no room', 'too_many_connections'],
            ['refusing forbidden', 'forbidden'],
        ];
    }

    /**
     * @dataProvider floods
     */
    public function testAnAnswerWithoutEndIsCutOff(string $behaviour): void
    {
        $daemon = new FakeDaemon($behaviour);
        $before = memory_get_usage();
        $failure = $this->failure(new Client(['socket' => $daemon->socket, 'budget_ms' => 20000]), 'echo');

        self::assertSame(ClientException::TOO_LARGE, $failure->name());
        unset($failure);
        self::assertLessThan($before + 1048576, memory_get_usage(), 'and none of it is kept');
    }

    public function floods(): array
    {
        return [['endless line'], ['flood of chunks']];
    }

    public function testAfterAFailureItStartsAfresh(): void
    {
        $daemon = new FakeDaemon('another id');
        $client = $this->client($daemon);
        $this->failure($client, 'echo');
        $this->failure($client, 'echo');

        self::assertSame(2, $daemon->connectionCount());
    }

    public function testNobodyThereIsUnreachable(): void
    {
        $failure = $this->failure(new Client(['socket' => self::NOBODY_LISTENS]), 'status');

        self::assertSame(ClientException::UNREACHABLE, $failure->name());
        self::assertFalse($failure->isAnswer());
    }

    /**
     * @dataProvider argumentsJsonCanNotHold
     */
    public function testArgumentsThatJsonCanNotHoldAreRefused(array $arguments): void
    {
        $daemon = new FakeDaemon();
        $failure = $this->failure($this->client($daemon), 'echo', $arguments);

        self::assertSame(ClientException::NOT_POSSIBLE, $failure->name());
        self::assertSame([], $daemon->requests());
    }

    public function argumentsJsonCanNotHold(): array
    {
        $circle = [];
        $circle['again'] = &$circle;

        return [
            'NAN' => [['n' => NAN]],
            'a circle' => [$circle],
            'an object that throws' => [['o' => new class () implements \JsonSerializable {
                #[\ReturnTypeWillChange]
                public function jsonSerialize()
                {
                    throw new \DomainException('no');
                }
            }]],
        ];
    }

    public function testAClosedClientConnectsAgain(): void
    {
        $daemon = new FakeDaemon();
        $client = $this->client($daemon);
        $client->request('echo');
        $client->close();
        $client->close();
        $client->request('echo');

        self::assertSame(2, $daemon->connectionCount());
    }

    public function testDescriptorsAboveSelectsLimitWork(): void
    {
        $daemon = new FakeDaemon();
        $code = '$keep = []; for ($i = 0; $i < 1100; $i++) { $f = @fopen("/dev/null", "r"); if (!$f) { echo "few"; exit; }'
            . ' $keep[] = $f; } $c = new Cbox\Profd\Client(["socket" => getenv("S"), "budget_ms" => 5000]);'
            . ' echo strlen($c->request("big", ["repeats" => 50000])["text"]);';
        $output = self::php($code, [], ['S' => $daemon->socket]);
        if ($output === 'few') {
            self::markTestSkipped('this process may not open 1100 files (ulimit -n)');
        }

        self::assertSame((string) (50000 * 12), $output);
    }

    private function client(FakeDaemon $daemon): Client
    {
        return new Client(['socket' => $daemon->socket, 'budget_ms' => 5000]);
    }

    private function failure(Client $client, string $verb, array $arguments = []): ClientException
    {
        try {
            $client->request($verb, $arguments);
        } catch (ClientException $failure) {
            return $failure;
        }
        self::fail('it did not fail');
    }
}
