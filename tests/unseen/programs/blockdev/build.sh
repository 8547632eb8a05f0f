gcc -O2 -o mkimage mkimage.c
