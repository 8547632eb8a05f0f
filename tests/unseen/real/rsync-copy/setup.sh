mkdir src; for i in $(seq 1 60); do head -c 8M /dev/urandom > src/$i; done
