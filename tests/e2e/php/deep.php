<?php
// SPDX-License-Identifier: MIT
// Exactly D user frames: {main}, Deep::descend x (D-2), Deep::bottom. At the bottom it waits at ?gate=, or spins for ?seconds=.
class Deep
{
    private $gate;
    private $seconds;

    public function __construct(string $gate, float $seconds)
    {
        $this->gate = $gate;
        $this->seconds = $seconds;
    }

    public function descend(int $more): int
    {
        if ($more <= 0) {
            return $this->bottom() + 1;
        }
        return $this->descend($more - 1) + 1;
    }

    private function bottom(): int
    {
        if ($this->gate !== '') {
            $socket = stream_socket_client('unix://' . $this->gate);
            fwrite($socket, '!');
            fread($socket, 1);
            return 0;
        }
        $x = 0;
        $end = hrtime(true) + (int)($this->seconds * 1e9);
        do {
            for ($i = 0; $i < 200000; $i++) {
                $x = ($x * 3 + 1) & 0xffff;
            }
        } while (hrtime(true) < $end);
        return $x;
    }
}

(new Deep($_GET['gate'] ?? '', (float)($_GET['seconds'] ?? 1)))->descend((int)$_GET['d'] - 3);
echo json_encode(['pid' => getmypid()]);
