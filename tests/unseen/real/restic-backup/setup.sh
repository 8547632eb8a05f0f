mkdir src; for i in $(seq 1 25); do head -c 8M /dev/urandom > src/$i; done; mkdir tmp
RESTIC_PASSWORD=x restic -r repo --cache-dir cache init
