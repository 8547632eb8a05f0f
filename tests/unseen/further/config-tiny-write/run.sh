exec /usr/bin/perl state.pl
