mpicc -O2 -DAT_ONCE -o rows rows.c
exec mpirun --allow-run-as-root --oversubscribe -n 4 ./rows
