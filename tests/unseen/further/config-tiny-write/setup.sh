for n in $(seq 0 499); do printf '[feed%d]\nurl=https://feed%d.example.org/rss\nlast=0\nitems=0\n\n' $n $n; done > feeds.ini
