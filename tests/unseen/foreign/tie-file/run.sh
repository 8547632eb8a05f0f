exec perl -MTie::File -e 'tie my @t, "Tie::File", "tickets.txt" or die; for my $n (1 .. 1000) { unshift @t, "new ticket $n: just arrived and to be answered first"; } print scalar(@t), "\n"'
