mkdir www
for n in 1 2 3; do head -c 40000000 /dev/urandom > www/image$n.iso; done
