awk 'BEGIN { for (n = 1; n <= 20000; n++) printf "* TODO task %d\n  Some words about task %d.\n", n, n }' > notes.org
