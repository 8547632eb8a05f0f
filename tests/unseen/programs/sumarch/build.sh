gcc -O2 -o sum sum.c -luring
