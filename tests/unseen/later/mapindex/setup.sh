seq 100000 | awk '{ print "word" $1 % 5003, "is followed by", $1 % 997, "and some more of the usual words" }' > part
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do cat part; done > corpus.txt
rm part
