#!/usr/bin/perl
# Three simulators add their results to one table; a lock keeps the additions apart.
use strict; use warnings;
use Fcntl qw(:flock SEEK_SET O_RDWR O_CREAT);

sub add {
    my (%more) = @_;
    sysopen(my $f, 'totals.txt', O_RDWR | O_CREAT) or die $!;
    flock($f, LOCK_EX) or die $!;
    my %t;
    while (<$f>) { my ($k, $v) = split; $t{$k} = $v; }
    $t{$_} += $more{$_} for keys %more;
    seek($f, 0, SEEK_SET);
    printf $f "%-8s %12d\n", $_, $t{$_} for sort keys %t;
    close($f) or die $!;
}

for my $p (1 .. 3) {
    next if fork();
    srand($p);
    for my $round (1 .. 8) {
        my %c;
        $c{ int(rand 6) + int(rand 6) }++ for 1 .. 150000;
        add(%c);
    }
    exit 0;
}
1 while wait() > 0;
