exec mpirun --allow-run-as-root --oversubscribe -n 4 ./rows
