#!/usr/bin/perl
# Reads the ticks of an exchange from a pipe that must not block, and counts them by symbol.
use strict;
use warnings;
use Fcntl;

pipe(my $in, my $out) or die "pipe: $!";
my $pid = fork() // die "fork: $!";
if (!$pid) {
    close $in;
    $out->autoflush(1);
    for my $n (1 .. 120) {
        print $out "SYM" . $n * 7 % 12 . " " . $n * 3.5 . "\n";
        select(undef, undef, undef, 0.012);
    }
    exit 0;
}
close $out;
fcntl($in, F_SETFL, fcntl($in, F_GETFL, 0) | O_NONBLOCK);
my (%count, $buffer);
my $ready = '';
vec($ready, fileno($in), 1) = 1;
while (1) {
    if (@ARGV) { select(my $r = $ready, undef, undef, undef); }
    my $got = sysread($in, my $part, 4096);
    next unless defined $got;
    last if $got == 0;
    $buffer .= $part;
    while ($buffer =~ s/^(\S+) \S+\n//) { $count{$1}++; }
}
waitpid($pid, 0);
printf "%s %d\n", $_, $count{$_} for sort keys %count;
