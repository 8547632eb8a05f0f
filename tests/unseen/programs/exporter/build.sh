gcc -O2 -o export export.c
