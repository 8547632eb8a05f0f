gcc -O2 -o collector collector.c
