#!/usr/bin/perl
# A feed reader that keeps how far it read each feed in its INI file.
use strict;
use warnings;
use Config::Tiny;
use IO::Handle;

my $each = !@ARGV;
my $state = Config::Tiny->read('feeds.ini') or die Config::Tiny->errstr;
for my $n (0 .. 399) {
    my $feed = "feed" . ($n * 7 % 500);
    $state->{$feed}{last} = 1700000000 + $n;
    $state->{$feed}{items}++;
    $state->write('feeds.ini') if $each;
}
if (!$each) {    # once, beside the old one, durable, then renamed
    open my $out, '>', 'feeds.ini.new' or die $!;
    print $out $state->write_string;
    $out->flush;
    $out->sync;
    close $out or die $!;
    rename 'feeds.ini.new', 'feeds.ini' or die $!;
}
print "read 400 feeds\n";
