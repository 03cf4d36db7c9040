<?php
// SPDX-License-Identifier: MIT
// Methods: of a parent and overridden, static, abstract, magic (__call, __callStatic, __get), of a trait. Four classes of
// the same shape take turns. Legal stacks: tests/bench/truth/programs.py.
trait Work
{
    protected function work(int $n): int
    {
        for ($i = 0; $i < 6; $i++) {
            $n = $n * 3 & 0xffff;
        }
        return $n;
    }
}

abstract class Base
{
    public function run(int $n): int
    {
        return $this->step($n) + static::still($n) + $this->missing($n) + $this->secret;
    }

    abstract protected function step(int $n): int;
}

class North extends Base
{
    use Work;

    protected function step(int $n): int { return $this->work($n); }
    public static function still(int $n): int { return $n + 1 & 0xff; }
    public function __call(string $name, array $arguments) { return $this->work($arguments[0]); }
    public static function __callStatic(string $name, array $arguments) { return self::still($arguments[0]); }
    public function __get(string $name) { return $this->work(1); }
}

class East extends Base
{
    use Work;

    protected function step(int $n): int { return $this->work($n); }
    public static function still(int $n): int { return $n + 1 & 0xff; }
    public function __call(string $name, array $arguments) { return $this->work($arguments[0]); }
    public static function __callStatic(string $name, array $arguments) { return self::still($arguments[0]); }
    public function __get(string $name) { return $this->work(1); }
}

class South extends Base
{
    use Work;

    protected function step(int $n): int { return $this->work($n); }
    public static function still(int $n): int { return $n + 1 & 0xff; }
    public function __call(string $name, array $arguments) { return $this->work($arguments[0]); }
    public static function __callStatic(string $name, array $arguments) { return self::still($arguments[0]); }
    public function __get(string $name) { return $this->work(1); }
}

class West extends Base
{
    use Work;

    protected function step(int $n): int { return $this->work($n); }
    public static function still(int $n): int { return $n + 1 & 0xff; }
    public function __call(string $name, array $arguments) { return $this->work($arguments[0]); }
    public static function __callStatic(string $name, array $arguments) { return self::still($arguments[0]); }
    public function __get(string $name) { return $this->work(1); }
}

$all = [new North(), new East(), new South(), new West()];
for ($n = 0;;) {
    foreach ($all as $each) {
        $n = $each->run($n) + $each::absent($n) & 0xffff;
    }
}
