for n in 0 1; do head -c 300M /dev/urandom > disk$n; done
