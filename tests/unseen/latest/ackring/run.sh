exec perl ackring.pl
