gcc -O2 -o flush flush.c
