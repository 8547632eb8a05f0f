seq 1 600000 | awk '{ printf "key%09d ==> value of the key number %d\n", ($1 * 7919) % 1000003, $1 }' > pairs
