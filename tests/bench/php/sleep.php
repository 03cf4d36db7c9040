<?php
// SPDX-License-Identifier: MIT
// worker blocked in sleep() at user depth d (default 4).  FPM: ?t=seconds&d=depth   CLI: sleep.php seconds depth
if (PHP_SAPI==='cli') { $t=(int)($argv[1]??3600); $d=(int)($argv[2]??4); } else { $t=(int)($_GET['t']??3600); $d=(int)($_GET['d']??4); }
class Svc { function run(int $n, int $t) { return $n <= 0 ? waiter($t) : $this->run($n-1, $t); } }
function waiter($t) { return sleep($t); }
(new Svc)->run($d-3, $t); echo "ok\n";
