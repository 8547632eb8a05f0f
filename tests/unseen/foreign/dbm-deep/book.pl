use strict;
use DBM::Deep;

my $db = DBM::Deep->new(file => 'book.db', locking => 0);
for my $n (1 .. 1500) {
    $db->{"customer$n"} = { name => "Customer $n", city => "City " . $n % 40, orders => [$n, $n + 1] };
}
my $sum = 0;
$sum += $db->{"customer$_"}{orders}[1] for 1 .. 1500;
print "$sum\n";
