cc -O2 -Wall -pthread -o ringtail ringtail.c
