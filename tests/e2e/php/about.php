<?php
// SPDX-License-Identifier: MIT
$opcache = function_exists('opcache_get_status') ? opcache_get_status(false) : false;
echo json_encode([
    'version' => [PHP_MAJOR_VERSION, PHP_MINOR_VERSION, PHP_RELEASE_VERSION],
    'zts' => (bool)PHP_ZTS,
    'debug' => (bool)PHP_DEBUG,
    'opcache' => (bool)($opcache['opcache_enabled'] ?? false),
    'jit' => (bool)($opcache['jit']['on'] ?? false),
    'pid' => getmypid(),
]);
