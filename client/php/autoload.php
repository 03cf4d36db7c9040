<?php

// SPDX-License-Identifier: MIT

/*
 * Loads the client's classes where there is no Composer: `require '/path/to/client/php/autoload.php';`.
 * The same mapping as in composer.json; requiring both does no harm.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (strncmp($class, 'Cbox\\Profd\\', 11) === 0) {
        $file = __DIR__ . '/src/' . strtr(substr($class, 11), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
