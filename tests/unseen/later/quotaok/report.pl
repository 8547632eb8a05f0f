#!/usr/bin/perl
# Writes the monthly reports. A report that does not fit the limit is given up: the old one stays.
use strict;
use warnings;
use Fcntl;
use IO::Handle;

$SIG{XFSZ} = 'IGNORE';

sub write_all {
    my ($fh, $data) = @_;
    my $at = 0;
    while ($at < length $data) {
        my $n = syswrite($fh, $data, 65536, $at);
        return 0 if !defined $n;
        $at += $n;
    }
    return 1;
}

sub sync_dir {
    my $dir = shift;
    sysopen(my $d, $dir, O_RDONLY | O_DIRECTORY) or die "$dir: $!";
    $d->sync or die "$dir: $!";
    close $d;
}

sub report {
    my ($name, $lines) = @_;
    my $new = "reports/.$name.new";
    sysopen(my $out, $new, O_WRONLY | O_CREAT | O_TRUNC, 0644) or die "$new: $!";
    my $text = join "", map { sprintf "%s;%07d;%012.2f\n", $name, $_, $_ * 1.19 } 1 .. $lines;
    if (!write_all($out, $text) || !$out->sync) {
        warn "$name: $!; the old report stays\n";
        close $out;
        unlink $new or die "$new: $!";
        return 0;
    }
    close $out or die "$new: $!";
    rename $new, "reports/$name" or die "$name: $!";
    sync_dir("reports");
    return 1;
}

my $written = 0;
for my $month (1 .. 12) {
    $written += report(sprintf("month-%02d", $month), 60000 + 20000 * ($month % 4));
}
print "$written of 12 reports written\n";
