<?php
// SPDX-License-Identifier: MIT
// A worker that measures its own round trips, ?rounds= of each kind by turns: to a server that only echoes (?echo=),
// and `finish` to the daemon (?socket=) without and with the whole profile. Before each: a unit of 3 ms of waiting and
// a little work. Answers {"kind": [nanoseconds, …]}.
function round_trip($socket, array $request): int
{
    $line = json_encode($request) . "\n";
    $began = hrtime(true);
    fwrite($socket, $line);
    do {
        $answer = fgets($socket);
    } while (strpos($answer, '"more":true') !== false);
    $took = hrtime(true) - $began;
    if (isset($request['context']) && strpos($answer, '"ok":true') === false) {
        throw new RuntimeException($answer);
    }
    return $took;
}

function begin(): int
{
    $handle = hrtime(true);
    $GLOBALS['__cbox_profd'] = '00-' . bin2hex(random_bytes(16)) . "-00f067aa0ba902b7-01;u=queue;h=$handle";
    return $handle;
}

function work(int $more): void
{
    if ($more > 0) {
        work($more - 1);
        return;
    }
    for ($i = 0; $i < 3; $i++) {
        usleep(1000);
        for ($j = 0; $j < 1000; $j++) {
            $x = sqrt($j);
        }
    }
}

function connect(string $path)
{
    $socket = stream_socket_client("unix://$path");
    fgets($socket);
    return $socket;
}

$daemon = connect($_GET['socket']);
$echo = connect($_GET['echo']);
$took = ['echo (control)' => [], 'finish' => [], 'finish with profile and stacks' => []];
for ($round = 0; $round < (int)$_GET['rounds']; $round++) {
    foreach (array_keys($took) as $kind) {
        $handle = begin();
        work(20);
        $context = $GLOBALS['__cbox_profd'];
        unset($GLOBALS['__cbox_profd']);
        if ($kind === 'echo (control)') {
            $took[$kind][] = round_trip($echo, ['verb' => 'echo']);
            continue;
        }
        $all = $kind === 'finish with profile and stacks';
        $finish = ['verb' => 'finish', 'handle' => $handle, 'context' => $context, 'profile' => $all, 'stacks' => $all];
        $took[$kind][] = round_trip($daemon, $finish);
    }
}
echo json_encode($took);
