exec perl book.pl
