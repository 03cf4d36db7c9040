<?php
// SPDX-License-Identifier: MIT
// Every kind of frame PHP has, one upon the other, down to a leaf that writes debug_backtrace() to a file and then
// blocks: what `dump` must print is what PHP itself wrote down. PHP 7.4 syntax.
//   ?gate=SOCKET the leaf connects there and waits for it to be closed   ?out=FILE where the backtrace goes
//   ?warm=N      runs the chain N times without blocking first, so that a tracing JIT has compiled it
namespace App\Chain;

require_once __DIR__ . '/chain/classes.php';
require_once __DIR__ . '/chain/functions.php';

$job = new Job($_GET['gate'], $_GET['out'], PHP_VERSION_ID >= 80100);

for ($warm = (int)($_GET['warm'] ?? 0); $warm > 0; $warm--) {
    (new Kernel)->handle($job->withoutWaiting());
}

include __DIR__ . '/chain/entry.php';

echo json_encode(['pid' => getmypid(), 'done' => true]);
