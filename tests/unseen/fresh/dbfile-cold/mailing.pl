#!/usr/bin/perl
# Looks up the addresses for a mailing.
use strict;
use warnings;
use DB_File;
use Fcntl;

tie my %db, "DB_File", "customers.db", O_RDONLY, 0644, $DB_HASH or die "customers.db: $!";
my $found = 0;
for my $n (1 .. 18000) {
    my $address = $db{sprintf "customer-%07d", 1 + $n * 104729 % 200000};
    $found++ if defined $address && $address =~ /^Street/;
}
print "$found addresses\n";
