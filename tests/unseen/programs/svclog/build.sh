gcc -O2 -o service service.c
