head -c 294912000 /dev/urandom > samples.pack
