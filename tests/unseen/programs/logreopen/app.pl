#!/usr/bin/perl
# A service that opens its log anew when the rotation has renamed it (signal HUP), and whose old logs are removed.
use strict; use warnings;
use POSIX ();
my ($log, $again);
sub reopen { close($log) or die $! if $log; open($log, '>>', 'app.log') or die $!; $again = 0; }
$SIG{HUP} = sub { $again = 1 };
reopen();
my $me = $$;
if (!fork()) {
    for my $n (1 .. 4) {
        select(undef, undef, undef, 0.3);
        rename('app.log', "app.log.$n") or die $!;
        kill HUP => $me;
        select(undef, undef, undef, 0.1);
        unlink('app.log.' . ($n - 1)) if $n > 1;
    }
    POSIX::_exit(0);
}
for my $i (1 .. 400) {
    print $log "request $i.$_ GET /index.html 200 1234 some-user-agent/1.0\n" for 1 .. 300;
    select(undef, undef, undef, 0.004);
    reopen() if $again;
}
1 while wait() < 0 && $!{EINTR};
close($log) or die $!;
