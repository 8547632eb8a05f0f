set -e
mkdir src include
export CCACHE_DIR=$PWD/ccache
{
    echo 'rule cc'
    echo '  command = ccache cc -O2 -Iinclude -MD -MF $out.d -c $in -o $out'
    echo '  depfile = $out.d'
    echo '  deps = gcc'
    echo 'rule ar'
    echo '  command = rm -f $out && ar rcs $out $in'
} > build.ninja
echo '#include <stdio.h>' > include/all.h
objects=
i=0
while [ $i -lt 150 ]; do
    printf '#include "all.h"\n#include <stdlib.h>\nint f%d(int n) {\n    return n > 1 ? f%d(n - 1) * %d : abs(n);\n}\n' $i $i $((i + 2)) |
        sed "s/^int/int f$i(int);\nint/" > src/f$i.c
    echo "build out/f$i.o: cc src/f$i.c" >> build.ninja
    objects="$objects out/f$i.o"
    i=$((i + 1))
done
echo "build libf.a: ar$objects" >> build.ninja
ninja > ninja.log
rm -rf out libf.a .ninja_deps .ninja_log
