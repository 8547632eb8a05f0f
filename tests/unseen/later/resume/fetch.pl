#!/usr/bin/perl
# Assembles a download from its pieces, in the order the peers send them. The state beside it (a byte and
# a checksum for each piece) allows to go on after an interruption.
use strict;
use warnings;
use Fcntl;

my ($pieces, $size) = (12000, 8192);
my $header = 512;

sub piece {
    my $no = shift;
    return pack("N", $no) . chr($no % 251) x ($size - 4);
}

sub checksum {
    my $data = shift;
    return unpack("%32N*", $data);
}

sysopen(my $out, "download.bin", O_RDWR | O_CREAT) or die "download.bin: $!";
sysopen(my $state, "download.state", O_RDWR | O_CREAT) or die "download.state: $!";
my $have = "\0" x $pieces;
my $sums = "\0" x (4 * $pieces);
my $done = 0;

sub save_state {
    my $block = pack("a8 N N", "RESUME1", $pieces, $done) . "\0" x ($header - 16) . $have . $sums;
    sysseek($state, 0, 0);
    my $n = syswrite($state, $block);
    die "download.state: $!" if !defined $n || $n != length $block;
}

my @order = map { ($_ * 1171) % $pieces } 0 .. $pieces - 1;
for my $no (@order) {
    next if substr($have, $no, 1) eq "\1";
    my $data = piece($no);
    sysseek($out, $no * $size, 0);
    my $n = syswrite($out, $data);
    die "download.bin: $!" if !defined $n || $n != $size;
    substr($have, $no, 1) = "\1";
    substr($sums, 4 * $no, 4) = pack("N", checksum(substr($data, 0, 64)));
    $done++;
    save_state();
}
close $out or die;
close $state or die;
print "$done pieces\n";
