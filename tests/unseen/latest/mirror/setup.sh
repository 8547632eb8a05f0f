mkdir from to
i=0
while [ $i -lt 8 ]; do head -c 45M /dev/urandom > from/volume$i; i=$((i + 1)); done
