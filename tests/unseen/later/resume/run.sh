exec perl fetch.pl
