<?php
// SPDX-License-Identifier: MIT
// callgraph.php DIRECTORY: of every function in the PHP files below it, what its body mentions. Prints a JSON list of
// {file, line (0: the file's own code), calls: [names, without class or namespace, in lower case], dynamic, includes,
// iterates}: calls through variables, include and require, foreach. Reads tokens, runs nothing.

function last_part(string $name): string
{
    return strtolower(substr($name, (int)strrpos('\\' . $name, '\\')));
}

/** Tokens without blanks and comments, as [id, text, line]; of single characters the id is the character. */
function tokens(string $file): array
{
    $tokens = [];
    $line = 1;
    foreach (token_get_all(file_get_contents($file)) as $token) {
        if (!is_array($token)) {
            $tokens[] = [$token, $token, $line];
            continue;
        }
        $line = $token[2];
        if (!in_array($token[0], [T_WHITESPACE, T_COMMENT, T_DOC_COMMENT, T_OPEN_TAG, T_INLINE_HTML], true)) {
            $tokens[] = $token;
        }
    }
    return $tokens;
}

function functions(string $file): array
{
    $found = [['file' => $file, 'line' => 0, 'calls' => [], 'dynamic' => false, 'includes' => false, 'iterates' => false]];
    $open = [[0, -1, false]]; // functions that the token is in: number, depth of brackets outside of it, fn or not
    $depth = 0;
    $tokens = tokens($file);
    foreach ($tokens as $at => [$id, $text, $line]) {
        $before = $tokens[$at - 1][0] ?? null;
        $after = $tokens[$at + 1][0] ?? null;
        [$number, $outside, $is_arrow] = end($open);
        // An arrow function ends where the expression around it goes on.
        while ($is_arrow && $depth <= $outside && in_array($id, [',', ';', ')', ']', '}'], true)) {
            array_pop($open);
            [$number, $outside, $is_arrow] = end($open);
        }
        switch ($id) {
            case T_FUNCTION:
            case T_FN:
                $open[] = [count($found), $depth, $id === T_FN];
                $found[] = ['line' => $line] + $found[0];
                end($found);
                $found[key($found)]['calls'] = [];
                $found[key($found)]['dynamic'] = $found[key($found)]['includes'] = $found[key($found)]['iterates'] = false;
                break;
            case '(':
            case '[':
            case '{':
            case T_CURLY_OPEN:
            case T_DOLLAR_OPEN_CURLY_BRACES:
                $depth++;
                if ($id === '(' && in_array($before, [T_VARIABLE, ')', ']', '}'], true)) {
                    $found[$number]['dynamic'] = true;
                }
                break;
            case ')':
            case ']':
            case '}':
                $depth--;
                if ($id === '}' && !$is_arrow && $depth === $outside) {
                    array_pop($open);
                }
                break;
            case T_STRING:
            case T_NAME_QUALIFIED:
            case T_NAME_FULLY_QUALIFIED:
                if ($before === T_NEW) {
                    $found[$number]['calls']['__construct'] = true;
                } elseif ($after === '(' && $before !== T_FUNCTION) {
                    $found[$number]['calls'][last_part($text)] = true;
                }
                break;
            case T_NEW:
                $found[$number]['calls']['__construct'] = true;
                break;
            case T_INCLUDE:
            case T_INCLUDE_ONCE:
            case T_REQUIRE:
            case T_REQUIRE_ONCE:
                $found[$number]['includes'] = true;
                break;
            case T_FOREACH:
                $found[$number]['iterates'] = true;
                break;
        }
        // An abstract method has no body.
        if ($id === ';' && count($open) > 1 && !$is_arrow && $depth === $outside) {
            array_pop($open);
        }
    }
    return $found;
}

$all = [];
foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator($argv[1], FilesystemIterator::SKIP_DOTS)) as $file) {
    if (in_array($file->getExtension(), ['php', 'phtml'], true)) {
        foreach (functions($file->getPathname()) as $function) {
            $all[] = ['calls' => array_keys($function['calls'])] + $function;
        }
    }
}
echo json_encode($all), "\n";
