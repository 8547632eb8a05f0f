gcc -O2 -o recorder recorder.c
