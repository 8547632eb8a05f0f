gcc -O2 -o index index.c
