<?php
// SPDX-License-Identifier: MIT
// Included by chain.php: a frame called "include".
/** @var App\Chain\Job $job */
(new App\Chain\Kernel)->handle($job);
