#!/usr/bin/perl
# Copies the recordings into the archive of the day.
use strict; use warnings;
use File::Copy qw(copy);
mkdir 'archive';
for my $f (sort glob 'recordings/*') {
    (my $t = $f) =~ s{^recordings/}{archive/};
    copy($f, $t) or die "$f: $!";
}
