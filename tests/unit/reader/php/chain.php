<?php
// One call chain through every kind of frame PHP has. At its leaf it prints the stack as debug_backtrace() sees it,
// a line a frame, leaf first: name|file|line (file and line empty for internal functions). Then it blocks.
namespace App\X;

function leaf()
{
    $frames = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $file = __FILE__;
    $line = __LINE__ + 13;
    $rows = ['fread||0'];
    foreach ($frames as $frame) {
        $class = isset($frame['class']) ? strtok($frame['class'], "\0") . '::' : '';
        $internal = $file === '' ;
        $rows[] = $class . strtok($frame['function'], "\0") . '|' . $file . '|' . ($internal ? 0 : $line);
        $file = $frame['file'] ?? '';
        $line = $frame['line'] ?? 0;
    }
    $rows[] = '{main}|' . $file . '|' . $line;
    echo implode("\n", $rows), "\nREADY\n";
    // Blocked here until the test closes the pipe:

    \fread(STDIN, 1);
}

trait Greets
{
    public function greet($next) { return $next(); }
}

abstract class Base
{
    public function inherited($next)
    {
        return $next();
    }
    public static function still(callable $next)
    {
        return self::hidden($next);
    }
    private static function hidden($next)
    {
        return (static function () use ($next) {
            return $next();
        })();
    }
}

class Child extends Base
{
    use Greets;
    public function __call($name, $arguments)
    {
        return $arguments[0]();
    }
    public static function __callStatic($name, $arguments)
    {
        return $arguments[0]();
    }
    public function __invoke($next)
    {
        return $this->bound()($next);
    }
    private function bound()
    {
        return function ($next) {
            return $next();
        };
    }
    public function __toString(): string
    {
        ($this->next)();
        return '';
    }
    public $next;
}

function inner($next)
{
    yield 1;
    yield $next();
}
function middle($next)
{
    yield 0;
    yield from inner($next);
}
function outer($next)
{
    $generator = middle($next);
    yield from
        $generator;
}

$chain = function () {
    leaf();
};
$wrap = [];
$wrap[] = function ($next) {
    return array_map(function ($x) use ($next) {
        return $next();
    }, [1]);
};
$wrap[] = function ($next) {
    foreach (outer($next) as $value) {
        $last = $value;
    }
};
$wrap[] = function ($next) {
    $object = new Child();
    $object->inherited($next);
};
$wrap[] = function ($next) {
    Child::still($next);
};
$wrap[] = function ($next) {
    (new Child())->magic($next);
};
$wrap[] = function ($next) {
    Child::magic($next);
};
$wrap[] = function ($next) {
    $object = new Child();
    $object($next);
};
$wrap[] = function ($next) {
    (new Child())->greet($next);
};
$wrap[] = function ($next) {
    $object = new class {
        public function go($next)
        {
            return (fn() => $next())();
        }
    };
    $object->go($next);
};
$wrap[] = function ($next) {
    eval('

        $next();
    ');
};
$wrap[] = function ($next) {
    eval('namespace Evaled; function made_by_eval($next) {
        $next();
    }
    made_by_eval($next);');
};
$wrap[] = function ($next) {
    include __DIR__ . '/included.inc';
};
$wrap[] = function ($next) {
    require __DIR__ . '/included.inc';
};
$wrap[] = function ($next) {
    require_once __DIR__ . '/included.inc';
};
$wrap[] = function ($next) {
    $next = \Closure::fromCallable([new Child(), 'inherited']);
    usort($GLOBALS['two'], function ($a, $b) use ($next) {
        static $done = false;
        if (!$done) {
            $done = true;
            $next($GLOBALS['after_usort']);
        }
        return 0;
    });
};
$wrap[] = function ($next) {
    $map = \Closure::fromCallable('array_map');
    $map($next, [1]);
};
$wrap[] = function ($next) {
    call_user_func_array([new Child(), 'inherited'], [$next]);
};
$wrap[] = function ($next) {
    $object = new Child();
    $object->next = $next;
    return 'text' .
        $object;
};
$wrap[] = function ($next) {
    $iterator = new \CallbackFilterIterator(new \ArrayIterator([1, 2]), function () use ($next) {
        return $next();
    });
    foreach ($iterator as $value) {
        break;
    }
};
$wrap[] = function ($next) {
    try {
        throw new \RuntimeException('unwinding');
    } catch (\RuntimeException $exception) {
        $next();
    } finally {
        $over = true;
    }
};
$wrap[] = function ($next) {
    $generator = (function () use ($next) {
        $received = yield 1;
        $next();
    })();
    $generator->current();
    $generator->send('x');
};
if (PHP_VERSION_ID >= 80100) {
    $wrap[] = function ($next) {
        $fiber = new \Fiber(function ($next) {
            $got = \Fiber::suspend();
            $next();
        });
        $fiber->start($next);
        $fiber->resume(1);
    };
    $wrap[] = function ($next) {
        $fiber = new \Fiber(function () use ($next) {
            foreach (outer($next) as $value) {
                $last = $value;
            }
        });
        $fiber->start();
    };
}

$two = [1, 2];
foreach ($wrap as $step) {
    $next = $chain;
    $chain = function () use ($step, $next) {
        if ($step === $GLOBALS["wrap"][14]) {
            $GLOBALS["after_usort"] = $next;
        }
        $step($next);
    };
}
$chain();
