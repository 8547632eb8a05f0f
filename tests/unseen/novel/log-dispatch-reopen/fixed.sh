exec perl orders.pl 0
