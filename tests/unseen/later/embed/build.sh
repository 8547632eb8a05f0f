gcc -O2 -o lookup lookup.c
