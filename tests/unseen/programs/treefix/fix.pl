#!/usr/bin/perl
# Puts modes and times of a web tree right, before every deployment.
use strict; use warnings;
use File::Find;
my $n = 0;
find({ no_chdir => 1, wanted => sub {
    my @s = lstat($_) or return;
    if (-d _) { chmod 0755, $_; return; }
    chmod 0644, $_ or die "$_: $!";
    utime 1700000000, 1700000000, $_ or die "$_: $!";
    rename $_, lc $_ if $_ ne lc $_;
    $n++;
} }, 'htdocs');
print "$n files put right\n";
