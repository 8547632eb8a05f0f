#!/usr/bin/perl
# Takes over the mails of a batch: all are written, then made durable, then they appear, then the sender may forget them.
use strict;
use warnings;
use Fcntl;
use IO::Handle;

sub directory {
    sysopen(my $dir, shift, O_RDONLY | O_DIRECTORY) or die "directory: $!";
    return $dir;
}

sub batch {
    my ($first, $count) = @_;
    my %open;
    for my $n ($first .. $first + $count - 1) {
        my $name = sprintf "%010d.mail", $n;
        sysopen(my $out, "box/tmp/$name", O_CREAT | O_EXCL | O_WRONLY, 0600) or die "$name: $!";
        print $out "Subject: mail $n\n\n", ("text of the mail $n\n" x (4000 + $n % 900)) or die "$name: $!";
        $out->flush or die "$name: $!";
        $open{$name} = $out;
    }
    for my $name (sort keys %open) {
        $open{$name}->sync or die "$name: $!";
        close $open{$name} or die "$name: $!";
    }
    rename "box/tmp/$_", "box/new/$_" or die "$_: $!" for sort keys %open;
    directory("box/new")->sync or die "box/new: $!";
    return $count;
}

my $taken = 0;
for my $n (0 .. 7) {
    $taken += batch($n * 60, 60);
    select undef, undef, undef, 0.15;
}
print "250 $taken mails\n";
