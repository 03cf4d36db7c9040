<?php
// SPDX-License-Identifier: MIT
// shares.php KIND SECONDS [CLIENT], or ?kind=&seconds=&client= : a tenth, three and six tenths of the time go to ten(), thirty()
// and sixty(), and how much went there really is measured by this program itself, around each call, with hrtime() and
// getrusage(). KIND says what the time is: cpu (each spins until its own CPU clock has advanced 1, 3, 6 ms), loops (1, 3, 6
// times the same inner loop), wall (sleeps), mixed (spins, sleeps, and half of each).
// Prints "begun", and {"truth": {function: {"wall": ns, "cpu": ns}}, "result": what finish() gave, if a client was named}.
[$kind, $seconds, $client] = PHP_SAPI === 'cli'
    ? [$argv[1], (float)$argv[2], null] : [$_GET['kind'], (float)$_GET['seconds'], $_GET['client']];

function cpu_ns(): int
{
    $usage = getrusage();
    return ($usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec']) * 1000000000
        + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) * 1000;
}

function spin(int $us): void
{
    $until = cpu_ns() + $us * 1000;
    do {
        for ($i = 0, $x = 1; $i < 200; $i++) {
            $x = ($x * 3 + 1) & 0xffff;
        }
    } while (cpu_ns() < $until);
}

function ten(string $kind): void
{
    switch ($kind) {
        case 'loops':
            for ($i = 0, $x = 1; $i < 200000; $i++) {
                $x = ($x * 3 + 1) & 0xffff;
            }
            break;
        case 'wall':
            usleep(1000);
            break;
        default:
            spin(1000);
    }
}

function thirty(string $kind): void
{
    switch ($kind) {
        case 'loops':
            for ($i = 0, $x = 1; $i < 600000; $i++) {
                $x = ($x * 3 + 1) & 0xffff;
            }
            break;
        case 'wall':
        case 'mixed':
            usleep(3000);
            break;
        default:
            spin(3000);
    }
}

function sixty(string $kind): void
{
    switch ($kind) {
        case 'loops':
            for ($i = 0, $x = 1; $i < 1200000; $i++) {
                $x = ($x * 3 + 1) & 0xffff;
            }
            break;
        case 'wall':
            usleep(6000);
            break;
        case 'mixed':
            spin(3000);
            usleep(3000);
            break;
        default:
            spin(6000);
    }
}

$truth = [];
foreach (['ten', 'thirty', 'sixty'] as $function) {
    $truth[$function] = ['wall' => 0, 'cpu' => 0];
}
if ($client) {
    require "$client/autoload.php";
    $runtime = new Cbox\Profd\Runtime();
    $handle = $runtime->begin([]);
}
echo "begun\n";
if (!$client) {
    usleep(700000); // for somebody to attach; not part of what is measured
}
$began = hrtime(true);
do {
    foreach ($truth as $function => $_) {
        $cpu = cpu_ns();
        $wall = hrtime(true);
        $function($kind);
        $truth[$function]['wall'] += hrtime(true) - $wall;
        $truth[$function]['cpu'] += cpu_ns() - $cpu;
    }
} while (hrtime(true) - $began < $seconds * 1e9);
$result = $client ? $runtime->finish($handle, true, true) : null;
echo json_encode(['truth' => $truth, 'result' => $result]), "\n";
