gcc -O2 -o till till.c
