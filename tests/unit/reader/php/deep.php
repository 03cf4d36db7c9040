<?php
// deep.php D: blocks in fread() below D nested method calls.
class Deep
{
    public function down(int $levels, string $padding)
    {
        if ($levels <= 1) {
            fread(STDIN, 1);
            return 0;
        }
        return $this->down($levels - 1, $padding) + 1;
    }
}

echo $argv[1], "\nREADY\n";
(new Deep())->down((int) $argv[1], 'x');
