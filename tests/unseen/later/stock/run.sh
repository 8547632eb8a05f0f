exec perl stock.pl
