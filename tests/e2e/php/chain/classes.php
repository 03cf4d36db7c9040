<?php
// SPDX-License-Identifier: MIT
namespace App\Chain;

final class Job
{
    public $gate;
    public $out;
    public $fibers;

    public function __construct(string $gate, string $out, bool $fibers)
    {
        $this->gate = $gate;
        $this->out = $out;
        $this->fibers = $fibers;
    }

    public function withoutWaiting(): self
    {
        return new self('', '', $this->fibers);
    }
}

trait Traced
{
    protected function traced(Job $job)
    {
        $anonymous = new class {
            public function run(Job $job)
            {
                return $this->
                    magic($job);    // the line of a call is the one its opcode has
            }

            public function __call($name, $arguments)
            {
                return Kernel::route($arguments[0]);
            }
        };
        return $anonymous->run($job);
    }
}

abstract class Base
{
    public function handle(Job $job)
    {
        return $this->dispatch($job);
    }

    abstract protected function dispatch(Job $job);
}

class Kernel extends Base
{
    use Traced;

    private $job;

    protected function dispatch(Job $job)
    {
        return $this->traced($job);
    }

    public static function route(Job $job)
    {
        $controller = static function (Job $job) {
            return array_map(
                function ($name) use ($job) {
                    return (new static)->view($job, $name);
                },
                ['index']
            );
        };
        return $controller($job);
    }

    private function view(Job $job, string $name)
    {
        $this->job = $job;
        return (string)$this;
    }

    public function __toString(): string
    {
        $method = new \ReflectionMethod($this, 'reflected');
        $method->invoke($this, $this->job);
        return '';
    }

    public function reflected(Job $job)
    {
        $callback = fn(int $x) => call_user_func([$this, 'called'], $job, $x);
        return $callback(1);
    }

    public function called(Job $job, int $x)
    {
        return evaluated($job);
    }

    public function generate(Job $job)
    {
        yield 1;
        yield from $this->delegate($job);
    }

    private function delegate(Job $job)
    {
        yield 2;
        yield from inner($job);
        yield 4;
    }
}
