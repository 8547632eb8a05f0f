#!/usr/bin/perl
# Checks the rows of a delivery and writes down what it finds.
use strict;
use warnings;
use Log::Log4perl;

Log::Log4perl->init("log.conf");
my $log = Log::Log4perl->get_logger("import");
my ($good, $bad) = (0, 0);
for my $row (1 .. 40000) {
    my $price = $row * 7919 % 1000;
    if ($price % 11) {
        $good++;
        $log->info("row $row: article ", $row % 300, " at $price");
    } else {
        $bad++;
        $log->warn("row $row: price $price looks wrong");
    }
}
print "$good good, $bad bad\n";
