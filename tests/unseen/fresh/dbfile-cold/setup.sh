perl fill.pl
