gcc -O2 -o geo geo.c
