exec perl feed.pl wait
