<?php
// SPDX-License-Identifier: MIT
// A unit that is open while the request waits at ?gate= ; ?trace= names it.
require __DIR__ . '/support.php';

function wait_at(string $gate): void
{
    $socket = stream_socket_client('unix://' . $gate);
    fwrite($socket, '!');
    fread($socket, 1);
}

$runtime = new Cbox\Profd\Runtime();
$handle = $runtime->begin(['trace_id' => $_GET['trace'] ?? str_repeat('ab', 16)]);
$began = hrtime(true);
wait_at($_GET['gate']);
$before = hrtime(true);
$result = $runtime->finish($handle, true, true);
answer([
    'handle' => $handle,
    'result' => $result,
    'open_wall_ns' => $before - $began,
    'finish_wall_ns' => hrtime(true) - $before,
    'available' => $runtime->available(),
]);
