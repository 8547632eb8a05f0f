exec perl count.pl
