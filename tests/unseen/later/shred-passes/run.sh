exec shred -n 3 -z -u secret.key
