sed 's/until mkdir.*/exec 9> counter.lock; flock 9/; s/rmdir.*/exec 9>\&-/' worker.sh > flock.sh
for w in 1 2 3 4; do sh flock.sh & done; wait; cat counter
