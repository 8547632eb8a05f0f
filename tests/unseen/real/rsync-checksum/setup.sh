mkdir src; for i in $(seq 1 30); do head -c 8M /dev/urandom > src/$i; done; rsync -a src/ dst/
