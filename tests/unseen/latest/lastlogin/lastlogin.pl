#!/usr/bin/perl
# Who has ever logged in, and when.
use strict;
use warnings;

my $size = 292;
my $file = shift // "lastlog";
open(my $in, "<:raw", $file) or die "$file: $!";
my ($uid, $found) = (0, 0);
while (my $got = sysread($in, my $block, $size * 1024)) {
    for (my $at = 0; $at + $size <= $got; $at += $size, $uid++) {
        my $time = unpack("V", substr($block, $at, 4));
        next unless $time;
        my ($line, $host) = unpack("x4 Z32 Z256", substr($block, $at, $size));
        printf "%-8d %-8s %-16s %s\n", $uid, $line, $host, scalar gmtime $time;
        $found++;
    }
}
close $in;
print "$found of $uid\n";
