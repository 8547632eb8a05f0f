gcc -O2 -Wall -o rangelog rangelog.c
