gcc -O2 -o server server.c
