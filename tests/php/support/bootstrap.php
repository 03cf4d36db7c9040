<?php

// SPDX-License-Identifier: MIT

declare(strict_types=1);

require_once __DIR__ . '/../../../client/php/autoload.php';
require_once __DIR__ . '/FakeDaemon.php';
require_once __DIR__ . '/ProfdTestCase.php';
