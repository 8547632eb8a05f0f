# A compiler: a program of several files.
# needs: gcc
case $1 in
setup)
    for i in $(seq 8); do printf '#include <stdio.h>\n#include <stdlib.h>\nint f%d(int x) { printf("%%d", x); return x * %d; }\n' "$i" "$i" > "f$i.c"; done
    printf 'int main(void) { return 0; }\n' > main.c
    ;;
run) gcc -O2 -o program ./*.c ;;
esac
