# the night's copies of the volume start while the shop is open
python3 shop.py &
P=$!
sleep 1.5
for n in 1 2; do
    dd if=volume of=copy$n bs=8M iflag=direct oflag=direct status=none &
    C="$C $!"
done
wait $C
sleep 1
wait $P
rm copy1 copy2
