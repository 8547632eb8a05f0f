exec /usr/bin/perl sessions.pl 2000 32768
