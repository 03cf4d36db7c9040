<?php
// SPDX-License-Identifier: MIT
// gen_churn.php D W kind > file.   Generates stand-alone call-churn targets whose legal stacks are known.
// kind=chain: endless alternation of two call chains a1..aD and b1..bD; leaf does W loop iterations.
//   legal stack (root first): main, x1, x2, ..., xk  (x in {a,b}; 0<=k<=D)
// kind=top:   stable base s1..sD, then the leaf s_D alternates f1>f2>f3 and g1>g2>g3 (tiny calls, W iterations in f3/g3)
//   legal stack: main, s1..sk (k<=D)  or  main, s1..sD, then a prefix of (f1,f2,f3) or (g1,g2,g3)
[$_, $D, $W, $kind] = $argv;
echo "<?php\n// generated: gen_churn.php $D $W $kind\n";
if ($kind === 'chain') {
    foreach (['a','b'] as $x) for ($i=1; $i<=$D; $i++) {
        $n = $i+1;
        if ($i < $D) echo "function {$x}_$i(\$p) {\n    \$q = \$p + $i;\n    \$r = {$x}_$n(\$q);\n    return \$r + 1;\n}\n";
        else echo "function {$x}_$i(\$p) {\n    for (\$i=0; \$i<$W; \$i++) \$p ^= \$i;\n    return \$p;\n}\n";
    }
    echo "for (\$n=0;;\$n++) {\n    a_1(\$n);\n    b_1(\$n);\n}\n";
} else {
    for ($i=1; $i<=$D; $i++) {
        $n = $i+1;
        if ($i < $D) echo "function s_$i(\$p) {\n    \$q = \$p + $i;\n    \$r = s_$n(\$q);\n    return \$r + 1;\n}\n";
        else echo "function s_$i(\$p) {\n    for (;;) {\n        \$p += f_1(\$p) & 1;\n        \$p += g_1(\$p) & 1;\n    }\n}\n";
    }
    foreach (['f','g'] as $x) {
        echo "function {$x}_1(\$p) {\n    return {$x}_2(\$p + 1);\n}\n";
        echo "function {$x}_2(\$p) {\n    return {$x}_3(\$p + 2) + 1;\n}\n";
        echo "function {$x}_3(\$p) {\n    for (\$i=0; \$i<$W; \$i++) \$p ^= \$i;\n    return \$p;\n}\n";
    }
    echo "s_1(1);\n";
}
