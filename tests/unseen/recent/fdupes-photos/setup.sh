mkdir photos photos/old
for n in $(seq 190); do
  head -c 800000 /dev/urandom > photos/img$n.jpg
  [ $((n % 3)) = 0 ] || cp photos/img$n.jpg photos/old/
done
