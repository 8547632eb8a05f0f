gcc -O2 -o ticks ticks.c
