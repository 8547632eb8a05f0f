head -c 60000000 /dev/urandom > secret.key
