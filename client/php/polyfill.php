<?php

// SPDX-License-Identifier: MIT

/*
 * Opt-in: the functions of the cbox_telemetry extension, with its signatures and result shape, answered by cbox-profd.
 * Code that was written for the extension and asks function_exists('cbox_telemetry_begin') runs unchanged.
 *
 * Does nothing where the extension is loaded. Without Composer this file finds the client's classes by itself. No
 * strict_types: callers decide for themselves how their arguments are converted, as with the extension.
 */

if (!\extension_loaded('cbox_telemetry')) {
    if (!\class_exists(\Cbox\Profd\Runtime::class)) {
        require_once __DIR__ . '/autoload.php';
    }

    if (!\function_exists('cbox_telemetry_version')) {
        function cbox_telemetry_version(): string
        {
            return \Cbox\Profd\Runtime::VERSION;
        }
    }

    if (!\function_exists('cbox_telemetry_status')) {
        function cbox_telemetry_status(): array
        {
            return (new \Cbox\Profd\Runtime())->status();
        }
    }

    if (!\function_exists('cbox_telemetry_begin')) {
        function cbox_telemetry_begin(array $context = []): int
        {
            return (new \Cbox\Profd\Runtime())->begin($context);
        }
    }

    if (!\function_exists('cbox_telemetry_finish')) {
        function cbox_telemetry_finish(int $handle, bool $includeProfile = false, bool $includeStacks = false): array
        {
            $triples = ['stacks' => \Cbox\Profd\ProfileShape::TRIPLES];

            return (new \Cbox\Profd\Runtime($triples))->finish($handle, $includeProfile, $includeStacks);
        }
    }

    if (!\function_exists('cbox_telemetry_drain_crashes')) {
        function cbox_telemetry_drain_crashes(int $max = 32): array
        {
            return (new \Cbox\Profd\Runtime())->drainCrashes($max);
        }
    }
}
