gcc -O2 -o load load.c -laio
