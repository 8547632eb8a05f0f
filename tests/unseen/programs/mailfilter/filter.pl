#!/usr/bin/perl
# Scores mails: every message is put into a file for the scorer and removed afterwards.
use strict; use warnings;
use File::Temp ();

sub score {
    my ($path) = @_;
    open(my $f, '<', $path) or die "$path: $!";
    local $/; my $text = <$f>;
    close($f);
    my $s = 0;
    $s += 2 while $text =~ /\b(?:prize|winner|free)\b/gi;
    $s -= 1 while $text =~ /\b(?:meeting|invoice|regards)\b/gi;
    return $s;
}

mkdir 'work';
open(my $box, '<', 'inbox.mbox') or die "inbox.mbox: $!";
local $/ = "\n\n\n";
my ($spam, $ham) = (0, 0);
while (my $mail = <$box>) {
    my $tmp = File::Temp->new(DIR => 'work', SUFFIX => '.eml', UNLINK => 1);
    print $tmp $mail;
    close($tmp) or die $!;
    score($tmp->filename) > 3 ? $spam++ : $ham++;
}
print "$spam spam, $ham ham\n";
