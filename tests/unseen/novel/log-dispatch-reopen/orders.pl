use strict;
use Log::Dispatch;

my $log = Log::Dispatch->new(outputs => [[
    'File', min_level => 'info', filename => 'orders.log', mode => '>>', newline => 1, close_after_write => $ARGV[0],
]]);
$log->info("order $_ shipped to customer " . $_ * 7 % 900) for 1 .. 70000;
print -s 'orders.log', "\n";
