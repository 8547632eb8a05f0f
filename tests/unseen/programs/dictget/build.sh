gcc -O2 -o dict dict.c
