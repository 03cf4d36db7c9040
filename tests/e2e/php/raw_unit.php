<?php
// SPDX-License-Identifier: MIT
// The protocol by hand, without the client: the well-known global, and one line to ?socket= . ?ms= of work, ?after= more
// lines to send before finish (a JSON list).
function read_answer($socket): array
{
    $answer = json_decode(fgets($socket), true);
    if (!isset($answer['chunk'])) {
        return $answer;
    }
    for ($text = $answer['chunk']; $answer['more']; $text .= $answer['chunk']) {
        $answer = json_decode(fgets($socket), true);
    }
    return json_decode($text, true);
}

function work(int $ms): void
{
    $end = hrtime(true) + $ms * 1000000;
    while (hrtime(true) < $end) {
    }
}

$socket = stream_socket_client('unix://' . $_GET['socket']);
$hello = json_decode(fgets($socket), true);
$handle = hrtime(true);
$GLOBALS['__cbox_profd'] = "00-{$_GET['trace']}-00f067aa0ba902b7-01;u=queue;h=$handle;n=report.daily";
work((int)$_GET['ms']);
$context = $GLOBALS['__cbox_profd'];
unset($GLOBALS['__cbox_profd']);
$lines = [
    ['verb' => 'finish', 'id' => 'wrong', 'handle' => $handle + 1],
    ['verb' => 'finish', 'id' => 7, 'handle' => $handle, 'context' => $context, 'profile' => true, 'stacks' => true],
    ['verb' => 'finish', 'id' => 8, 'handle' => $handle],
    ['verb' => 'status', 'id' => 9, 'a field of the future' => [1, 2]],
];
foreach ($lines as $line) {
    fwrite($socket, json_encode($line) . "\n");
}
$answers = [];
foreach ($lines as $line) {
    $answers[] = read_answer($socket);
}
echo json_encode(['pid' => getmypid(), 'hello' => $hello, 'handle' => $handle, 'answers' => $answers]);
