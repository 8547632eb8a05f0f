cc -O2 -Wall -o mover mover.c
