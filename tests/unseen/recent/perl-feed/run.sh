exec perl feed.pl
