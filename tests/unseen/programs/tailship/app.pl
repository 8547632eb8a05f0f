use strict; use warnings;
# the application: three logs of growing length, the finished ones are renamed
for my $part (1 .. 3) {
    open(my $log, '>>', 'app.log') or die $!;
    for my $i (1 .. 40 + 30 * $part) {
        print $log "part $part line $i.$_ some event of the application with its details\n" for 1 .. 200;
        select(undef, undef, undef, 0.005);
    }
    close($log) or die $!;
    if ($part < 3) { rename('app.log', "app.log.$part") or die $!; }
}
