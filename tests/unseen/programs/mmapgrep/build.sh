gcc -O2 -o grep grep.c
