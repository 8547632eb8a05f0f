#!/usr/bin/perl
# Unpacks each release beside the last one and then lets CURRENT name it.
use strict;
use warnings;
use File::Path 'make_path';
use IO::Handle;

for my $n (1 .. 40) {
    my $dir = "releases/$n";
    make_path("$dir/templates");
    for my $f (1 .. 40) {
        open(my $out, '>', "$dir/templates/page$f.html") or die "page$f: $!";
        print $out "<p>page $f of release $n</p>\n" x 60;
        close $out or die "page$f: $!";
    }
    open(my $current, '>', 'CURRENT.new') or die "CURRENT.new: $!";
    print $current "$n\n";
    $current->flush or die "CURRENT.new: $!";
    $current->sync or die "CURRENT.new: $!";
    close $current;
    rename('CURRENT.new', 'CURRENT') or die "CURRENT: $!";
    open(my $top, '<', '.') or die ".: $!";
    $top->sync;
    close $top;
    # the archive of the release has done its work
    unlink "incoming/$n.tar";
}
print "release ", scalar(`cat CURRENT`);
