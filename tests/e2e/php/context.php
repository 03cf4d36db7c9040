<?php
// SPDX-License-Identifier: MIT
// Sets the well-known global in one of the ways PHP code does (?form=) to ?value=, then waits at ?gate= .
function through_globals($value): void
{
    $GLOBALS['__cbox_profd'] = $value;
}

function through_global_statement($value): void
{
    global $__cbox_profd;
    $__cbox_profd = $value;
}

function wait_at(string $gate): void
{
    $socket = stream_socket_client('unix://' . $gate);
    fwrite($socket, '!');
    fread($socket, 1);
}

$value = $_GET['value'] ?? '';
switch ($_GET['form']) {
    case 'top-level variable':
        $__cbox_profd = $value;
        break;
    case '$GLOBALS':
        through_globals($value);
        break;
    case 'global statement':
        through_global_statement($value);
        break;
    case 'reference':
        $holder = ['context' => 'not yet'];
        $__cbox_profd = &$holder['context'];
        $holder['context'] = $value;
        break;
    case 'variable variable':
        $name = '__cbox_' . 'profd';
        $$name = $value;
        break;
    case '8 KiB':
        $__cbox_profd = str_repeat($value, (int)(8192 / strlen($value)) + 1);
        break;
    case 'array':
        $__cbox_profd = [$value];
        break;
    case 'integer':
        $__cbox_profd = 42;
        break;
    case 'object':
        $__cbox_profd = new ArrayObject([$value]);
        break;
    case 'none':
        break;
}
wait_at($_GET['gate']);
echo json_encode(['pid' => getmypid()]);
