gcc -O2 -pthread -o wal wal.c
