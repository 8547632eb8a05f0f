mpicc -O2 -o rows rows.c
