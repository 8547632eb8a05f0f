mkdir in out; for i in $(seq 1 25); do head -c 300k /dev/urandom > in/$i; done
