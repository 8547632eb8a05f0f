for node in a b c; do
    python3 leader.py $node &
    P="$P $!"
done
wait $P
sort shifts | uniq -c
