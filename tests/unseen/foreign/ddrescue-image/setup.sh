head -c 700000000 /dev/urandom > card.img
