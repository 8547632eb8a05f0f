gcc -O2 -o columns columns.c
