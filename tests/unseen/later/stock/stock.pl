#!/usr/bin/perl
# Takes articles out of the stock: three tills share one file. The file is always complete: it is
# written beside, made durable and renamed.
use strict;
use warnings;
use Fcntl;
use IO::Handle;
use POSIX ();

my $file = "stock.txt";

sub load {
    open(my $in, "<", $file) or die "$file: $!";
    my %stock = map { chomp; split /\t/ } <$in>;
    close $in;
    return \%stock;
}

sub store {
    my $stock = shift;
    open(my $out, ">", "$file.$$") or die "$file.$$: $!";
    print $out "$_\t$stock->{$_}\n" for sort keys %$stock;
    $out->flush or die;
    $out->sync or die "sync: $!";
    close $out or die;
    rename "$file.$$", $file or die "rename: $!";
    sysopen(my $dir, ".", O_RDONLY | O_DIRECTORY) or die;
    $dir->sync;
    close $dir;
}

sub sell {
    my ($article) = @_;
    my $stock = load();
    $stock->{$article}--;
    store($stock);
}

my @pids;
for my $till (1 .. 3) {
    my $pid = fork // die;
    if (!$pid) {
        for my $n (1 .. 120) {
            sell("article-" . (($n * 7 + $till * 13) % 400));
            select undef, undef, undef, 0.002;
        }
        POSIX::_exit(0);
    }
    push @pids, $pid;
}
waitpid $_, 0 for @pids;
my $left = 0;
$left += $_ for values %{ load() };
print "sold ", 400 * 100 - $left, " of 360\n";
