# the most frequent words of a corpus
LC_ALL=C tr -cs 'a-z' '\n' < corpus.txt | LC_ALL=C sort -S 32M -T . | uniq -c | LC_ALL=C sort -rn | head -n 1000 > top.txt
