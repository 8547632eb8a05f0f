gcc -O2 -o snap snap.c -luring
