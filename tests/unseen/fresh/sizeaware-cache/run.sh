exec perl pages.pl
