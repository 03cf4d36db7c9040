<?php
// SPDX-License-Identifier: MIT
// deep.php D [mode=func|method] [seconds=0(forever)]   or under FPM  ?d=D&m=mode&t=seconds
// Exactly D user frames on the stack while spinning: <main>, rec x (D-2), spin (leaf; no calls inside).
// The only legal stack once started: spin, rec*(D-2), <main>.
if (PHP_SAPI === 'cli') { $D=(int)($argv[1]??50); $m=$argv[2]??'func'; $t=(float)($argv[3]??0); }
else { $D=(int)($_GET['d']??50); $m=$_GET['m']??'func'; $t=(float)($_GET['t']??5); }

function spin($t) {
    $x = 0;
    if ($t <= 0) { for (;;) { $x = ($x * 3 + 1) & 0xffff; } }
    $end = hrtime(true) + (int)($t*1e9);
    do { for ($i=0; $i<2000000; $i++) { $x = ($x * 3 + 1) & 0xffff; } } while (hrtime(true) < $end);
    return $x;
}
function rec($n, $t) { if ($n <= 0) return spin($t); return rec($n-1, $t) + 1; }

class Deep {
    public function spin($t) {
        $x = 0;
        if ($t <= 0) { for (;;) { $x = ($x * 3 + 1) & 0xffff; } }
        $end = hrtime(true) + (int)($t*1e9);
        do { for ($i=0; $i<2000000; $i++) { $x = ($x * 3 + 1) & 0xffff; } } while (hrtime(true) < $end);
        return $x;
    }
    public function rec($n, $t) { if ($n <= 0) return $this->spin($t); return $this->rec($n-1, $t) + 1; }
}
if ($m === 'method') { $o = new Deep; $o->rec($D-3, $t); } else { rec($D-3, $t); }
