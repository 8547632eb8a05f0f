exec perl filter.pl
