<?php
// SPDX-License-Identifier: MIT
// For each line of standard input: a child that sleeps, whose pid is printed.

pcntl_signal(SIGCHLD, SIG_IGN);
echo "READY\n";
while (fgets(STDIN) !== false) {
    $pid = pcntl_fork();
    if ($pid === 0) {
        sleep(60);
        exit;
    }
    echo $pid, "\n";
}
