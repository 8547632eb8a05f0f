for w in 1 2 3 4; do sh worker.sh & done; wait; cat counter
