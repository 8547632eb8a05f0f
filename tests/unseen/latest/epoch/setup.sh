head -c 192M /dev/urandom > samples.bin
