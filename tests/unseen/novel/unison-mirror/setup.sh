mkdir near far
for d in $(seq 20); do mkdir near/d$d; for n in $(seq 40); do head -c $((n * 900)) /dev/urandom > near/d$d/f$n; done; done
