n=2001
while [ $n -le 2120 ]; do
    recins -t Book -f Id -v $n -f Title -v "A new book $n" -f Author -v "Author $((n % 90))" -f Shelf -v 41 books.rec || exit 1
    n=$((n + 1))
done
[ $(recsel -t Book -c books.rec) = 420 ]
