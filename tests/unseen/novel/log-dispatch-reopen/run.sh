exec perl orders.pl 1
