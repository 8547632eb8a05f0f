exec perl archive.pl
