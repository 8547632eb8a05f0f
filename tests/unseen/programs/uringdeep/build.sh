gcc -O2 -o fetch fetch.c -luring
