gcc -O2 -o deliver deliver.c
