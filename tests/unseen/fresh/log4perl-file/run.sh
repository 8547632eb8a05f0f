exec perl import.pl
