<?php
// SPDX-License-Identifier: MIT
// A unit of known work: ?early= ms of CPU before begin() (after another one with ?abandon=1),
// then ?hot= ms of CPU in hot() and ?wait= ms asleep under wait().
require __DIR__ . '/support.php';

function spin(int $ms): void
{
    $until = cpu_ns() + $ms * 1000000;
    do {
        for ($i = 0, $x = 1; $i < 20000; $i++) {
            $x = ($x * 3 + 1) & 0xffff;
        }
    } while (cpu_ns() < $until);
}

function early(int $ms): void
{
    spin($ms);
}

function hot(int $ms): void
{
    $until = cpu_ns() + $ms * 1000000;
    do {
        for ($i = 0, $x = 1; $i < 20000; $i++) {
            $x = ($x * 3 + 1) & 0xffff;
        }
    } while (cpu_ns() < $until);
}

function wait(int $ms): void
{
    usleep($ms * 1000);
}

$runtime = new Cbox\Profd\Runtime();
$at_start = ['wall' => hrtime(true), 'cpu' => cpu_ns()];
if ($_GET['early'] ?? 0) {
    early((int)$_GET['early']);
}
$context = json_decode($_GET['context'] ?? '{}', true);
if ($_GET['abandon'] ?? 0) {
    $runtime->begin(['trace_id' => str_repeat('0d', 16)]);
    spin(40); // long enough to be seen from outside
}
$handle = $runtime->begin($context);
$at_begin = ['wall' => hrtime(true), 'cpu' => cpu_ns()];
hot((int)($_GET['hot'] ?? 0));
wait((int)($_GET['wait'] ?? 0));
$at_end = ['wall' => hrtime(true), 'cpu' => cpu_ns()];
$result = $runtime->finish($handle, (bool)($_GET['profile'] ?? true), (bool)($_GET['stacks'] ?? true));
$after = ['wall' => hrtime(true), 'cpu' => cpu_ns()];
answer([
    'handle' => $handle,
    'result' => $result,
    'available' => $runtime->available(),
    'begin_wall_ns' => $at_end['wall'] - $at_begin['wall'],
    'begin_cpu_ns' => $at_end['cpu'] - $at_begin['cpu'],
    'start_wall_ns' => $at_end['wall'] - $at_start['wall'],
    'start_cpu_ns' => $at_end['cpu'] - $at_start['cpu'],
    'finish_wall_ns' => $after['wall'] - $at_end['wall'],
    'second_finish' => $runtime->finish($handle),
]);
