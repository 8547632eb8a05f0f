#!/usr/bin/perl
# Event bus: a publisher gets its acknowledgement when the event is safe on the disk.
use strict;
use warnings;
use Fcntl;
use IO::Handle;

use constant { SYS_sync_file_range => 277, BEFORE_WRITE_AFTER => 7 };

sysopen(my $log, "events.log", O_CREAT | O_EXCL | O_WRONLY) or die "events.log: $!";
sysopen(my $dir, ".", O_RDONLY | O_DIRECTORY) or die;
$log->sync && $dir->sync or die "sync: $!";

my ($at, $acknowledged) = (0, 0);

sub publish {
    my $event = shift;
    my $length = syswrite($log, $event) // die "events.log: $!";
    die "short write" if $length != length $event;
    if (syscall(SYS_sync_file_range, fileno $log, $at, $length, BEFORE_WRITE_AFTER) != 0) {
        die "sync: $!";
    }
    $at += $length;
    $acknowledged++;
}

for my $n (1 .. 700) {
    publish(sprintf("%08d %s\n", $n, "payload-of-the-event " x (20 + $n % 300)));
    select undef, undef, undef, 0.001;
}
close $log;
print "$acknowledged events acknowledged\n";
