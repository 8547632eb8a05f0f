head -c 30000000 /dev/urandom > card.img
