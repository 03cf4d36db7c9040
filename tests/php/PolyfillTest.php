<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

namespace Cbox\Profd\Tests;

/**
 * The extension's functions. Each test in a process of its own: functions can't be taken back.
 */
final class PolyfillTest extends ProfdTestCase
{
    private const LOAD = 'require getenv("POLYFILL"); ';

    public function testNothingIsDefinedUnlessAskedFor(): void
    {
        self::assertSame('false', $this->runPolyfilled('new Runtime(); var_export(function_exists("cbox_telemetry_begin"));'));
    }

    public function testTheSignaturesAreTheExtensions(): void
    {
        $code = self::LOAD . 'foreach (["version", "status", "begin", "finish", "drain_crashes"] as $n) {'
            . ' $f = new ReflectionFunction("cbox_telemetry_$n"); echo $n, "("; foreach ($f->getParameters() as $p) {'
            . ' echo $p->getType()->getName(), " $", $p->getName(), $p->isOptional() ? "=" . json_encode($p->getDefaultValue()) : "", ","; }'
            . ' echo "):", $f->getReturnType()->getName(), "\n"; }';

        self::assertSame(
            "version():string\nstatus():array\nbegin(array \$context=[],):int\n"
            . "finish(int \$handle,bool \$includeProfile=false,bool \$includeStacks=false,):array\n"
            . "drain_crashes(int \$max=32,):array\n",
            $this->runPolyfilled($code)
        );
    }

    public function testCodeForTheExtensionRunsUnchanged(): void
    {
        $daemon = new FakeDaemon();
        $code = self::LOAD . '$automatic = cbox_telemetry_status()["unit_handle"]; $h = cbox_telemetry_begin(["unit" => "http"]);'
            . ' var_dump($h === $automatic); $r = cbox_telemetry_finish($h, true, true);'
            . ' foreach ($r["profile"]["stacks"] as $row) { echo count($row); } echo "\n";'
            . ' var_dump($r["automatic"], cbox_telemetry_finish($h), cbox_telemetry_finish(0), cbox_telemetry_drain_crashes());'
            . ' echo cbox_telemetry_version(), cbox_telemetry_status()["unit_handle"];';
        $output = $this->runPolyfilled($code, ['CBOX_PROFD_SOCKET' => $daemon->socket, 'CBOX_PROFD_BUDGET_MS' => '5000']);

        self::assertSame(
            "bool(true)\n333\nbool(true)\narray(0) {\n}\narray(0) {\n}\narray(0) {\n}\n0.1.00",
            $output
        );
    }

    public function testWithoutADaemonItIsQuietAndComplete(): void
    {
        $code = self::LOAD . '$h = cbox_telemetry_begin(["sampled" => NAN, "unit" => []]); $r = cbox_telemetry_finish($h);'
            . ' echo $h > 0 ? 1 : 0, count($r["counters"]), var_export($r["available"], true);';

        self::assertSame('117false', $this->runPolyfilled($code, ['CBOX_PROFD_SOCKET' => self::NOBODY_LISTENS]));
    }

    public function testArgumentsAreConvertedAsTheCallerWantsThem(): void
    {
        $code = self::LOAD . 'var_dump(cbox_telemetry_finish("12", 1, "yes")); try { cbox_telemetry_begin(null); }'
            . ' catch (TypeError $e) { echo "null refused"; }';

        self::assertSame("array(0) {\n}\nnull refused", $this->runPolyfilled($code));
    }

    public function testItMayBeLoadedTwiceAndBesideOtherDefinitions(): void
    {
        $code = 'function cbox_telemetry_version(): string { return "theirs"; } ' . self::LOAD . self::LOAD
            . 'echo cbox_telemetry_version(), " ", cbox_telemetry_begin() > 0 ? "ours" : "";';

        self::assertSame('theirs ours', $this->runPolyfilled($code));
    }

    public function testItFindsTheClientByItself(): void
    {
        $command = 'require getenv("POLYFILL"); spl_autoload_call("Nothing"); echo cbox_telemetry_begin() > 0 ? "works" : "";';

        self::assertSame('works', $this->runPolyfilled($command));
    }

    private function runPolyfilled(string $code, array $environment = []): string
    {
        return self::php($code, [], $environment + ['POLYFILL' => dirname(__DIR__, 2) . '/client/php/polyfill.php']);
    }
}
