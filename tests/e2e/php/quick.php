<?php
// SPDX-License-Identifier: MIT
// The shortest unit: begin with ?trace=, about ?us= microseconds of work, finish.
require __DIR__ . '/support.php';

function work(int $us): void
{
    $end = hrtime(true) + $us * 1000;
    while (hrtime(true) < $end) {
    }
}

$runtime = new Cbox\Profd\Runtime();
$handle = $runtime->begin(['trace_id' => $_GET['trace'], 'span_id' => substr($_GET['trace'], 0, 16)]);
work((int)($_GET['us'] ?? 300));
$before = hrtime(true);
$result = $runtime->finish($handle);
answer(['handle' => $handle, 'result' => $result, 'finish_wall_ns' => hrtime(true) - $before]);
