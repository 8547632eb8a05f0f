gcc -O2 -o counters counters.c
