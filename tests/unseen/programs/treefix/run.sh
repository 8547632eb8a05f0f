exec perl fix.pl
