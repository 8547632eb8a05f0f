#!/usr/bin/perl
# Chained audit trail: every line carries the digest of the one before.
use strict; use warnings;
use Digest::SHA qw(sha256_hex);

open(my $log, '>>', 'audit.log') or die "audit.log: $!";
my $prev = '0' x 64;
for my $i (1 .. 300000) {
    my $entry = sprintf('%010d user=%s action=%s object=/srv/data/%d', $i, ('ann', 'bob', 'eve')[$i % 3], ('read', 'write', 'delete', 'list')[$i % 4], $i * 7);
    $prev = sha256_hex($prev . $entry);
    print $log "$entry $prev\n";
}
close($log);
print "audited 300000 actions\n";
