gcc -O2 -o scrub scrub.c
