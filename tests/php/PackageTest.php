<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd\Tests;

use Cbox\Profd\Runtime;
use Cbox\Profd\TraceContext;

/**
 * What ties the package to the rest of the tree.
 */
final class PackageTest extends ProfdTestCase
{
    private const ROOT = __DIR__ . '/../..';

    public function testItsVersionIsTheProjects(): void
    {
        self::assertSame(Runtime::VERSION, trim((string) file_get_contents(self::ROOT . '/VERSION')));
    }

    public function testComposerFindsTheClassesWhereTheAutoloaderDoes(): void
    {
        $package = json_decode((string) file_get_contents(self::ROOT . '/client/php/composer.json'), true);

        self::assertSame('cbox/profd-client', $package['name']);
        self::assertSame(['Cbox\\Profd\\' => 'src/'], $package['autoload']['psr-4']);
        self::assertSame(['php', 'ext-json'], array_keys($package['require']), 'no dependencies');
        foreach (glob(self::ROOT . '/client/php/src/*.php') as $file) {
            self::assertTrue(class_exists('Cbox\\Profd\\' . basename($file, '.php')), $file);
        }
    }

    public function testTheLongestContextFitsTheDaemonsLimit(): void
    {
        $longest = TraceContext::fromArray([
            'trace_id' => self::TRACE_ID, 'span_id' => self::SPAN_ID, 'unit' => 'schedule', 'profile' => false,
            'period_us' => 100000, 'max_depth' => 1024, 'name' => str_repeat("\u{1f600}", 1000),
        ])->encode(PHP_INT_MAX);
        $header = (string) file_get_contents(self::ROOT . '/reader/trace_context.h');
        self::assertSame(1, preg_match('/TRACE_CONTEXT_MAX_BYTES (\d+)/', $header, $limit));

        self::assertLessThanOrEqual((int) $limit[1], strlen($longest));
    }
}
