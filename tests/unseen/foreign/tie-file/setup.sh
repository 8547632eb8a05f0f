seq 1 20000 | awk '{ printf "%06d ticket %d of queue %d: waiting for an answer\n", $1, $1 * 7919 % 100000, $1 % 7 }' > tickets.txt
