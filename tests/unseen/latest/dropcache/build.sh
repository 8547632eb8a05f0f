cc -O2 -Wall -o fingerprint fingerprint.c
