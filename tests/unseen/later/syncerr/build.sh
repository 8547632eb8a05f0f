gcc -O2 -o journal journal.c
