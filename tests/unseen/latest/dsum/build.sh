cc -O2 -Wall -pthread -o dsum dsum.c
